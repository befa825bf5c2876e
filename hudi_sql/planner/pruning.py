"""Conditions of a statement → storage predicates that leave out files.

Only what is certain is used: a comparison of a column with a literal of a type whose order the engines and the files
share. Everything else is left to the engine, which filters in any case.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import product

import pyarrow as pa
from sqlglot import exp

from hudi_sql.errors import HudiSqlError
from hudi_sql.planner.rewrite import conjuncts
from hudi_sql.storage.model.files import FileSlice, PartitionPath
from hudi_sql.storage.read.predicate import And, Compare, CompareOp, IsIn, IsNull, Or, Predicate
from hudi_sql.storage.read.snapshot import Snapshot

__all__ = ["Pruning", "prune_select", "to_predicate"]

_MOST_PARTITIONS = 1000
_WHOLE = re.compile(r"-?\d+")
_DOUBLE_DIGITS = 15
"""Decimals of so many digits stay apart as doubles."""
Resolve = Callable[[exp.Column], "str | None"]

_OPERATORS: dict[type[exp.Expr], CompareOp] = {
    exp.EQ: CompareOp.EQ,
    exp.NullSafeEQ: CompareOp.EQ,
    exp.LT: CompareOp.LT,
    exp.LTE: CompareOp.LE,
    exp.GT: CompareOp.GT,
    exp.GTE: CompareOp.GE,
}
_INCLUSIVE = {CompareOp.LT: CompareOp.LE, CompareOp.GT: CompareOp.GE}
_MIRRORED = {
    CompareOp.EQ: CompareOp.EQ,
    CompareOp.LT: CompareOp.GT,
    CompareOp.LE: CompareOp.GE,
    CompareOp.GT: CompareOp.LT,
    CompareOp.GE: CompareOp.LE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    """What of the target a statement has to look at."""

    predicate: Predicate | None
    slices: tuple[FileSlice, ...]
    partitions: tuple[PartitionPath, ...] | None
    """Partitions outside of which no row, present or future, can matter; None means all."""

    @classmethod
    def of(cls, conditions: Sequence[exp.Expression], alias: str, snapshot: Snapshot) -> Pruning:
        """Prune by conditions that every row that matters fulfils."""

        def resolve(column: exp.Column) -> str | None:
            return _stored(column, snapshot.schema) if column.table.lower() == alias.lower() else None

        predicate = to_predicate(conditions, resolve, snapshot.schema)
        return cls(
            predicate=predicate,
            slices=snapshot.slices(predicate),
            partitions=_all_partitions(predicate, snapshot),
        )


def _all_partitions(predicate: Predicate | None, snapshot: Snapshot) -> tuple[PartitionPath, ...] | None:
    """Paths of all partitions that can hold a matching row, also of those that others may add meanwhile.

    Known when every partition column is said to equal, or be one of, some values; None otherwise.
    """
    fields = snapshot.config.partition_fields
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    given: dict[str, tuple[pa.Scalar, ...]] = {}
    for part in parts:
        if isinstance(part, Compare) and part.op is CompareOp.EQ:
            given[part.column] = (part.value,)
        elif isinstance(part, IsIn):
            given.setdefault(part.column, part.values)
    if not fields or not set(fields) <= given.keys():
        return None
    if any(pa.types.is_floating(snapshot.table_schema.field(name).type) for name in fields):
        return None  # 0.0 and -0.0 are equal and are two partitions
    rows = list(product(*(given[name] for name in fields)))
    if len(rows) > _MOST_PARTITIONS:
        return None
    columns = []
    for field in snapshot.table_schema:
        if field.name in fields:
            at = fields.index(field.name)
            columns.append(pa.array([row[at].as_py() for row in rows], field.type))
        else:
            columns.append(pa.nulls(len(rows), field.type))
    batch = pa.RecordBatch.from_arrays(columns, names=snapshot.table_schema.names)
    try:
        paths = snapshot.key_generator.partition_paths(batch)
    except HudiSqlError:
        return None
    return tuple(dict.fromkeys(PartitionPath(path) for path in paths.to_pylist()))


def prune_select(table: exp.Table, schema: pa.Schema) -> Predicate | None:
    """Predicate on a table inside a query, from the WHERE of the SELECT whose FROM names it.

    The conditions used are never true of NULL, so they hold whatever side of an outer join the table is on.
    """
    select = table.parent
    if isinstance(select, exp.From | exp.Join):
        select = select.parent
    if not isinstance(select, exp.Select) or select.args.get("where") is None:
        return None
    alias = table.args.get("alias")
    if table.args.get("pivots") or (alias is not None and alias.args.get("columns")):
        # What the table's columns are called in the query is not what they are called in the table.
        return None
    name = table.alias_or_name.lower()
    is_only = not select.args.get("joins") and not select.args.get("laterals") and not table.args.get("joins")

    def resolve(column: exp.Column) -> str | None:
        if column.table.lower() == name or (not column.table and is_only):
            return _stored(column, schema)
        return None

    return to_predicate(conjuncts(select.args["where"].this), resolve, schema, with_null=is_only)


def to_predicate(
    conditions: Sequence[exp.Expression], resolve: Resolve, schema: pa.Schema, *, with_null: bool = True
) -> Predicate | None:
    """Translate the conditions that can be; the others are left out, which keeps more rows."""
    parts = [
        part for item in conditions if (part := _translate(item, resolve, schema, with_null)) is not None
    ]
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(parts=tuple(parts))


def _translate(tree: exp.Expr, resolve: Resolve, schema: pa.Schema, with_null: bool) -> Predicate | None:
    tree = tree.unnest()
    if _says_more(tree):
        return None
    if isinstance(tree, exp.And):
        return to_predicate(conjuncts(tree), resolve, schema, with_null=with_null)
    if isinstance(tree, exp.Or):
        sides = [_translate(side, resolve, schema, with_null) for side in (tree.this, tree.expression)]
        if sides[0] is None or sides[1] is None:
            return None
        return Or(parts=(sides[0], sides[1]))
    if isinstance(tree, exp.Between):
        return to_predicate(
            [
                exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy()),
                exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy()),
            ],
            resolve,
            schema,
        )
    if isinstance(tree, exp.In):
        return _is_in(tree, resolve, schema)
    if isinstance(tree, exp.Is) and isinstance(tree.expression, exp.Null) and with_null:
        name = resolve(tree.this) if isinstance(tree.this, exp.Column) else None
        # Dialects differ: IS NOT NULL may be a NOT around this, or say so itself.
        negated = bool(tree.args.get("negate"))
        return IsNull(column=name, negated=negated) if name is not None else None
    return _compare(tree, resolve, schema)


_UNDERSTOOD: dict[type[exp.Expr], set[str]] = {
    exp.Is: {"negate"},
    exp.Between: {"low", "high"},
    exp.In: {"expressions"},
    exp.Cast: {"to"},
}


def _says_more(tree: exp.Expr) -> bool:
    """Whether a node has words beyond those that are read here, such as SYMMETRIC: it is not translated then."""
    known = {"this", "expression"} | _UNDERSTOOD.get(type(tree), set())
    return any(value for key, value in tree.args.items() if key not in known)


def _compare(tree: exp.Expr, resolve: Resolve, schema: pa.Schema) -> Predicate | None:
    operator = _OPERATORS.get(type(tree))
    if operator is None:
        return None
    left, right = tree.this.unnest(), tree.expression.unnest()
    if not isinstance(left, exp.Column):
        left, right, operator = right, left, _MIRRORED[operator]
    if not isinstance(left, exp.Column):
        return None
    name = resolve(left)
    if name is None:
        return None
    kind = schema.field(name).type
    value = _literal(right, kind)
    if value is None:
        return None
    if _is_approximate(right, kind):
        operator = _INCLUSIVE.get(operator, operator)
    return Compare(column=name, op=operator, value=value)


def _is_approximate(tree: exp.Expr, kind: pa.DataType) -> bool:
    """Whether an engine may read the literal as a double that lies a little beside the decimal that is written."""
    return pa.types.is_decimal(kind) and not tree.find(exp.Cast) and not _WHOLE.fullmatch(tree.sql())


def _is_in(tree: exp.In, resolve: Resolve, schema: pa.Schema) -> Predicate | None:
    if not isinstance(tree.this, exp.Column):
        return None
    name = resolve(tree.this)
    if name is None or not tree.expressions:
        return None
    values = [_literal(item, schema.field(name).type) for item in tree.expressions]
    given = tuple(value for value in values if value is not None)
    return IsIn(column=name, values=given) if len(given) == len(values) else None


def _stored(column: exp.Column, schema: pa.Schema) -> str | None:
    if column.name in schema.names:
        return column.name
    found = [name for name in schema.names if name.lower() == column.name.lower()]
    return found[0] if len(found) == 1 else None


def _literal(tree: exp.Expr, kind: pa.DataType) -> pa.Scalar | None:
    """A literal in the column's own type; None where that would change its meaning."""
    tree = tree.unnest()
    if isinstance(tree, exp.Boolean):
        return pa.scalar(bool(tree.this), kind) if pa.types.is_boolean(kind) else None
    if isinstance(tree, exp.Cast | exp.TryCast):
        plain = type(tree) is exp.TryCast or not _says_more(tree)
        return _cast_literal(tree, kind) if plain and not tree.to.expressions else None
    sign = ""
    if isinstance(tree, exp.Neg):
        sign, tree = "-", tree.this.unnest()
    if not isinstance(tree, exp.Literal):
        return None
    if tree.is_string:
        return pa.scalar(tree.this, kind) if pa.types.is_string(kind) and not sign else None
    return _number(sign + tree.this, kind)


