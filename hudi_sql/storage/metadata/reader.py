"""Reading the metadata table: files of partitions, ranges of columns, places of keys (metadata table notes §6 to §10).

Nothing is read before it is asked for, and of each partition only what the question needs. What was read is kept: the
object stands for one moment of the table.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.storage.avro.datum import decode_datums
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.hfile.reader import HFileCells, HFileReader
from hudi_sql.storage.metadata.column_stats import bounds_of
from hudi_sql.storage.metadata.keys import (
    ALL_PARTITIONS,
    column_prefix,
    file_groups_of,
    partition_identifier,
    partition_of,
)
from hudi_sql.storage.metadata.record_index import file_ids_of
from hudi_sql.storage.metadata.records import record_type
from hudi_sql.storage.metadata.slices import Layer, MetadataFiles, Selection
from hudi_sql.storage.model.files import BaseFile, LogFile, PartitionPath, parse_file
from hudi_sql.storage.properties.index_definitions import load_index_definitions
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.timeline.timeline import Timeline

__all__ = ["MetadataTable"]

_FIRST_READ_VERSION = 8
_FILES = "files"
_COLUMN_STATS = "column_stats"
_RECORD_INDEX = "record_index"
_KEY_BYTES = 12  # of the short form of a column or partition in a key


class MetadataTable:
    """What a data table's metadata table knows. A `FileLister` and `FileStatistics`."""

    def __init__(self, files: MetadataFiles, store: Store, config: TableConfig) -> None:
        self._files = files
        self._store = store
        self._config = config
        self._partitions: tuple[PartitionPath, ...] | None = None
        self._listed: dict[PartitionPath, tuple[BaseFile | LogFile, ...]] = {}
        self._guard = threading.RLock()

    @classmethod
    def open(cls, store: Store, config: TableConfig, data_timeline: Timeline) -> MetadataTable | None:
        """Open the metadata table of a data table; None where it has none that is ready to use.

        Raises:
            CorruptTableError: The properties announce one, and it is not there.
        """
        if _FILES not in config.metadata_partitions or config.version < _FIRST_READ_VERSION:
            return None
        return cls(MetadataFiles.open(store, data_timeline), store, config)

    @property
    def files(self) -> MetadataFiles:
        """Its own files, for writing to it."""
        return self._files

    def has(self, partition: str) -> bool:
        """Whether a metadata partition is there and ready."""
        return partition in self._config.metadata_partitions

    def list_partitions(self) -> tuple[PartitionPath, ...]:
        """See `FileLister`."""
        with self._guard:
            if self._partitions is None:
                found = self._file_maps([ALL_PARTITIONS]).get(ALL_PARTITIONS, {})
                self._partitions = tuple(sorted(partition_of(name) for name in found))
            return self._partitions

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> dict[PartitionPath, tuple[BaseFile | LogFile, ...]]:
        """See `FileLister`."""
        with self._guard:
            missing = [item for item in partitions if item not in self._listed]
            if missing:
                maps = self._file_maps([partition_identifier(item) for item in missing])
                for partition in missing:
                    sizes = maps.get(partition_identifier(partition), {})
                    parsed = (parse_file(partition, name, size) for name, size in sizes.items())
                    self._listed[partition] = tuple(file for file in parsed if file is not None)
            return {partition: self._listed[partition] for partition in partitions}

    def column_ranges(
        self, columns: Sequence[str], partitions: Sequence[PartitionPath] | None
    ) -> pa.Table | None:
        """See `FileStatistics`."""
        if not self.has(_COLUMN_STATS):
            return None
        known = self.list_partitions() if partitions is None else tuple(partitions)
        short = {column_prefix("", item)[_KEY_BYTES:]: item for item in known}
        prefixes = [
            prefix.encode()
            for column in columns
            for prefix in (
                [column_prefix(column)]
                if partitions is None
                else [column_prefix(column, item) for item in partitions]
            )
        ]
        records = self._merged(_COLUMN_STATS, lambda file: file.prefix_scan(prefixes))
        return _ranges_table(records, columns, short)

    def indexed_columns(self) -> tuple[str, ...]:
        """Columns whose ranges are kept."""
        definition = load_index_definitions(self._store, self._config).get(_COLUMN_STATS)
        return definition.source_fields if definition is not None else ()

    def record_locations(self, keys: pa.Array) -> pa.Table | None:
        """Where record keys are: columns `key`, `partition`, `file_id`; keys that the index lacks are left out.

        None when the table has no (global) record index.
        """
        if not self.has(_RECORD_INDEX):
            return None
        definition = load_index_definitions(self._store, self._config).get(_RECORD_INDEX)
        if definition is not None and definition.options.get("isPartitioned") == "true":
            return None
        slices = self._files.slices(_RECORD_INDEX)
        groups = file_groups_of(keys, len(slices))
        found = [
            self._merge(
                self._files.layers(slices[number], _lookup_of(keys.filter(pa.array(groups == number))))
            )
            for number in np.unique(groups)
        ]
        tables = [_locations(keys_, info) for keys_, info in found if len(keys_)]
        empty = pa.table({name: pa.array([], pa.string()) for name in ("key", "partition", "file_id")})
        return pa.concat_tables([empty, *tables])

    def _file_maps(self, keys: Sequence[str]) -> dict[str, dict[str, int]]:
        """Live names and sizes of `files` records, merged over all layers."""
        wanted = pa.array(list(keys), pa.string())
        found: dict[str, dict[str, int]] = {}
        for layer in self._files.layers(self._files.slices(_FILES)[0], _lookup_of(wanted)):
            if layer.deleted is not None:
                for key in layer.deleted.to_pylist():
                    found.pop(key, None)
                continue
            assert layer.cells is not None
            if not len(layer.cells.keys):
                continue
            records = decode_datums(layer.cells.values, layer.schema_json, layer.path)
            maps = records.field("filesystemMetadata")
            for key, entries in zip(layer.cells.keys.to_pylist(), maps.to_pylist(), strict=True):
                _merge_files(found.setdefault(key.decode(), {}), entries or ())
        return found

    def _merged(self, partition: str, select: Selection) -> tuple[pa.Array, pa.StructArray]:
        """Selected records of all file groups of a partition: keys and records, deletions applied."""
        found = [self._merge(self._files.layers(piece, select)) for piece in self._files.slices(partition)]
        kept = [item for item in found if len(item[0])]
        if not kept:
            return found[0]
        return pa.concat_arrays([keys for keys, _ in kept]), pa.concat_arrays([rows for _, rows in kept])

    def _merge(self, layers: Iterable[Layer]) -> tuple[pa.Array, pa.StructArray]:
        """The newest record of each key."""
        keys: list[pa.Array] = []
        rows: list[pa.StructArray] = []
        dead: list[pa.Array] = []
        for layer in layers:
            if layer.deleted is not None:
                dead.append(layer.deleted.cast(pa.large_binary()))
                keys.append(dead[-1])
                rows.append(pa.nulls(len(dead[-1]), _common_type()))
            elif layer.cells is not None and len(layer.cells.keys):
                keys.append(layer.cells.keys)
                rows.append(_common(decode_datums(layer.cells.values, layer.schema_json, layer.path)))
        if not keys:
            return pa.array([], pa.large_binary()), pa.array([], _common_type())
        all_keys, all_rows = pa.concat_arrays(keys), pa.concat_arrays(rows)
        newest = _last_of_each(all_keys)
        kept = all_rows.take(newest)
        alive = kept.is_valid()
        return all_keys.take(newest).filter(alive), kept.filter(alive)


