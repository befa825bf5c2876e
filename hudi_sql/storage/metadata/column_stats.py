"""Value ranges in the metadata table: wrappers and types of bounds (metadata table notes §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.storage.metadata.records import record_type
from hudi_sql.storage.model.statistics import ColumnRange

__all__ = ["StatsColumn", "bounds_of", "stats_payload", "value_type"]

_SIMPLE = {
    pa.bool_(): (2, "BooleanWrapper"),
    pa.int32(): (3, "IntWrapper"),
    pa.int64(): (4, "LongWrapper"),
    pa.float32(): (5, "FloatWrapper"),
    pa.float64(): (6, "DoubleWrapper"),
    pa.string(): (7, "StringWrapper"),
    pa.large_string(): (7, "StringWrapper"),
    pa.binary(): (8, "BytesWrapper"),
    pa.large_binary(): (8, "BytesWrapper"),
    pa.date32(): (12, "IntWrapper"),
    pa.time32("ms"): (13, "IntWrapper"),
    pa.time64("us"): (14, "LongWrapper"),
    pa.timestamp("ms", "UTC"): (15, "LongWrapper"),
    pa.timestamp("us", "UTC"): (16, "LongWrapper"),
    pa.timestamp("ns", "UTC"): (17, "LongWrapper"),
    pa.timestamp("ms"): (18, "LongWrapper"),
    pa.timestamp("us"): (19, "LongWrapper"),
    pa.timestamp("ns"): (20, "LongWrapper"),
}
_DECIMAL = 10
_EXACT = Context(prec=80)
"""Python's own context would round decimals of more than 28 digits."""
_BY_ORDINAL = {ordinal: kind for kind, (ordinal, _) in reversed(list(_SIMPLE.items()))}
_LEGACY = {
    "DateWrapper": pa.date32(),
    "TimestampMicrosWrapper": pa.timestamp("us", "UTC"),
    "TimeMicrosWrapper": pa.time64("us"),
    "LocalDateWrapper": pa.date32(),
}
"""Wrappers that only the statistics of version 8 use."""
_PLAIN = {
    "BooleanWrapper": pa.bool_(),
    "IntWrapper": pa.int32(),
    "LongWrapper": pa.int64(),
    "FloatWrapper": pa.float32(),
    "DoubleWrapper": pa.float64(),
    "StringWrapper": pa.string(),
    "BytesWrapper": pa.binary(),
}


@dataclass(frozen=True, slots=True)
class StatsColumn:
    """Bounds of one column, aligned with the records they come from."""

    minimum: pa.Array
    maximum: pa.Array


def value_type(kind: pa.DataType) -> tuple[int, str | None, str]:
    """Type ordinal, additional info and wrapper of a column's bounds."""
    if pa.types.is_decimal(kind):
        return _DECIMAL, f"{kind.precision},{kind.scale}", "BytesWrapper"
    ordinal, wrapper = _SIMPLE[kind]
    return ordinal, None, wrapper


def stats_payload(file_names: Sequence[str], ranges: Sequence[ColumnRange], *, is_tight: bool) -> pa.Array:
    """The payload of `column_stats` or `partition_stats` records; one range each."""
    kind = record_type().field("ColumnStatsMetadata").type
    rows = []
    for name, item in zip(file_names, ranges, strict=True):
        ordinal, info, wrapper = value_type(item.type)
        rows.append(
            {
                "fileName": name,
                "columnName": item.column,
                "minValue": _wrapped(item.minimum, wrapper),
                "maxValue": _wrapped(item.maximum, wrapper),
                "valueCount": item.num_values,
                "nullCount": item.num_nulls,
                "totalSize": item.total_size_bytes,
                "totalUncompressedSize": item.total_uncompressed_bytes,
                "isDeleted": False,
                "isTightBound": is_tight,
                "valueType": {"typeOrdinal": ordinal, "additionalInfo": info},
            }
        )
    return pa.array(rows, kind)


