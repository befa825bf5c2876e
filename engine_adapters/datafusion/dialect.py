"""A sqlglot dialect for DataFusion 55, registered as `datafusion` when this module is imported.

DataFusion's SQL is close to PostgreSQL's; what differs are casts that may fail, nested literals, a few types and
functions, and the table clauses that it does not have.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.generator import Generator
from sqlglot.tokenizer_core import TokenType

__all__ = ["DataFusion"]


def _try_cast(generator: Generator, node: exp.TryCast) -> str:
    return f"TRY_CAST({generator.sql(node, 'this')} AS {generator.sql(node, 'to')})"


def _array(generator: Generator, node: exp.Array) -> str:
    return f"make_array({generator.expressions(node, flat=True)})"


def _struct(generator: Generator, node: exp.Struct) -> str:
    parts = []
    for number, field in enumerate(node.expressions):
        if isinstance(field, exp.PropertyEQ | exp.Alias):
            name = field.this.name if isinstance(field, exp.PropertyEQ) else field.alias
            value = field.expression if isinstance(field, exp.PropertyEQ) else field.this
        else:
            name, value = field.alias_or_name or f"c{number}", field
        parts += [generator.sql(exp.Literal.string(name)), generator.sql(value)]
    return f"named_struct({', '.join(parts)})"


def _map(generator: Generator, node: exp.Map | exp.VarMap) -> str:
    keys, values = node.args.get("keys"), node.args.get("values")
    if keys is None or values is None:
        return "MAP {}"
    return f"map({generator.sql(keys)}, {generator.sql(values)})"


def _function(name: str) -> Callable[[Generator, exp.Func], str]:
    def write(generator: Generator, node: exp.Func) -> str:
        arguments = [arg for arg in node.args.values() if arg is not None and arg is not False]
        flat = [item for arg in arguments for item in (arg if isinstance(arg, list) else [arg])]
        return generator.func(name, *[item for item in flat if isinstance(item, exp.Expression)])

    return write


def _struct_field(generator: Generator, node: exp.Dot) -> str:
    field = node.expression
    if isinstance(field, exp.Identifier):
        return f"{generator.sql(node, 'this')}[{generator.sql(exp.Literal.string(field.name))}]"
    return generator.binary(node, ".")


def _integer_division(generator: Generator, node: exp.IntDiv) -> str:
    return f"CAST(TRUNC({generator.sql(node, 'this')} / {generator.sql(node, 'expression')}) AS BIGINT)"


_WALL_CLOCK = {exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ, exp.DataType.Type.DATETIME}
_INSTANT = {exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ}


def _cast(generator: Generator, node: exp.Cast) -> str:
    """Instants in microseconds: nanoseconds end in 2262, and with a precision DataFusion forgets the zone."""
    if node.to.this in _INSTANT and not node.to.expressions:
        kind = exp.Literal.string('Timestamp(Microsecond, Some("UTC"))')
        return generator.func("arrow_cast", node.this, kind)
    return generator.cast_sql(node)


def _time_to_text(generator: Generator, node: exp.TimeToStr) -> str:
    """The format is strftime's, but for fractions, and for a mark of strictness that sqlglot puts into it."""
    form = node.args["format"]
    if isinstance(form, exp.Literal):
        form = exp.Literal.string(form.name.replace("strict", "").replace("%f", "%6f"))
    return generator.func("to_char", node.this, form)


class DataFusion(Postgres):
    """PostgreSQL's dialect with DataFusion's differences."""

    # One based, as in PostgreSQL and DuckDB.
    INDEX_OFFSET = 1
    TYPED_DIVISION = True
    SUPPORTS_LIMIT_ALL = False

    class Tokenizer(Postgres.Tokenizer):
        """Reads FLOAT as 32 bits; PostgreSQL's has 64."""

        KEYWORDS = {**Postgres.Tokenizer.KEYWORDS, "FLOAT": TokenType.FLOAT}  # noqa: RUF012

    class Generator(Postgres.Generator):  # type: ignore[misc,valid-type]  # sqlglot makes it at run time
        """Writes what DataFusion reads."""

        TRY_SUPPORTED = True
        TYPE_MAPPING = {  # noqa: RUF012
            **Postgres.Generator.TYPE_MAPPING,
            exp.DataType.Type.DOUBLE: "DOUBLE",
            exp.DataType.Type.FLOAT: "FLOAT",
            exp.DataType.Type.TINYINT: "TINYINT",
            exp.DataType.Type.UTINYINT: "TINYINT UNSIGNED",
            exp.DataType.Type.USMALLINT: "SMALLINT UNSIGNED",
            exp.DataType.Type.UINT: "INT UNSIGNED",
            exp.DataType.Type.UBIGINT: "BIGINT UNSIGNED",
            exp.DataType.Type.BINARY: "BYTEA",
            exp.DataType.Type.VARBINARY: "BYTEA",
            exp.DataType.Type.TEXT: "VARCHAR",
            exp.DataType.Type.TIMESTAMPTZ: "TIMESTAMPTZ",
            exp.DataType.Type.TIMESTAMPLTZ: "TIMESTAMPTZ",
        }
        TRANSFORMS = {  # noqa: RUF012
            **Postgres.Generator.TRANSFORMS,
            exp.TryCast: _try_cast,
            exp.Array: _array,
            exp.Struct: _struct,
            exp.Map: _map,
            exp.VarMap: _map,
            exp.Dot: _struct_field,
            exp.IntDiv: _integer_division,
            exp.Rand: lambda *_: "random()",
            exp.ArraySize: lambda self, e: f"CAST({self.func('array_length', e.this)} AS INT)",
            exp.ArrayContains: _function("array_has"),
            exp.MapKeys: _function("map_keys"),
            exp.Levenshtein: _function("levenshtein"),
            exp.IsNan: _function("isnan"),
            exp.Uuid: lambda *_: "uuid()",
            exp.Max: _function("max"),
            exp.Min: _function("min"),
            exp.CurrentTimestamp: lambda *_: "now()",
            exp.Substring: _function("substr"),
            exp.GroupConcat: _function("string_agg"),
            exp.Cast: _cast,
            exp.Decode: lambda self, e: self.cast_sql(exp.cast(e.this, "text")),
            exp.Initcap: lambda self, e: self.func("initcap", e.this),
            exp.TimeToStr: _time_to_text,
            exp.RegexpReplace: _function("regexp_replace"),
            exp.StrPosition: _function("strpos"),
            exp.Unnest: _function("unnest"),
        }

        def datatype_sql(self, expression: exp.DataType) -> str:
            """Wall-clock times in microseconds, as tables store them."""
            if expression.this in _WALL_CLOCK and not expression.expressions:
                return "TIMESTAMP(6)"
            return str(super().datatype_sql(expression))