def _merge_files(known: dict[str, int], entries: Iterable[tuple[str, dict[str, object]]]) -> None:
    """Merge one record's files into those of older ones (metadata table notes §6)."""
    for name, info in entries:
        size = info["size"]
        assert isinstance(size, int)
        if info["isDeleted"]:
            known.pop(name, None)
        else:
            known[name] = max(size, known.get(name, 0))


def _lookup_of(keys: pa.Array) -> Selection:
    def select(file: HFileReader) -> HFileCells:
        return file.lookup(keys)

    return select


def _last_of_each(keys: pa.Array) -> pa.Array:
    """Index of the last occurrence of each key."""
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    # The first occurrence in reversed order is the last one.
    _, first = np.unique(codes[::-1], return_index=True)
    return pa.array(np.sort(len(codes) - 1 - first))


_FIELDS = ("ColumnStatsMetadata", "recordIndexMetadata")


def _common_type() -> pa.StructType:
    kind = record_type()
    return pa.struct([kind.field(name) for name in _FIELDS])


def _common(records: pa.StructArray) -> pa.StructArray:
    """The payloads that are read here, in one type whatever release wrote them."""
    columns = []
    for field in _common_type():
        index = records.type.get_field_index(field.name)
        if index < 0:
            columns.append(pa.nulls(len(records), field.type))
        else:
            columns.append(_conform(records.field(index), field.type))
    return pa.StructArray.from_arrays(columns, fields=list(_common_type()))


