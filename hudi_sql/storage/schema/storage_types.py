"""Arrow schemas of users and engines → the types that a Hudi table keeps."""

from __future__ import annotations

import pyarrow as pa

from hudi_sql.errors import SchemaError
from hudi_sql.storage.schema.avro_arrow import LIST_ELEMENT

__all__ = ["to_storage_schema", "to_storage_type"]

_MAX_PRECISION = 38
_PLAIN = {
    **{kind: kind for kind in (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64())},
    **{kind: pa.int32() for kind in (pa.int8(), pa.int16(), pa.uint8(), pa.uint16())},
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    **{kind: pa.string() for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{kind: pa.binary() for kind in (pa.binary(), pa.large_binary(), pa.binary_view())},
    **{kind: pa.date32() for kind in (pa.date32(), pa.date64())},
}


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
    stored = _nested(kind, column) if pa.types.is_nested(kind) else _flat(kind)
    if stored is None:
        raise SchemaError(
            f"Column {column} has type {kind}, which Hudi does not store",
            hint="Cast it to a type that Hudi stores: DECIMAL(20, 0) for unsigned numbers, TEXT for times.",
            column=column,
        )
    return stored


def _flat(kind: pa.DataType) -> pa.DataType | None:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_decimal(kind) and kind.precision <= _MAX_PRECISION and kind.scale >= 0:
        return pa.decimal128(kind.precision, kind.scale)
    return None


def _nested(kind: pa.DataType, column: str) -> pa.DataType | None:
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
    return None


def _field(field: pa.Field, column: str) -> pa.Field:
    path = field.name if column == field.name else f"{column}.{field.name}"
    return field.with_type(to_storage_type(field.type, path))
