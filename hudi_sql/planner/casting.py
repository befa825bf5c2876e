"""Engine rows to the exact types of the table."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import ConstraintError, SchemaError
from hudi_sql.sql.names import find_column

__all__ = ["cast_column", "cast_table", "check_not_null", "plain_column"]

_UNNAMED = re.compile(r"|(?:element|col|c)\d+")
"""What the engines call the fields of a struct whose writer gave no names."""
_DAYS = (-719_162, 2_932_896)
"""First and last day of the years 1 to 9999, counted from 1970."""
_MICROS = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)


def cast_column(
    column: pa.ChunkedArray, field: pa.Field, *, table: str, by_position: bool = False
) -> pa.ChunkedArray:
    """Cast one column to a stored type, losing nothing.

    Fields of structs go by name, and one that the table does not have is refused; with `by_position` they take the
    stored names in their order, as Spark does it.

    Raises:
        ConstraintError: A value does not fit the type.
        SchemaError: There is no such cast.
    """
    if column.type == field.type:
        return _in_range(column, field, table)
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), field.type)])
    named = _with_stored_names(column.type, field.type, field.name, table, by_position=by_position)
    if named != column.type:
        column = pa.chunked_array([chunk.view(named) for chunk in column.chunks], named)
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


def _with_stored_names(
    given: pa.DataType, stored: pa.DataType, column: str, table: str, *, by_position: bool
) -> pa.DataType:
    """The given type with the fields of structs spelled as they are stored: Arrow drops a field of another name.

    Fields that have no names of their own (`row(1, 2)`), or all of them with `by_position`, are those of the same
    place.

    Raises:
        SchemaError: The value has a field that the column has not.
    """
    if pa.types.is_struct(given) and pa.types.is_struct(stored):
        names = [stored.field(number).name for number in range(stored.num_fields)]
        own = [given.field(number).name for number in range(given.num_fields)]
        is_unnamed = all(_UNNAMED.fullmatch(name) for name in own) and not {*own} & {*names}
        if len(own) == len(names) and (by_position or is_unnamed):
            found: list[str | None] = [*names]
        else:
            found = [find_column(name, names) for name in own]
        fields = []
        for number, name in enumerate(found):
            if name is None:
                raise SchemaError(
                    f"Column {column} has no field {own[number]}",
                    hint=f"Its fields are {', '.join(names)}.",
                    table=table,
                    column=column,
                )
            kind = _with_stored_names(
                given.field(number).type,
                stored.field(name).type,
                f"{column}.{name}",
                table,
                by_position=by_position,
            )
            fields.append(given.field(number).with_name(name).with_type(kind))
        return pa.struct(fields)
    if pa.types.is_list(given) and pa.types.is_list(stored):
        item = _with_stored_names(given.value_type, stored.value_type, column, table, by_position=by_position)
        return pa.list_(given.value_field.with_type(item)) if item != given.value_type else given
    if pa.types.is_map(given) and pa.types.is_map(stored):
        item = _with_stored_names(given.item_type, stored.item_type, column, table, by_position=by_position)
        return pa.map_(given.key_type, item) if item != given.item_type else given
    return given


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


def cast_table(rows: pa.Table, schema: pa.Schema, *, table: str, by_position: bool = False) -> pa.Table:
    """Cast columns by position to the fields of a schema; see `cast_column`."""
    columns = [
        cast_column(column, field, table=table, by_position=by_position)
        for column, field in zip(rows.columns, schema, strict=True)
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
