"""What `hoodie.properties` says about a table (properties notes §1, §4, §5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TypeVar

from hudi_sql.errors import CorruptTableError, UnsupportedTableError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.properties.kinds import (
    KeyGeneratorType,
    MergeMode,
    TableType,
    TimelineZone,
    infer_key_generator,
    infer_merge_mode,
    key_generator_of_class,
)
from hudi_sql.storage.properties.properties_file import (
    PROPERTIES_FILE,
    create_properties,
    load_properties,
    update_properties,
)

__all__ = [
    "KeyGeneratorType",
    "MergeMode",
    "TableConfig",
    "TableType",
    "TimelineZone",
    "create_table_config",
    "load_table_config",
    "parse_table_config",
    "update_table_config",
]

_NEWEST_VERSION = 9
_LAYOUTS = {6: 1, 8: 2, 9: 2}
_INDEX_DEFINITIONS = ".hoodie/.index_defs/index.json"
_KindT = TypeVar("_KindT", bound=Enum)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableConfig:
    """The settings of one table, as its `hoodie.properties` has them. `raw` has all keys, known or not."""

    name: str
    database: str
    table_type: TableType
    version: int
    initial_version: int
    """Version at creation; the current one where the table does not say."""
    layout_version: int
    timeline_path: str
    """Folder of the active timeline, relative to the table: `.hoodie/timeline`, for version 6 `.hoodie`."""
    history_path: str
    """Folder of the archived timeline, relative to the table."""
    record_key_fields: tuple[str, ...]
    """Empty: keys are generated."""
    partition_fields: tuple[str, ...]
    """Names only."""
    partition_types: tuple[str, ...]
    """Of the CUSTOM key generator: `SIMPLE` or `TIMESTAMP` for each partition field; else empty."""
    ordering_fields: tuple[str, ...]
    merge_mode: MergeMode
    merge_strategy_id: str | None
    payload_class: str | None
    legacy_payload_class: str | None
    partial_update_mode: str | None
    key_generator: KeyGeneratorType
    key_generator_class: str | None
    hive_style_partitioning: bool
    url_encode_partitions: bool
    drop_partition_columns: bool
    populate_meta_fields: bool
    partition_metafile_use_base_format: bool
    timeline_zone: TimelineZone
    metadata_partitions: frozenset[str]
    metadata_partitions_inflight: frozenset[str]
    index_definitions_path: str
    cdc_enabled: bool
    base_file_format: str
    has_multiple_base_file_formats: bool
    bootstrap_base_path: str | None
    create_schema_json: str | None
    raw: Mapping[str, str]

    def __reduce__(self) -> tuple[object, ...]:
        # A mapping proxy does not pickle; the values follow from the properties.
        return _rebuild, (dict(self.raw), self.timeline_path, self.history_path)


def parse_table_config(properties: Mapping[str, str], path: str = PROPERTIES_FILE) -> TableConfig:
    """Read the settings out of the properties.

    Raises:
        CorruptTableError: A value that no writer writes.
        UnsupportedTableError: A table version or timeline layout that is not known here.
    """
    reader = _Reader(properties, path)
    name = properties.get("hoodie.table.name", "")
    if not name:
        raise CorruptTableError(f"{path} names no table", path=path, hint="hoodie.table.name is required.")
    version = reader.number("hoodie.table.version", _NEWEST_VERSION)
    layout = reader.number("hoodie.timeline.layout.version", _LAYOUTS.get(version, 2))
    _check_version(version, layout)
    keys = reader.names("hoodie.table.recordkey.fields")
    spec = properties.get("hoodie.table.partition.fields", "").strip()
    generator = _key_generator(reader, keys, spec)
    fields, types = _partition_fields(spec, generator)
    ordering = reader.names("hoodie.table.ordering.fields") or reader.names("hoodie.table.precombine.field")
    payload = reader.text("hoodie.compaction.payload.class")
    strategy = reader.text("hoodie.record.merge.strategy.id")
    timeline_path, history_path = _timeline_folders(properties, layout)
    return TableConfig(
        name=name,
        database=properties.get("hoodie.database.name", ""),
        table_type=reader.kind("hoodie.table.type", TableType, TableType.COPY_ON_WRITE),
        version=version,
        initial_version=reader.number("hoodie.table.initial.version", version),
        layout_version=layout,
        timeline_path=timeline_path,
        history_path=history_path,
        record_key_fields=keys,
        partition_fields=fields,
        partition_types=types,
        ordering_fields=ordering,
        merge_mode=infer_merge_mode(
            version,
            stated=reader.optional_kind("hoodie.record.merge.mode", MergeMode),
            payload=payload,
            strategy=strategy,
            has_ordering=bool(ordering),
        ),
        merge_strategy_id=strategy,
        payload_class=payload,
        legacy_payload_class=reader.text("hoodie.table.legacy.payload.class"),
        partial_update_mode=reader.text("hoodie.table.partial.update.mode"),
        key_generator=generator,
        key_generator_class=reader.text("hoodie.table.keygenerator.class"),
        hive_style_partitioning=reader.flag("hoodie.datasource.write.hive_style_partitioning"),
        url_encode_partitions=reader.flag("hoodie.datasource.write.partitionpath.urlencode"),
        drop_partition_columns=reader.flag("hoodie.datasource.write.drop.partition.columns"),
        populate_meta_fields=reader.flag("hoodie.populate.meta.fields", default=True),
        partition_metafile_use_base_format=reader.flag("hoodie.partition.metafile.use.base.format"),
        timeline_zone=reader.kind("hoodie.table.timeline.timezone", TimelineZone, TimelineZone.LOCAL),
        metadata_partitions=frozenset(reader.names("hoodie.table.metadata.partitions")),
        metadata_partitions_inflight=frozenset(reader.names("hoodie.table.metadata.partitions.inflight")),
        index_definitions_path=_index_definitions_path(reader.text("hoodie.table.index.defs.path")),
        cdc_enabled=reader.flag("hoodie.table.cdc.enabled"),
        base_file_format=(reader.text("hoodie.table.base.file.format") or "PARQUET").upper(),
        has_multiple_base_file_formats=reader.flag("hoodie.table.multiple.base.file.formats.enable"),
        bootstrap_base_path=reader.text("hoodie.bootstrap.base.path"),
        create_schema_json=reader.text("hoodie.table.create.schema"),
        raw=MappingProxyType(dict(properties)),
    )


def load_table_config(store: Store) -> TableConfig:
    """Read a table's settings.

    Raises:
        TableNotFoundError: There is no Hudi table in the store.
        CorruptTableError: Neither the properties nor their backup can be used.
        UnsupportedTableError: The table's version is not known here.
    """
    try:
        return parse_table_config(load_properties(store))
    except (CorruptTableError, UnsupportedTableError) as exc:
        exc.table = exc.table or store.uri
        raise


def update_table_config(store: Store, changes: Mapping[str, str | None]) -> TableConfig:
    """Set properties, or remove those whose value is None; all others stay as they are.

    To be called under the table lock. A reader sees the old or the new properties at any moment, and a writer
    that dies in between leaves a backup from which the next one recovers.
    """
    parse_table_config(_merged(load_properties(store), changes))  # refuse what could not be read back
    return parse_table_config(update_properties(store, changes))


def create_table_config(store: Store, properties: Mapping[str, str]) -> TableConfig:
    """Write the properties of a new table, with their checksum.

    Raises:
        TableExistsError: The store has a table already.
    """
    config = parse_table_config(properties)
    create_properties(store, config.raw)
    return load_table_config(store)


def _merged(properties: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**properties, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def _rebuild(properties: dict[str, str], timeline_path: str, history_path: str) -> TableConfig:
    config = parse_table_config(properties)
    if (config.timeline_path, config.history_path) == (timeline_path, history_path):
        return config
    return replace(config, timeline_path=timeline_path, history_path=history_path)


def _check_version(version: int, layout: int) -> None:
    if version not in _LAYOUTS:
        raise UnsupportedTableError(
            f"Table version {version} is not supported",
            property="hoodie.table.version",
            value=str(version),
            hint="Versions 6, 8 and 9 are. Upgrade older tables with Hudi."
            if version < _NEWEST_VERSION
            else "The table was written by a newer Hudi; use a newer release of hudi_sql.",
        )
    if _LAYOUTS[version] != layout:
        raise UnsupportedTableError(
            f"Timeline layout {layout} does not go with table version {version}",
            property="hoodie.timeline.layout.version",
            value=str(layout),
            hint=f"Version {version} has layout {_LAYOUTS[version]}.",
        )


def _timeline_folders(properties: Mapping[str, str], layout: int) -> tuple[str, str]:
    if layout == 1:
        archive = properties.get("hoodie.archivelog.folder", "").strip("/") or "archived"
        return ".hoodie", f".hoodie/{archive}"
    timeline = properties.get("hoodie.timeline.path", "").strip("/") or "timeline"
    history = properties.get("hoodie.timeline.history.path", "").strip("/") or "history"
    return f".hoodie/{timeline}", f".hoodie/{timeline}/{history}"


def _index_definitions_path(stated: str | None) -> str:
    """Relative to the table. Early 1.0 releases wrote it with the table's location in front."""
    if stated is None:
        return _INDEX_DEFINITIONS
    before, marker, after = stated.rpartition(".hoodie/")
    return marker + after if before else stated.strip("/")


