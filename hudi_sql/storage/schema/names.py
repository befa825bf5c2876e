"""Which columns a Hudi table can have: names that Avro allows, types that Hudi stores."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from hudi_sql.errors import SchemaError
from hudi_sql.storage.schema.meta_columns import META_COLUMNS

__all__ = ["check_storable", "is_avro_name"]

_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STORED = (
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.time32("ms"),
    pa.time64("us"),
    *(pa.timestamp(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC")),
)


def is_avro_name(name: str) -> bool:
    """Whether a column may be called so.

    Example:
        >>> is_avro_name("a_1"), is_avro_name("1Min"), is_avro_name("a-b")
        (True, False, False)
    """
    return _AVRO_NAME.fullmatch(name) is not None


def check_storable(schema: pa.Schema, *, allow_meta_columns: bool = False) -> None:
    """Check that every column, nested fields included, can be stored.

    Raises:
        SchemaError: Names the column by its path.
    """
    if not len(schema):
        raise SchemaError("A table needs at least one column")
    if not allow_meta_columns:
        for name in schema.names:
            if name.lower() in META_COLUMNS:
                raise _refused(name, "is one of Hudi's meta columns", "Give it another name.")
    _check_fields(list(schema), ())


def _check_fields(fields: Iterable[pa.Field], path: tuple[str, ...]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        here = (*path, field.name)
        shown = ".".join(here)
        if not is_avro_name(field.name):
            hint = "Letters, digits and underscores, with no digit first."
            raise _refused(shown, "has a name that Avro does not allow", hint)
        if other := seen.get(field.name.lower()):
            raise _refused(
                shown, f"and {other} differ in case only or not at all", "Spark takes them for one column."
            )
        seen[field.name.lower()] = field.name
        _check_type(field.type, here)


def _check_type(kind: pa.DataType, path: tuple[str, ...]) -> None:
    shown = ".".join(path)
    if pa.types.is_struct(kind):
        if kind.num_fields == 0:
            raise _refused(shown, "is a struct without fields", "Avro records need a field.")
        _check_fields([kind.field(index) for index in range(kind.num_fields)], path)
    elif pa.types.is_list(kind):
        _check_type(kind.value_type, (*path, "element"))
    elif pa.types.is_map(kind):
        if kind.key_type != pa.string():
            raise _refused(shown, f"is a map with {kind.key_type} keys", "Keys of maps are strings in Hudi.")
        _check_type(kind.item_type, (*path, "value"))
    elif pa.types.is_decimal128(kind):
        if not 0 <= kind.scale <= kind.precision:
            raise _refused(
                shown, f"has type {kind}", "The scale of a decimal is between 0 and its precision."
            )
    elif not pa.types.is_fixed_size_binary(kind) and kind not in _STORED:
        raise _refused(
            shown, f"has type {kind}, which Hudi does not store", "Cast it to a type that Hudi stores."
        )


def _refused(column: str, problem: str, hint: str) -> SchemaError:
    return SchemaError(f"Column {column} {problem}", hint=hint, column=column)