def _conform(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Fields by name; those that an older schema lacks are NULL."""
    if array.type == kind or not pa.types.is_struct(kind):
        return array.cast(kind)
    children = []
    for field in kind:
        index = array.type.get_field_index(field.name)
        children.append(
            pa.nulls(len(array), field.type) if index < 0 else _conform(array.field(index), field.type)
        )
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())


def _locations(keys: pa.Array, records: pa.StructArray) -> pa.Table:
    info = records.field("recordIndexMetadata")
    return pa.table(
        {
            "key": keys.cast(pa.string()),
            "partition": info.field("partitionName"),
            "file_id": file_ids_of(info),
        }
    )


def _ranges_table(
    merged: tuple[pa.Array, pa.StructArray], columns: Sequence[str], partitions: dict[str, PartitionPath]
) -> pa.Table:
    """One row for each file, a pair of bounds for each column."""
    keys, records = merged
    stats = records.field("ColumnStatsMetadata")
    live = pc.invert(pc.fill_null(stats.field("isDeleted"), True))  # a value, not a flag
    keys, stats = keys.filter(live), stats.filter(live)
    texts = keys.cast(pa.string())
    codes = pc.utf8_slice_codeunits(texts, _KEY_BYTES, 2 * _KEY_BYTES)
    names = pa.array(
        [partitions.get(code) for code in codes.dictionary_encode().dictionary.to_pylist()], pa.string()
    )
    folder = names.take(codes.dictionary_encode().indices)
    known = folder.is_valid()
    stats, folder = stats.filter(known), folder.filter(known)
    return _pivoted(stats, folder, columns)


def _pivoted(stats: pa.StructArray, folder: pa.Array, columns: Sequence[str]) -> pa.Table:
    files = pa.table({"partition": folder, "file_name": stats.field("fileName")})
    places = pc.binary_join_element_wise(files["partition"], files["file_name"], "\x00").combine_chunks()
    encoded = places.dictionary_encode()
    slots = encoded.indices.to_numpy(zero_copy_only=False)
    _, first = np.unique(slots, return_index=True)
    total = len(first)
    result = files.take(pa.array(first))
    counts = stats.field("valueCount").take(pa.array(first)) if total else pa.array([], pa.int64())
    result = result.append_column("num_values", counts)
    names = stats.field("columnName")
    for column in columns:
        rows = np.flatnonzero(pc.equal(names, column).to_numpy(zero_copy_only=False))
        if not len(rows):
            continue
        part = stats.take(pa.array(rows))
        bounds = bounds_of(part)
        picks = np.zeros(total, np.int64)
        missing = np.ones(total, bool)
        picks[slots[rows]], missing[slots[rows]] = np.arange(len(rows)), False
        take = pa.array(picks, mask=missing)
        if bounds is not None:
            result = result.append_column(f"min:{column}", bounds.minimum.take(take))
            result = result.append_column(f"max:{column}", bounds.maximum.take(take))
        result = result.append_column(f"nulls:{column}", part.field("nullCount").take(take))
    return result