def bounds_of(stats: pa.StructArray) -> StatsColumn | None:
    """Bounds of records of one column, in the column's type; None when the records do not agree on one.

    Bounds that cannot be trusted are NULL: those of other types than the newest record's, where a widening is not
    exact, and the pair 0.0, 0.0 of floating columns, which is what writers leave that met NaN.
    """
    kind = _kind_of(stats)
    if kind is None:
        return None
    low = _unwrapped(stats.field("minValue"), kind)
    high = _unwrapped(stats.field("maxValue"), kind)
    if pa.types.is_floating(kind):
        suspect = pc.or_kleene(
            pc.or_kleene(pc.is_nan(low), pc.is_nan(high)),
            pc.and_kleene(pc.equal(low, pa.scalar(0, kind)), pc.equal(high, pa.scalar(0, kind))),
        )
        suspect = pc.fill_null(suspect, False)  # a value, not a flag
        low = pc.if_else(suspect, pa.scalar(None, kind), low)
        high = pc.if_else(suspect, pa.scalar(None, kind), high)
    return StatsColumn(low, high)


def _wrapped(bound: pa.Scalar | None, wrapper: str) -> dict[str, dict[str, object]] | None:
    if bound is None or not bound.is_valid:
        return None
    value: object
    if pa.types.is_decimal(bound.type):
        value = _minimal_bytes(int(bound.as_py().scaleb(bound.type.scale, _EXACT)))
    elif wrapper == "LongWrapper":
        value = bound.cast(pa.int64()).as_py()
    elif wrapper == "IntWrapper":
        value = bound.cast(pa.int32()).as_py()
    else:
        value = bound.as_py()
    return {wrapper: {"value": value}}


def _minimal_bytes(number: int) -> bytes:
    """Two's complement, big-endian, as few bytes as Java's BigInteger gives."""
    size = 1
    while not -(1 << (8 * size - 1)) <= number < 1 << (8 * size - 1):
        size += 1
    return number.to_bytes(size, "big", signed=True)


def _kind_of(stats: pa.StructArray) -> pa.DataType | None:
    """The type that the records are about, from the newest one that tells."""
    types = stats.field("valueType")
    told = types.field("typeOrdinal").filter(types.is_valid()) if types.null_count < len(types) else []
    if len(told):
        ordinal = told[-1].as_py()
        if ordinal != _DECIMAL:
            return _BY_ORDINAL.get(ordinal)
        info = types.field("additionalInfo").filter(types.is_valid())[-1].as_py()
        precision, scale = (int(part) for part in info.split(","))
        return pa.decimal128(precision, scale)
    for bound in (stats.field("minValue"), stats.field("maxValue")):
        for field in bound.type:
            column = bound.field(field.name)
            if column.null_count < len(column):
                return _LEGACY.get(field.name) or _PLAIN.get(field.name)
    return None


def _unwrapped(bounds: pa.StructArray, kind: pa.DataType) -> pa.Array:
    """Bounds as an array of the column's type."""
    found = pa.nulls(len(bounds), kind)
    outer = bounds.is_valid()
    for field in bounds.type:
        wrapper = bounds.field(field.name)
        if wrapper.null_count == len(wrapper):
            continue
        if not pa.types.is_struct(field.type) or field.type.get_field_index("value") < 0:
            continue
        valid = pc.and_(outer, wrapper.is_valid())
        values = _converted(wrapper.field("value"), field.name, kind)
        if values is not None:
            found = pc.if_else(valid, values, found)
    return found


def _converted(values: pa.Array, wrapper: str, kind: pa.DataType) -> pa.Array | None:
    types = pa.types
    if types.is_decimal(kind):
        return _decimals(values, kind) if wrapper == "BytesWrapper" else None
    if wrapper in _LEGACY:
        return values.cast(kind) if kind == _LEGACY[wrapper] else None
    expected = _SIMPLE[kind][1]
    if wrapper == expected:
        if wrapper == "IntWrapper":
            return values.cast(pa.int32()).cast(kind)
        return values.cast(pa.int64()).cast(kind) if wrapper == "LongWrapper" else values.cast(kind)
    # A column that was widened: integers keep their value, a FLOAT becomes another number in decimal text.
    if wrapper == "IntWrapper" and kind in (pa.int64(), pa.float64()):
        return values.cast(kind)
    if wrapper == "LongWrapper" and kind == pa.float64():
        return values.cast(kind, safe=False)
    return None


def _decimals(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Unscaled two's complement bytes as decimals; statistics have few distinct ones."""
    encoded = values.dictionary_encode()
    numbers = [
        Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-kind.scale, _EXACT)
        for raw in encoded.dictionary.to_pylist()
    ]
    return pa.array(numbers, kind).take(encoded.indices)
