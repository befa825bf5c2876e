"""Engine rows to the exact types of the table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import ConstraintError, SchemaError

__all__ = ["cast_column", "cast_table", "check_not_null", "plain_column"]


def cast_column(column: pa.ChunkedArray, field: pa.Field, *, table: str) -> pa.ChunkedArray:
    """Cast one column to a stored type, losing nothing.

    Raises:
        ConstraintError: A value does not fit the type.
        SchemaError: There is no such cast.
    """
    if column.type == field.type:
        return column
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), field.type)])
    try:
        return column.cast(field.type)
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
