"""Arrow schemas of users and engines → the types that a Hudi table keeps."""

from __future__ import annotations

import pyarrow as pa

from hudi_sql.errors import SchemaError
from hudi_sql.storage.schema.avro_arrow import LIST_ELEMENT

__all__ = ["to_storage_schema", "to_storage_type"]

_MAX_PRECISION = 38


def to_storage_schema(schema: pa.Schema) -> pa.Schema:
    """Replace every type by the one that stores it: small integers are INT, all text is STRING, times are micros.

    Names of list elements come out as the one that is stored, whatever the engine calls them.

    Raises:
        SchemaError: A type has no counterpart.

    Example:
        >>> to_storage_schema(pa.schema([("a", pa.int8()), ("b", pa.large_string())])).types
        [DataType(int32), DataType(string)]
    """
    return pa.schema([_field(field, field.name) for field in schema])


def to_storage_type(kind: pa.DataType, column: str) -> pa.DataType:
    """Give the stored type of one column."""
    if pa.types.is_dictionary(kind):
        return to_storage_type(kind.value_type, column)
    if pa.types.is_integer(kind):
        return _integer(kind, column)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_decimal(kind) and kind.precision <= _MAX_PRECISION and kind.scale >= 0:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_struct(kind):
        return pa.struct([_field(kind.field(index), column) for index in range(kind.num_fields)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        value = kind.value_field
        element = to_storage_type(value.type, f"{column}.element")
        return pa.list_(pa.field(LIST_ELEMENT, element, nullable=value.nullable))
    if pa.types.is_map(kind):
        value = to_storage_type(kind.item_type, f"{column}.value")
        return pa.map_(
            to_storage_type(kind.key_type, f"{column}.key"),
            pa.field("value", value, nullable=kind.item_field.nullable),
        )
    if kind in (pa.bool_(), pa.float32(), pa.float64(), pa.string(), pa.binary()):
        return kind
    raise SchemaError(
        f"Column {column} has type {kind}, which Hudi does not store",
        hint="Cast it to a type that Hudi stores.",
        column=column,
    )


def _field(field: pa.Field, column: str) -> pa.Field:
    path = field.name if column == field.name else f"{column}.{field.name}"
    return field.with_type(to_storage_type(field.type, path))


def _integer(kind: pa.DataType, column: str) -> pa.DataType:
    if kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()):
        return pa.int32()
    if kind in (pa.int64(), pa.uint32()):
        return pa.int64()
    raise SchemaError(
        f"Column {column} has type {kind}, which Hudi does not store",
        hint="Cast it to DECIMAL(20, 0) or BIGINT.",
        column=column,
    )