def _number(text: str, kind: pa.DataType) -> pa.Scalar | None:
    try:
        if pa.types.is_integer(kind):
            return pa.scalar(int(text), kind)
        if pa.types.is_float64(kind):
            return pa.scalar(float(text), kind)
        if pa.types.is_decimal(kind):
            if kind.precision > _DOUBLE_DIGITS and not _WHOLE.fullmatch(text):
                return None
            return pa.scalar(Decimal(text), kind)
    except (ValueError, OverflowError, InvalidOperation, pa.ArrowException):
        return None
    # float32 columns are compared as doubles by the engines: a rounded literal could prune wrongly.
    return None


def _cast_literal(tree: exp.Expression, kind: pa.DataType) -> pa.Scalar | None:
    inner, target = tree.this.unnest(), tree.args["to"]
    if isinstance(inner, exp.Literal) and not inner.is_string:
        if target.is_type(*exp.DataType.INTEGER_TYPES) and pa.types.is_integer(kind):
            return _number(inner.this, kind)
        if target.is_type("double") and pa.types.is_float64(kind):
            return _number(inner.this, kind)
        return None
    if not isinstance(inner, exp.Literal):
        return None
    try:
        if target.is_type("date") and pa.types.is_date(kind):
            return pa.scalar(dt.date.fromisoformat(inner.this.strip()), kind)
        if target.is_type(*exp.DataType.TEXT_TYPES) and pa.types.is_string(kind):
            return pa.scalar(inner.this, kind)
    except ValueError:
        return None
    return None
