"""Value ranges of columns out of Parquet footers, as Hudi reads them (metadata table notes §7)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_sql.storage.model.statistics import ColumnRange
from hudi_sql.storage.schema.meta_columns import META_COLUMNS

__all__ = ["ALWAYS_INDEXED", "footer_ranges", "indexed_columns"]

ALWAYS_INDEXED = (META_COLUMNS[0], META_COLUMNS[3], META_COLUMNS[2])
"""Meta columns that have ranges in every table with meta columns."""

_EPOCH_TYPES = {"INT32": pa.int32(), "INT64": pa.int64()}


def indexed_columns(
    schema: pa.Schema, *, listed: Sequence[str] = (), max_columns: int = 32
) -> tuple[str, ...]:
    """Columns whose ranges a new table keeps: those listed, else the first ones of a supported type.

    The three meta columns come first. `schema` is that of the table, without meta columns.
    """
    if listed:
        known = [name for name in listed if _leaf_type(schema, name) is not None]
    else:
        known = [field.name for field in schema if _is_supported(field.type)][:max_columns]
    return (*ALWAYS_INDEXED, *(name for name in known if name not in ALWAYS_INDEXED))


def footer_ranges(
    metadata: pq.FileMetaData, schema: pa.Schema, columns: Sequence[str]
) -> list[ColumnRange]:
    """Ranges of columns over all row groups of a file; columns that the file does not have are left out.

    Args:
        metadata: Footer of the file.
        schema: Columns of the table, meta columns included: the types of the bounds.
        columns: Names; fields of structs by dotted path.
    """
    paths = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    found = []
    for name in columns:
        kind = _leaf_type(schema, name)
        if name in paths and kind is not None:
            found.append(_range(metadata, paths[name], name, kind))
    return found


def _range(metadata: pq.FileMetaData, index: int, name: str, kind: pa.DataType) -> ColumnRange:
    lows, highs = [], []
    num_nulls = num_values = compressed = uncompressed = 0
    physical = metadata.schema.column(index).physical_type
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunk = group.column(index)
        num_values += chunk.num_values
        compressed += chunk.total_compressed_size
        uncompressed += chunk.total_uncompressed_size
        statistics = chunk.statistics
        if statistics is None:
            continue
        num_nulls += statistics.null_count or 0
        if statistics.has_min_max:
            lows.append(_comparable(statistics.min_raw, kind, physical))
            highs.append(_comparable(statistics.max_raw, kind, physical))
    return ColumnRange(
        column=name,
        type=kind,
        minimum=_scalar(min(lows), kind) if lows else None,
        maximum=_scalar(max(highs), kind) if highs else None,
        num_nulls=num_nulls,
        num_values=num_values,
        total_size_bytes=compressed,
        total_uncompressed_bytes=uncompressed,
    )


def _comparable(raw: object, kind: pa.DataType, physical: str) -> int | float | bool | bytes:
    """A bound as a number or bytes that order as the values do."""
    if isinstance(raw, bytes) and pa.types.is_decimal(kind):
        return int.from_bytes(raw, "big", signed=True)
    if isinstance(raw, bytes) and physical in ("INT32", "INT64"):
        return int(struct.unpack("<i" if physical == "INT32" else "<q", raw)[0])
    if isinstance(raw, str):
        return raw.encode("utf-8")
    assert isinstance(raw, int | float | bool | bytes), type(raw)
    return raw


def _scalar(value: int | float | bool | bytes, kind: pa.DataType) -> pa.Scalar:
    types = pa.types
    if types.is_decimal(kind):
        size = 16
        return pa.array([int(value).to_bytes(size, "little", signed=True)], pa.binary(size)).view(
            pa.decimal128(kind.precision, kind.scale)
        )[0]
    if types.is_string(kind):
        assert isinstance(value, bytes)
        return pa.scalar(value, pa.binary()).cast(pa.string())
    if types.is_date(kind) or types.is_time32(kind):
        return pa.scalar(value, pa.int32()).cast(kind)
    if types.is_timestamp(kind) or types.is_time64(kind):
        return pa.scalar(value, pa.int64()).cast(kind)
    return pa.scalar(value, kind)


def _is_supported(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind)


def _leaf_type(schema: pa.Schema, name: str) -> pa.DataType | None:
    """Type of a column or of a field inside structs; None where there is none or it has no range."""
    first, *rest = name.split(".")
    index = schema.get_field_index(first)
    if index < 0:
        return None
    kind = schema.field(index).type
    for part in rest:
        position = kind.get_field_index(part) if pa.types.is_struct(kind) else -1
        if position < 0:
            return None
        kind = kind.field(position).type
    return kind if _is_supported(kind) else None
