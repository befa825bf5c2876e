"""Engine rows to the exact types of the table."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import ConstraintError, SchemaError

__all__ = ["cast_column", "cast_table", "check_not_null", "plain_column"]

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
    if by_position:
        named = _renamed(column.type, field.type)
        if named != column.type:
            column = pa.chunked_array([chunk.view(named) for chunk in column.chunks], named)
    if (unknown := _unknown_field(column.type, field.type)) is not None:
        raise SchemaError(
            f"Column {field.name} has no field {unknown}: its type is {field.type}",
            hint="Build the struct with the fields of the column.",
            table=table,
            column=field.name,
        )
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


def _renamed(given: pa.DataType, stored: pa.DataType) -> pa.DataType:
    """A given type with the stored names of struct fields; as it is where there are more or fewer of them."""
    if pa.types.is_struct(given) and pa.types.is_struct(stored) and given.num_fields == stored.num_fields:
        pairs = [(given.field(number), stored.field(number)) for number in range(given.num_fields)]
        return pa.struct(
            [mine.with_name(own.name).with_type(_renamed(mine.type, own.type)) for mine, own in pairs]
        )
    if pa.types.is_map(given) and pa.types.is_map(stored) and not pa.types.is_null(given.key_type):
        return pa.map_(_renamed(given.key_type, stored.key_type), _renamed(given.item_type, stored.item_type))
    if _is_list(given) and _is_list(stored):
        value = given.value_field.with_type(_renamed(given.value_type, stored.value_type))
        return pa.large_list(value) if pa.types.is_large_list(given) else pa.list_(value)
    return given


def _unknown_field(given: pa.DataType, stored: pa.DataType) -> str | None:
    """A struct field that is given and not stored, which a cast would drop in silence."""
    if pa.types.is_struct(given) and pa.types.is_struct(stored):
        for number in range(given.num_fields):
            mine = given.field(number)
            if stored.get_field_index(mine.name) < 0:
                return str(mine.name)
            if (found := _unknown_field(mine.type, stored.field(mine.name).type)) is not None:
                return found
    if pa.types.is_map(given) and pa.types.is_map(stored):
        return _unknown_field(given.item_type, stored.item_type)
    if _is_list(given) and _is_list(stored):
        return _unknown_field(given.value_type, stored.value_type)
    return None


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


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
