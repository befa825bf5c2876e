"""Engine rows to the exact types of the table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import ConstraintError, SchemaError

__all__ = ["cast_column", "cast_table", "check_not_null", "plain_column"]

_DAYS = (-719_162, 2_932_896)
"""First and last day of the years 1 to 9999, counted from 1970."""
_MICROS = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)


def cast_column(column: pa.ChunkedArray, field: pa.Field, *, table: str) -> pa.ChunkedArray:
    """Cast one column to a stored type, losing nothing.

    Raises:
        ConstraintError: A value does not fit the type.
        SchemaError: There is no such cast.
    """
    if column.type == field.type:
        return _in_range(column, field, table)
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), field.type)])
    try:
        return _in_range(column.cast(field.type), field, table)
    except pa.ArrowNotImplementedError as exc:
        raise SchemaError(
            f"Column {field.name} has type {field.type} and cannot take values of type {column.type}",
            hint="Cast the value in the statement.",
            table=table,
            column=field.name,
        ) from exc
    except pa.ArrowInvalid as exc:
        raise ConstraintError(
            f"A value does not fit column {field.name} of type {field.type}: {exc}",
            hint="Cast or round the value in the statement.",
            table=table,
            column=field.name,
        ) from exc


def _in_range(column: pa.ChunkedArray, field: pa.Field, table: str) -> pa.ChunkedArray:
    """Refuse times that other readers do not know: infinity, which comes as an extreme number, and years above 9999."""
    if pa.types.is_timestamp(field.type):
        ends, number = _MICROS, pa.int64()
    elif pa.types.is_date32(field.type):
        ends, number = _DAYS, pa.int32()
    else:
        return column
    found = pc.min_max(column.cast(number))
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is not None and (low < ends[0] or high > ends[1]):
        raise ConstraintError(
            f"A value of column {field.name} lies outside the years 1 to 9999",
            hint="Hudi has no infinite times; use NULL or a date within these years.",
            table=table,
            column=field.name,
        )
    return column


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Views and dictionaries, which many kernels do not take, as ordinary arrays."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.string())
    if pa.types.is_binary_view(column.type):
        return column.cast(pa.binary())
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def cast_table(rows: pa.Table, schema: pa.Schema, *, table: str) -> pa.Table:
    """Cast columns by position to the fields of a schema."""
    columns = [
        cast_column(column, field, table=table) for column, field in zip(rows.columns, schema, strict=True)
    ]
    # Nullability is checked by `check_not_null`; the schema of the data takes the table's own fields.
    return pa.Table.from_arrays(columns, schema=schema)


def check_not_null(rows: pa.Table, schema: pa.Schema, *, table: str) -> None:
    """Refuse NULL in columns that the table declares NOT NULL.

    Raises:
        ConstraintError: With the column's name.
    """
    for name in rows.column_names:
        if schema.field(name).nullable or not rows[name].null_count:
            continue
        index = pc.index(pc.is_null(rows[name]), value=True).as_py()
        raise ConstraintError(
            f"Column {name} is NOT NULL and would get NULL (row {index} of what the statement writes)",
            hint="Give it a value, or filter such rows out.",
            table=table,
            column=name,
        )
