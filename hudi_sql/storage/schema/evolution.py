"""Rows of an older schema as rows of a newer one, by Hudi's rules (write protocol notes §10).

Columns and nested fields are matched by name, case included; what is missing is NULL. Integers widen to longer integers
and to floating point, floats to doubles by way of their decimal text (1.1f is 1.1), numbers, dates and decimals turn
into text, text and bytes into one another. All else is refused.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudi_sql.errors import SchemaError
from hudi_sql.storage.schema.java_text import java_text

__all__ = ["adapt_array", "adapt_batch", "can_adapt", "same_type"]

_WIDER_INTEGERS = {
    pa.int8(): 1,
    pa.uint8(): 2,
    pa.int16(): 2,
    pa.uint16(): 3,
    pa.int32(): 3,
    pa.uint32(): 4,
    pa.int64(): 4,
}


def adapt_batch(batch: pa.RecordBatch, target_schema: pa.Schema) -> pa.RecordBatch:
    """Give a batch the columns, order and types of another schema.

    Raises:
        SchemaError: A type cannot become the other, or a required column is missing.
    """
    columns = []
    for field in target_schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            columns.append(_missing(field, batch.num_rows, field.name))
        else:
            columns.append(adapt_array(batch.column(index), field.type, field.name))
    if not columns:
        return _without_columns(batch.num_rows)
    return pa.RecordBatch.from_arrays(columns, schema=target_schema)


def adapt_array(array: pa.Array, target: pa.DataType, column: str) -> pa.Array:
    """Turn an array into another type by Hudi's rules. `column` names it in errors."""
    source = array.type
    if same_type(source, target):
        return array
    if pa.types.is_dictionary(source) and not pa.types.is_dictionary(target):
        return adapt_array(array.dictionary, target, column).take(array.indices)
    if pa.types.is_null(source):
        return pa.nulls(len(array), target)
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return _adapt_struct(array, target, column)
    if _is_list(source) and pa.types.is_list(target):
        return _adapt_list(array, target, column)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return _adapt_map(array, target, column)
    if not can_adapt(source, target):
        raise SchemaError(
            f"Column {column} has type {source} in a file, which cannot be read as {target}",
            hint="Hudi widens numbers, and turns numbers, dates and bytes into text; nothing else.",
            column=column,
        )
    return _adapt_flat(array, target, column)


