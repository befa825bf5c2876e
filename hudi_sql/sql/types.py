"""SQL types ↔ storage types, and the casts between a value and the column that stores it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from hudi_sql.errors import BindError, SchemaError
from hudi_sql.sql.model import StoreAssignment

__all__ = ["cast_for_store", "check_store_assignment", "spark_cast_for_store", "sql_type", "storage_type"]

Type = exp.DataType.Type

_SIMPLE = {
    Type.BOOLEAN: pa.bool_(),
    Type.INT: pa.int32(),
    Type.BIGINT: pa.int64(),
    Type.FLOAT: pa.float32(),
    Type.DOUBLE: pa.float64(),
    Type.DATE: pa.date32(),
    Type.TEXT: pa.string(),
    Type.UUID: pa.string(),
    Type.JSON: pa.string(),
    Type.BINARY: pa.binary(),
    Type.VARBINARY: pa.binary(),
    Type.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    Type.TIMESTAMPLTZ: pa.timestamp("us", "UTC"),
    Type.TIMESTAMPNTZ: pa.timestamp("us"),
    Type.DATETIME: pa.timestamp("us"),
}
_NARROW = {Type.TINYINT: "INT", Type.SMALLINT: "INT"}
_PLAIN_DECIMAL = {"spark": (10, 0), "duckdb": (18, 3), "datafusion": (38, 10)}
"""Digits, and digits after the point, of DECIMAL alone: each dialect has its own."""
_BOUNDED = (Type.CHAR, Type.VARCHAR, Type.NCHAR, Type.NVARCHAR)


def storage_type(kind: exp.DataType, *, dialect: str, column: str, notices: list[str]) -> pa.DataType:
    """Type in which a declared type is stored; what becomes of narrower ones goes to `notices`.

    Raises:
        SchemaError: Hudi has no such type.
    """
    name = kind.this
    if name is Type.TIMESTAMP:
        # Spark's TIMESTAMP is an instant; the engines' own is a wall-clock time.
        return pa.timestamp("us", "UTC") if dialect == "spark" else pa.timestamp("us")
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name in _NARROW:
        notices.append(f"Column {column} is stored as INT: Hudi has no {name.value}.")
        return pa.int32()
    if name in _BOUNDED:
        if kind.expressions:
            notices.append(f"Column {column} is stored as STRING: lengths are not kept.")
        return pa.string()
    if name is Type.DECIMAL:
        return _decimal(kind, dialect, column)
    return _nested_type(kind, dialect=dialect, column=column, notices=notices)


def _decimal(kind: exp.DataType, dialect: str, column: str) -> pa.DataType:
    sizes = [int(item.name) for item in kind.expressions]
    precision, scale = (*sizes, 0)[:2] if sizes else _PLAIN_DECIMAL[dialect]
    if not 0 < precision <= 38 or not 0 <= scale <= precision:
        raise SchemaError(
            f"Column {column} cannot be DECIMAL({precision}, {scale})",
            hint="Up to 38 digits, and no more of them after the point.",
            column=column,
        )
    return pa.decimal128(precision, scale)


def _nested_type(kind: exp.DataType, *, dialect: str, column: str, notices: list[str]) -> pa.DataType:
    name = kind.this

    def inner(item: exp.Expression) -> pa.DataType:
        assert isinstance(item, exp.DataType)
        return storage_type(item, dialect=dialect, column=column, notices=notices)

    if name in (Type.ARRAY, Type.LIST) and kind.expressions:
        return pa.list_(inner(kind.expressions[0]))
    if name is Type.MAP and len(kind.expressions) == 2:
        return pa.map_(inner(kind.expressions[0]), inner(kind.expressions[1]))
    if name is Type.STRUCT and kind.expressions:
        return pa.struct([pa.field(item.name, inner(item.args["kind"])) for item in kind.expressions])
    raise SchemaError(
        f"Column {column} has type {kind.sql(dialect or None)}, which Hudi does not have",
        hint="Use BOOLEAN, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, DATE, TIMESTAMP, STRING, BINARY, or arrays, maps and "
        "structs of them.",
        column=column,
    )


def sql_type(kind: pa.DataType) -> exp.DataType | None:
    """SQL type of a stored column; None for nested ones, which are cast as Arrow data."""
    if pa.types.is_decimal(kind):
        return exp.DataType.build(f"decimal({kind.precision}, {kind.scale})")
    if pa.types.is_timestamp(kind):
        return exp.DataType(this=Type.TIMESTAMPTZ if kind.tz else Type.TIMESTAMP)
    for name, stored in _SIMPLE.items():
        if stored == kind:
            return exp.DataType(this=name)
    return None


def cast_for_store(value: exp.Expression, kind: pa.DataType) -> exp.Expression:
    """Put a strict cast to a stored type around a value; NULL needs none."""
    target = sql_type(kind)
    if target is None:
        return value
    return exp.Cast(this=value, to=target)


def spark_cast_for_store(value: exp.Expression, stored: pa.DataType, given: pa.DataType) -> exp.Expression:
    """The same with Spark's meaning: fractions are cut off, times and bytes have Spark's text."""
    if pa.types.is_integer(stored) and (pa.types.is_floating(given) or pa.types.is_decimal(given)):
        value = exp.Trunc(this=value)
    elif pa.types.is_string(stored):
        if pa.types.is_timestamp(given):
            # Spark leaves out zeros at the end of a fraction, and the point with them.
            text = exp.TimeToStr(this=value, format=exp.Literal.string("%Y-%m-%d %H:%M:%S.%f"))
            return exp.RegexpReplace(
                this=text, expression=exp.Literal.string(r"\.?0+$"), replacement=exp.Literal.string("")
            )
        if _kind(given) == "binary":
            return exp.Decode(this=value, charset=exp.Literal.string("utf-8"))
    return cast_for_store(value, stored)


def check_store_assignment(
    given: pa.DataType, stored: pa.DataType, rule: StoreAssignment, *, column: str, table: str
) -> None:
    """Refuse what Spark's INSERT refuses before anything runs (ANSI store assignment).

    Raises:
        BindError: With both types.
    """
    if rule is not StoreAssignment.SPARK_ANSI or _is_assignable(given, stored):
        return
    raise BindError(
        f"Column {column} has type {stored} and cannot take values of type {given}",
        hint=f"Write CAST(… AS {_name(stored)}).",
        table=table,
        column=column,
    )


def _is_assignable(given: pa.DataType, stored: pa.DataType) -> bool:
    kinds = _kind(given), _kind(stored)
    if "null" in kinds:
        return True
    if kinds == ("nested", "nested"):
        return _is_nested_assignable(given, stored)
    if kinds[0] == kinds[1]:
        return True
    if kinds[1] == "text":
        return kinds[0] in ("number", "boolean", "date", "time", "binary")
    return kinds in (("date", "time"), ("time", "date"))


def _is_nested_assignable(given: pa.DataType, stored: pa.DataType) -> bool:
    """Elements, keys and values likewise; fields of structs by position, and all of them."""
    if pa.types.is_struct(given) and pa.types.is_struct(stored):
        return bool(given.num_fields == stored.num_fields) and all(
            _is_assignable(given.field(number).type, stored.field(number).type)
            for number in range(given.num_fields)
        )
    if pa.types.is_map(given) and pa.types.is_map(stored):
        return _is_assignable(given.key_type, stored.key_type) and _is_assignable(
            given.item_type, stored.item_type
        )
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(test(given) for test in lists) and pa.types.is_list(stored):
        return _is_assignable(given.value_type, stored.value_type)
    return False


def _kind(kind: pa.DataType) -> str:
    tests: Sequence[tuple[str, Sequence[object]]] = (
        ("null", (pa.types.is_null,)),
        ("boolean", (pa.types.is_boolean,)),
        ("number", (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)),
        ("text", (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)),
        ("binary", (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)),
        ("date", (pa.types.is_date,)),
        ("time", (pa.types.is_timestamp,)),
    )
    for name, checks in tests:
        if any(check(kind) for check in checks):  # type: ignore[operator]
            return name
    return "nested"


def _name(kind: pa.DataType) -> str:
    found = sql_type(kind)
    return found.sql("spark") if found is not None else str(kind)
