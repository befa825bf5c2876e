"""Value ranges of columns out of Parquet footers, as the metadata table keeps them.

They are what Hudi itself reads out of the footer of a file (`ParquetUtils.readColumnStatsFromMetadata`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_sql.errors import SchemaError
from hudi_sql.storage.base_file.key_order import java_text_order
from hudi_sql.storage.model.statistics import ColumnRange
from hudi_sql.storage.schema.evolution import adapt_array
from hudi_sql.storage.schema.meta_columns import META_COLUMNS

__all__ = ["footer_ranges", "indexed_columns"]

_INDEXED_META_COLUMNS = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


def indexed_columns(
    schema: pa.Schema, *, listed: Sequence[str] = (), max_columns: int = 32
) -> tuple[str, ...]:
    """Columns whose ranges the metadata table keeps (metadata table notes §7).

    Args:
        schema: Of the table.
        listed: Columns asked for by the user, nested ones by dotted path; when empty, the first of the schema.
        max_columns: How many when none are listed.

    Example:
        >>> indexed_columns(pa.schema([("id", pa.int32()), ("xs", pa.list_(pa.int32()))]))
        ('_hoodie_commit_time', '_hoodie_partition_path', '_hoodie_record_key', 'id')
    """
    if listed:
        chosen = [name for name in listed if name not in META_COLUMNS and _is_indexable(schema, name)]
    else:
        own = [name for name in schema.names if name not in META_COLUMNS and _is_indexable(schema, name)]
        chosen = own[:max_columns]
    return (*_INDEXED_META_COLUMNS, *dict.fromkeys(chosen))


def footer_ranges(
    metadata: pq.FileMetaData, table_schema: pa.Schema, columns: Sequence[str]
) -> list[ColumnRange]:
    """Ranges of some columns over a whole file, as Hudi computes them from the footer.

    Columns that the file lacks, or has no statistics of, are left out; so are all of a file without row
    groups. A column of nothing but NULLs has the
    bounds that Hudi gives it: zero for numbers, dates and times, `false`, and none for text, bytes and decimals;
    its counts say what it is. NaN is no bound; a column of nothing but NaN has none.
    """
    found: list[ColumnRange] = []
    if metadata.num_row_groups == 0:
        return found
    for column in columns:
        kind = _table_type(table_schema, column)
        index = _column_index(metadata, column)
        if kind is None or index is None:
            continue
        chunks = list(_chunks(metadata, index, kind, column))
        if all(chunk.is_known for chunk in chunks):
            found.append(_merged(column, kind, chunks))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunk:
    """One column in one row group; bounds in the type of the table."""

    minimum: pa.Scalar | None
    maximum: pa.Scalar | None
    is_known: bool
    """Whether the footer counts NULLs (and, with rows that are not, has or could have bounds)."""
    num_nulls: int
    num_values: int
    size_bytes: int
    uncompressed_bytes: int


def _chunks(metadata: pq.FileMetaData, index: int, kind: pa.DataType, column: str) -> Iterator[_Chunk]:
    decode = _decoder(metadata.schema.column(index))
    for number in range(metadata.num_row_groups):
        chunk = metadata.row_group(number).column(index)
        statistics = chunk.statistics
        bounds: tuple[pa.Scalar | None, pa.Scalar | None] = (None, None)
        is_known = chunk.num_values == 0
        num_nulls = 0
        if statistics is not None and statistics.has_null_count:
            is_known, num_nulls = True, statistics.null_count
        if statistics is not None and statistics.has_min_max and decode is not None:
            bounds = (
                _in_table_type(decode(statistics.min_raw), kind, column),
                _in_table_type(decode(statistics.max_raw), kind, column),
            )
        if None in bounds or any(_is_nan(bound) for bound in bounds):
            bounds = (None, None)  # parquet-mr leaves NaN in, which says nothing of the other values
        yield _Chunk(
            minimum=bounds[0],
            maximum=bounds[1],
            is_known=is_known,
            num_nulls=num_nulls,
            num_values=chunk.num_values,
            size_bytes=chunk.total_compressed_size,
            uncompressed_bytes=chunk.total_uncompressed_size,
        )


def _merged(column: str, kind: pa.DataType, chunks: Sequence[_Chunk]) -> ColumnRange:
    # parquet-mr has a zero where a chunk of primitive values has no bounds (no values, or NULLs only), and Hudi
    # takes it for one. Bounds that include zero are wider, never wrong; for NaN they would be wrong.
    zero = _zero(kind)
    lows, highs = [], []
    is_unbounded = False
    for chunk in chunks:
        has_values = chunk.num_values > chunk.num_nulls
        if chunk.minimum is not None and chunk.maximum is not None:
            lows.append(chunk.minimum)
            highs.append(chunk.maximum)
        elif not has_values and zero is not None:
            lows.append(zero)
            highs.append(zero)
        elif has_values:
            is_unbounded = True
    known = bool(lows) and not is_unbounded
    return ColumnRange(
        column=column,
        type=kind,
        minimum=min(lows, key=_order(kind)) if known else None,
        maximum=max(highs, key=_order(kind)) if known else None,
        num_nulls=sum(chunk.num_nulls for chunk in chunks),
        num_values=sum(chunk.num_values for chunk in chunks),
        total_size_bytes=sum(chunk.size_bytes for chunk in chunks),
        total_uncompressed_bytes=sum(chunk.uncompressed_bytes for chunk in chunks),
    )


def _is_nan(bound: pa.Scalar | None) -> bool:
    return bound is not None and pa.types.is_floating(bound.type) and math.isnan(bound.as_py())


def _zero(kind: pa.DataType) -> pa.Scalar | None:
    if pa.types.is_boolean(kind):
        return pa.scalar(False, kind)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return pa.scalar(0, kind)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.scalar(0, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.scalar(0, pa.int64()).cast(kind)
    return None


def _order(kind: pa.DataType) -> Callable[[pa.Scalar], Any]:
    if pa.types.is_string(kind):
        return lambda value: java_text_order(value.as_py())
    if pa.types.is_temporal(kind):
        number = pa.int32() if kind.bit_width == 32 else pa.int64()
        return lambda value: value.cast(number).as_py()
    return lambda value: value.as_py()


def _decoder(column: pq.ColumnSchema) -> Callable[[object], pa.Scalar] | None:
    """How the raw bounds of a column become values; None for types whose bounds say nothing."""
    logical = json.loads(column.logical_type.to_json())
    name = logical["Type"]
    physical = column.physical_type
    if name == "Decimal":
        kind = pa.decimal128(logical["precision"], logical["scale"])
        return lambda raw: pa.scalar(_decimal(raw, logical["scale"]), kind)
    if physical == "BYTE_ARRAY":
        text = name in ("String", "Enum", "JSON")
        return (lambda raw: pa.scalar(_text(raw))) if text else (lambda raw: pa.scalar(raw, pa.binary()))
    if name == "Timestamp":
        stamp = pa.timestamp(_UNITS[logical["timeUnit"]], "UTC" if logical["isAdjustedToUTC"] else None)
        return lambda raw: pa.scalar(raw, pa.int64()).cast(stamp)
    if name == "Time":
        unit = _UNITS[logical["timeUnit"]]
        clock = pa.time32(unit) if unit == "ms" else pa.time64(unit)
        return lambda raw: pa.scalar(raw, pa.int32() if unit == "ms" else pa.int64()).cast(clock)
    if name == "Date":
        return lambda raw: pa.scalar(raw, pa.int32()).cast(pa.date32())
    plain = {
        "BOOLEAN": pa.bool_(),
        "INT32": pa.int32(),
        "INT64": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
    }.get(physical)
    # Unsigned integers and INT96 are ordered otherwise than they are stored.
    if plain is None or (name == "Int" and not logical.get("isSigned", True)):
        return None
    return lambda raw: pa.scalar(raw, plain)


def _decimal(raw: object, scale: int) -> Decimal:
    unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(str(raw))
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def _text(raw: object) -> str | None:
    assert isinstance(raw, bytes)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None  # cut in the middle of a character: a bound for bytes, not for text


def _in_table_type(value: pa.Scalar, kind: pa.DataType, column: str) -> pa.Scalar | None:
    """A bound of an older type in the type of the table; None where the order is not kept."""
    if not value.is_valid:
        return None
    if value.type == kind:
        return value
    if pa.types.is_string(kind) != pa.types.is_string(value.type):
        return None  # numbers as text have another order
    try:
        return adapt_array(pa.array([value.as_py()], value.type), kind, column)[0]
    except (SchemaError, pa.ArrowException):
        return None


def _table_type(schema: pa.Schema, column: str) -> pa.DataType | None:
    """Type of a column by dotted path; None when there is none, or one that has no range."""
    first, *rest = column.split(".")
    index = schema.get_field_index(first)
    if index < 0:
        return pa.string() if column in META_COLUMNS else None
    kind = schema.field(index).type
    for name in rest:
        inner = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if inner < 0:
            return None
        kind = kind.field(inner).type
    return None if pa.types.is_nested(kind) else kind


def _is_indexable(schema: pa.Schema, column: str) -> bool:
    return _table_type(schema, column) is not None


def _column_index(metadata: pq.FileMetaData, column: str) -> int | None:
    schema = metadata.schema
    for index in range(len(schema)):
        if schema.column(index).path == column:
            return index
    return None