def can_adapt(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of one type may stand in a column of the other."""
    if same_type(source, target) or pa.types.is_null(source):
        return True
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        return all(
            can_adapt(source.field(field.name).type, field.type)
            if source.get_field_index(field.name) >= 0
            else field.nullable
            for field in (target.field(index) for index in range(target.num_fields))
        )
    if _is_list(source) and pa.types.is_list(target):
        return can_adapt(source.value_type, target.value_type)
    if pa.types.is_map(source) and pa.types.is_map(target):
        return can_adapt(source.key_type, target.key_type) and can_adapt(source.item_type, target.item_type)
    return _can_adapt_flat(source, target)


def same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types agree in everything, names of nested fields included.

    What the entries of a map are called does not count: pyarrow reads the column's own name for it.
    """
    if pa.types.is_map(one) and pa.types.is_map(other):
        pairs = [(one.key_field, other.key_field), (one.item_field, other.item_field)]
        return all(a.nullable == b.nullable and same_type(a.type, b.type) for a, b in pairs)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return _same_fields(one, other)
    if pa.types.is_list(one) and pa.types.is_list(other):
        return _same_field(one.value_field, other.value_field)
    return bool(one.equals(other, check_metadata=True))


def _same_fields(one: pa.StructType, other: pa.StructType) -> bool:
    if one.num_fields != other.num_fields:
        return False
    return all(_same_field(one.field(index), other.field(index)) for index in range(one.num_fields))


def _same_field(one: pa.Field, other: pa.Field) -> bool:
    is_alike = one.name == other.name and one.nullable == other.nullable
    return is_alike and same_type(one.type, other.type)


def _can_adapt_flat(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_string(target):
        return _has_text(source)
    if pa.types.is_integer(source):
        return _can_adapt_integer(source, target)
    if pa.types.is_floating(source):
        return bool(pa.types.is_floating(target) and source.bit_width <= target.bit_width)
    if pa.types.is_decimal(source):
        whole = source.precision - source.scale
        fits = pa.types.is_decimal128(target) and target.scale >= source.scale
        return bool(fits and target.precision - target.scale >= whole)
    if pa.types.is_date(source):
        return bool(target == pa.date32())
    if pa.types.is_timestamp(source):
        return bool(pa.types.is_timestamp(target))
    if pa.types.is_time(source):
        return bool(pa.types.is_time(target) and source.bit_width <= target.bit_width)
    return _is_bytes(source) and bool(pa.types.is_binary(target))


def _can_adapt_integer(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_integer(target):
        return _WIDER_INTEGERS.get(source, 9) <= _WIDER_INTEGERS.get(target, 0)
    if pa.types.is_decimal128(target):
        digits = 10 if source.bit_width <= 32 else 19
        return bool(target.precision - target.scale >= digits)
    return bool(pa.types.is_floating(target))


def _has_text(kind: pa.DataType) -> bool:
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(is_number or pa.types.is_date(kind) or _is_bytes(kind))


def _adapt_flat(array: pa.Array, target: pa.DataType, column: str) -> pa.Array:
    source = array.type
    try:
        if pa.types.is_floating(source) and pa.types.is_floating(target) and source != target:
            return array.cast(pa.string()).cast(target)
        if pa.types.is_string(target) and not _is_bytes(source):
            return java_text(array)
        # An integer above 2^53 loses digits as a double, in Hudi too; a nanosecond has no place in microseconds.
        return array.cast(target, safe=not (pa.types.is_floating(target) or pa.types.is_timestamp(target)))
    except pa.ArrowException as exc:
        raise SchemaError(f"Column {column} of type {source} has a value that is no {target}: {exc}") from exc


def _adapt_struct(array: pa.StructArray, target: pa.StructType, column: str) -> pa.Array:
    fields = [target.field(index) for index in range(target.num_fields)]
    children = []
    for field in fields:
        index = array.type.get_field_index(field.name)
        path = f"{column}.{field.name}"
        if index < 0:
            children.append(_missing(field, len(array), path))
        else:
            children.append(adapt_array(array.field(index), field.type, path))
    return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(array))


def _adapt_list(array: pa.ListArray, target: pa.ListType, column: str) -> pa.Array:
    if pa.types.is_fixed_size_list(array.type) or pa.types.is_large_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    array = _unsliced(array)
    values = adapt_array(array.values, target.value_type, f"{column}.element")
    return pa.ListArray.from_arrays(array.offsets, values, type=target, mask=_mask(array))


def _adapt_map(array: pa.MapArray, target: pa.MapType, column: str) -> pa.Array:
    array = _unsliced(array)
    keys = adapt_array(array.keys, target.key_type, f"{column}.key")
    items = adapt_array(array.items, target.item_type, f"{column}.value")
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=target, mask=_mask(array))


def _unsliced(array: pa.Array) -> pa.Array:
    # A slice keeps the offsets of the whole, which do not go together with a new mask.
    return array.take(pa.array(np.arange(len(array)))) if array.offset else array


def _mask(array: pa.Array) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None


def _missing(field: pa.Field, num_rows: int, column: str) -> pa.Array:
    if not field.nullable and num_rows:
        raise SchemaError(f"Column {column} is required and missing in a file", column=column)
    return pa.nulls(num_rows, field.type)


def _without_columns(num_rows: int) -> pa.RecordBatch:
    """A batch that has rows and no columns."""
    rows = pa.nulls(num_rows)
    return pa.RecordBatch.from_arrays([rows], names=["rows"]).select([])


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