def _key_generator(reader: _Reader, keys: tuple[str, ...], partition_spec: str) -> KeyGeneratorType:
    key = "hoodie.table.keygenerator.type"
    if stated := reader.text(key):
        name = stated.upper().removesuffix("_AVRO")
        if name not in KeyGeneratorType.__members__:
            raise UnsupportedTableError(
                f"{stated} is no known type of key generator",
                property=key,
                value=stated,
                hint=f"Known types: {', '.join(KeyGeneratorType.__members__)}.",
            )
        return KeyGeneratorType[name]
    if class_name := reader.text("hoodie.table.keygenerator.class"):
        return key_generator_of_class(class_name)
    return infer_key_generator(keys, partition_spec)


def _partition_fields(spec: str, generator: KeyGeneratorType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    items = [item.strip() for item in spec.split(",") if item.strip()]
    if generator is not KeyGeneratorType.CUSTOM:
        return tuple(items), ()
    split = [re.fullmatch(r"(.*?)(?::(\w+))?", item, re.DOTALL) for item in items]
    names = tuple(match[1] for match in split if match)
    return names, tuple((match[2] or "SIMPLE").upper() for match in split if match)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Typed look-ups that name the key when a value is unusable. Empty values count as absent, as in Hudi."""

    properties: Mapping[str, str]
    path: str

    def text(self, key: str) -> str | None:
        return self.properties.get(key, "").strip() or None

    def names(self, key: str) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.properties.get(key, "").split(",") if name.strip())

    def flag(self, key: str, *, default: bool = False) -> bool:
        text = self.text(key)
        return default if text is None else text.lower() == "true"

    def number(self, key: str, default: int) -> int:
        text = self.text(key)
        if text is None:
            return default
        if not re.fullmatch("[0-9]{1,9}", text):
            raise self._corrupt(key, text, "a number")
        return int(text)

    def kind(self, key: str, kinds: type[_KindT], default: _KindT) -> _KindT:
        return self.optional_kind(key, kinds) or default

    def optional_kind(self, key: str, kinds: type[_KindT]) -> _KindT | None:
        text = self.text(key)
        if text is None:
            return None
        if text.upper() not in kinds.__members__:
            raise self._corrupt(key, text, "one of " + ", ".join(kinds.__members__))
        return kinds[text.upper()]

    def _corrupt(self, key: str, value: str, wanted: str) -> CorruptTableError:
        return CorruptTableError(f"{self.path} has {key}={value}, which is not {wanted}", path=self.path)
