"""Definitions of the metadata table's indexes, `.hoodie/.index_defs/index.json` (properties notes §8)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from hudi_sql.errors import CorruptTableError, ObjectNotFoundError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.properties.table_config import TableConfig

__all__ = ["IndexDefinition", "load_index_definitions", "save_index_definitions"]

_FIRST_VERSIONED = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDefinition:
    """One index: a partition of the metadata table."""

    name: str
    index_type: str
    function: str = ""
    source_fields: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    version: str = "V1"
    """Layout of the index's records: `V1` or `V2`."""


def load_index_definitions(store: Store, config: TableConfig) -> dict[str, IndexDefinition]:
    """Read all definitions, by metadata partition; empty when the table has none."""
    path = config.index_definitions_path
    try:
        data = store.read(path)
    except ObjectNotFoundError:
        return {}
    try:
        entries = json.loads(data)["indexDefinitions"].items()
        return {name: _definition(name, entry, config.version) for name, entry in entries}
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise CorruptTableError(
            f"{path} is no list of index definitions: {exc}",
            table=store.uri,
            path=path,
            hint="Drop and create the indexes again with Hudi.",
        ) from exc


def save_index_definitions(
    store: Store, config: TableConfig, definitions: Mapping[str, IndexDefinition]
) -> None:
    """Replace the file by these definitions, in the form of Hudi's pretty printer."""
    entries = ",\n".join(_encode(name, definition) for name, definition in definitions.items())
    body = f"{{\n{entries}\n  }}" if entries else "{ }"
    store.put(config.index_definitions_path, f'{{\n  "indexDefinitions" : {body}\n}}'.encode())


def _definition(name: str, entry: dict[str, object], table_version: int) -> IndexDefinition:
    version = entry.get("version")
    if version is None and table_version >= _FIRST_VERSIONED:
        raise ValueError(f"the definition of {name} has no version")
    fields = entry.get("sourceFields") or []
    options = entry.get("indexOptions") or {}
    if not isinstance(fields, list) or not isinstance(options, dict):
        raise TypeError(f"the definition of {name} has no usable fields or options")
    return IndexDefinition(
        name=str(entry.get("indexName") or name),
        index_type=str(entry["indexType"]),
        function=str(entry.get("indexFunction") or ""),
        source_fields=tuple(str(item) for item in fields),
        options={str(key): str(value) for key, value in options.items()},
        version=str(version or "V1"),
    )


def _encode(name: str, definition: IndexDefinition) -> str:
    lines = [
        ("indexName", _text(definition.name)),
        ("indexType", _text(definition.index_type)),
        ("indexFunction", _text(definition.function)),
        ("sourceFields", f"[ {', '.join(map(_text, definition.source_fields))} ]".replace("[  ]", "[ ]")),
        ("indexOptions", _options(definition.options)),
        ("version", _text(definition.version)),
    ]
    body = ",\n".join(f"      {_text(key)} : {value}" for key, value in lines)
    return f"    {_text(name)} : {{\n{body}\n    }}"


def _options(options: Mapping[str, str]) -> str:
    if not options:
        return "{ }"
    items = ",\n".join(f"        {_text(key)} : {_text(value)}" for key, value in options.items())
    return f"{{\n{items}\n      }}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
