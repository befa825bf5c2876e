"""Avro schemas as Hudi keeps them ↔ Arrow schemas (base file notes §5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from hudi_sql.errors import CorruptTableError, SchemaError
from hudi_sql.storage.schema.meta_columns import META_COLUMNS
from hudi_sql.storage.schema.names import check_storable

__all__ = [
    "LIST_ELEMENT",
    "arrow_schema_from_avro",
    "avro_schema_from_arrow",
    "decimal_width",
    "list_of",
    "with_meta_fields",
]

LIST_ELEMENT = "element"
"""Name of the value inside a list: the one that Parquet's three-level lists have."""

_PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
_NAMES_OF_TYPES: Mapping[pa.DataType, Any] = {
    **{kind: name for name, kind in _PRIMITIVES.items() if name != "null"},
    **{kind: {"type": base, "logicalType": name} for (base, name), kind in _LOGICAL.items()},
}


def arrow_schema_from_avro(json_text: str) -> pa.Schema:
    """Read an Avro record schema.

    Unions of a type and null stand in either order: Spark writes `[T, "null"]` into table properties and
    `["null", T]` into commits. An enum becomes text.

    Raises:
        CorruptTableError: The text is no Avro record schema.
        SchemaError: A union of several types, or a record that holds itself.

    Example:
        >>> arrow_schema_from_avro('{"type":"record","name":"r","fields":[{"name":"a","type":["int","null"]}]}')
        a: int32
    """
    try:
        tree = json.loads(json_text)
        if not isinstance(tree, dict) or tree.get("type") != "record":
            raise CorruptTableError("The table's schema is no Avro record")
        return pa.schema(list(_Parser().fields_of(tree, "")))
    except (KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as exc:
        raise CorruptTableError(f"The table's Avro schema cannot be read: {exc}") from exc


def avro_schema_from_arrow(schema: pa.Schema, table_name: str) -> str:
    """Write the Avro schema that Spark would write for a table: same JSON, same names.

    Nullable fields are `["null", T]` with a null default. Records and the fixed type of a decimal have the path of
    their column as namespace, so that no name comes twice.

    Raises:
        SchemaError: A name that Avro does not allow or a type that Hudi does not store.
    """
    check_storable(schema, allow_meta_columns=True)
    name = f"{table_name}_record"
    return _dump(_record(name, f"hoodie.{table_name}", list(schema)))


def with_meta_fields(avro_json: str) -> str:
    """Put the meta columns before the fields of a record schema: the schema that is kept in files."""
    tree = json.loads(avro_json)
    fields = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_COLUMNS]
    tree["fields"] = fields + [field for field in tree["fields"] if field["name"] not in META_COLUMNS]
    return _dump(tree)


def decimal_width(precision: int) -> int:
    """Bytes of the fixed type that holds a decimal: the least that hold its largest unscaled value.

    Example:
        >>> [decimal_width(precision) for precision in (2, 9, 18, 38)]
        [1, 4, 8, 16]
    """
    width = 1
    while 2 ** (8 * width - 1) - 1 < 10**precision - 1:
        width += 1
    return width


def list_of(value: pa.DataType, *, nullable: bool = True) -> pa.DataType:
    """A list type with the one name for its elements."""
    return pa.list_(pa.field(LIST_ELEMENT, value, nullable=nullable))


def _dump(tree: Any) -> str:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


class _Parser:
    """Resolves names of types that a schema defines once and mentions again."""

    def __init__(self) -> None:
        self._named: dict[str, pa.DataType] = {}

    def fields_of(self, record: Mapping[str, Any], namespace: str) -> list[pa.Field]:
        space = _space(record, namespace)
        return [self._field(field["name"], field["type"], space) for field in record["fields"]]

    def _field(self, name: str, tree: Any, namespace: str) -> pa.Field:
        if not isinstance(tree, list):
            return pa.field(name, self._type(tree, namespace), nullable=tree == "null")
        branches = [branch for branch in tree if branch != "null"]
        if len(branches) > 1:
            raise SchemaError(
                f"Column {name} is a union of several types",
                hint="Only unions of one type and null are read.",
            )
        kind = self._type(branches[0], namespace) if branches else pa.null()
        return pa.field(name, kind, nullable="null" in tree)

    def _type(self, tree: Any, namespace: str) -> pa.DataType:
        if isinstance(tree, str):
            return self._by_name(tree, namespace)
        kind = tree["type"]
        if not isinstance(kind, str):
            return self._type(kind, namespace)
        if kind == "array":
            item = self._field(LIST_ELEMENT, tree["items"], namespace)
            return pa.list_(item)
        if kind == "map":
            return pa.map_(pa.string(), self._field("value", tree["values"], namespace))
        if kind in ("record", "error"):
            return self._named_type(tree, namespace, pa.struct(self.fields_of(tree, namespace)))
        if kind == "enum":
            return self._named_type(tree, namespace, pa.string())
        logical = tree.get("logicalType")
        if kind in ("fixed", "bytes") and logical == "decimal":
            value = pa.decimal128(int(tree["precision"]), int(tree.get("scale", 0)))
            return self._named_type(tree, namespace, value) if kind == "fixed" else value
        if kind == "fixed":
            return self._named_type(tree, namespace, pa.binary(int(tree["size"])))
        return _LOGICAL.get((kind, logical)) or self._by_name(kind, namespace)

    def _named_type(self, tree: Mapping[str, Any], namespace: str, kind: pa.DataType) -> pa.DataType:
        space, name = _space(tree, namespace), tree["name"].rpartition(".")[2]
        self._named[f"{space}.{name}" if space else name] = kind
        return kind

    def _by_name(self, name: str, namespace: str) -> pa.DataType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self._named:
            return self._named[full]
        raise SchemaError(f"The schema mentions type {name}, which it does not define before")


def _space(tree: Mapping[str, Any], inherited: str) -> str:
    """Namespace of a named type: in its own name, stated, or that of the type around it."""
    space, dot, _ = tree["name"].rpartition(".")
    if dot:
        return str(space)
    return str(tree.get("namespace", inherited) or "")


def _record(name: str, namespace: str, fields: list[pa.Field]) -> dict[str, Any]:
    inner = f"{namespace}.{name}"
    return {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": [_avro_field(field, inner) for field in fields],
    }


def _avro_field(field: pa.Field, namespace: str) -> dict[str, Any]:
    kind = _avro_type(field.type, field.name, namespace)
    doc = {"doc": ""} if field.name in META_COLUMNS else {}
    if not field.nullable:
        return {"name": field.name, "type": kind, **doc}
    return {"name": field.name, "type": ["null", kind], **doc, "default": None}


def _avro_type(kind: pa.DataType, name: str, namespace: str) -> Any:
    if pa.types.is_decimal(kind):
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": f"{namespace}.{name}",
            "size": decimal_width(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}", "size": kind.byte_width}
    if pa.types.is_struct(kind):
        return _record(name, namespace, [kind.field(index) for index in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return {"type": "array", "items": _inner(kind.value_field, name, namespace)}
    if pa.types.is_map(kind):
        return {"type": "map", "values": _inner(kind.item_field, name, namespace)}
    return _NAMES_OF_TYPES[kind]


def _inner(field: pa.Field, name: str, namespace: str) -> Any:
    kind = _avro_type(field.type, name, namespace)
    return ["null", kind] if field.nullable else kind
