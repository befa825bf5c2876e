"""What a commit of ours tells the metadata table: names, ranges and keys of the files that it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import UnsupportedTableError
from hudi_sql.storage.base_file.reader import open_base_file
from hudi_sql.storage.base_file.statistics import footer_ranges
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.metadata.reader import MetadataTable
from hudi_sql.storage.metadata.rollback import discard_metadata, roll_back_metadata
from hudi_sql.storage.metadata.slices import MetadataFiles
from hudi_sql.storage.metadata.writer import MetadataChanges, write_metadata
from hudi_sql.storage.model.commit import CommitMetadata
from hudi_sql.storage.model.files import BaseFile, PartitionPath
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.model.statistics import ColumnRange
from hudi_sql.storage.properties.index_definitions import load_index_definitions
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.read.snapshot import Snapshot
from hudi_sql.storage.timeline.timeline import Timeline, load_timeline
from hudi_sql.storage.write.cow import WrittenFile

__all__ = ["MetadataTableWriter"]


class MetadataTableWriter:
    """Keeps the metadata table of one data table in step with one commit; does nothing where there is none."""

    def __init__(
        self, store: Store, config: TableConfig, snapshot: Snapshot, table: MetadataTable | None
    ) -> None:
        self._store = store
        self._config = config
        self._snapshot = snapshot
        self._table = table
        self._columns = table.indexed_columns() if table is not None else ()
        self._written: Sequence[WrittenFile] = ()
        self._changes: MetadataChanges | None = None

    @classmethod
    def open(cls, store: Store, config: TableConfig, snapshot: Snapshot) -> MetadataTableWriter:
        """Open the metadata table for a write.

        Raises:
            UnsupportedTableError: It has a record index by partition, which is not kept yet.
            CorruptTableError: It is announced and not there.
        """
        if "record_index" in config.metadata_partitions:
            definition = load_index_definitions(store, config).get("record_index")
            if definition is not None and definition.options.get("isPartitioned") == "true":
                raise UnsupportedTableError(
                    "The table cannot be written: its record index by partition cannot be kept right yet",
                    property="hoodie.metadata.record.level.index.enable",
                    value="true",
                    table=config.name,
                    hint="Write it with Spark, or drop that index.",
                )
        table = MetadataTable.open(store, config, load_timeline(store, config))
        return cls(store, config, snapshot, table)

    def prepare(self, written: Sequence[WrittenFile]) -> None:
        """Work out the changes, before the lock is taken."""
        if self._table is None:
            return
        files: dict[PartitionPath, dict[str, int]] = {}
        ranges: dict[tuple[PartitionPath, str], list[ColumnRange]] = {}
        for file in written:
            stat = file.stat
            name = stat.path.rsplit("/", 1)[-1]
            files.setdefault(stat.partition, {})[name] = stat.file_size_bytes
            if self._columns:
                ranges[stat.partition, name] = footer_ranges(
                    file.footer.metadata, self._snapshot.schema, self._columns
                )
        self._written = written
        self._changes = MetadataChanges(
            files=files,
            ranges=ranges,
            partition_ranges=self._partition_ranges(self._snapshot, self._table, written, ranges),
            indexed=_indexed(written),
            unindexed=_flat([keys for file in written for keys in file.deleted_keys]),
        )

    def write(self, instant: InstantTime, metadata: CommitMetadata) -> InstantTime | None:
        """Write the deltacommit; gives its completion time."""
        del metadata  # the changes were worked out from the same files
        if self._table is None:
            return None
        assert self._changes is not None, "prepare was not called"
        # Under the lock: other writers may have added file groups or instants since.
        timeline = load_timeline(self._store, self._config)
        files = MetadataFiles.open(self._store, timeline)
        return write_metadata(
            files,
            self._caught_up(self._changes, timeline),
            instant,
            partitions=self._config.metadata_partitions,
            zone=self._config.timeline_zone,
        )

    def discard(self, instant: InstantTime) -> None:
        """Remove the deltacommit of an instant that will not complete."""
        if self._table is not None:
            discard_metadata(self._store, instant)

    def roll_back(self, instant: InstantTime, rollback: InstantTime) -> None:
        """Roll back the deltacommit of a dead instant."""
        if self._table is not None:
            roll_back_metadata(self._store, instant, rollback, zone=self._config.timeline_zone)

    def _caught_up(self, changes: MetadataChanges, timeline: Timeline) -> MetadataChanges:
        """The changes on top of what others committed since the snapshot.

        Ranges of a partition stand for all its files: without those of an append that ran at once, readers would
        skip the partition where that has rows for them.
        """
        if (
            timeline.completed_writes == self._snapshot.timeline.completed_writes
            or not changes.partition_ranges
        ):
            return changes
        table = MetadataTable.open(self._store, self._config, timeline)
        assert table is not None
        now = Snapshot.load(self._store, self._config, timeline, lister=table, statistics=table)
        return replace(
            changes, partition_ranges=self._partition_ranges(now, table, self._written, changes.ranges)
        )

    def _partition_ranges(
        self,
        snapshot: Snapshot,
        table: MetadataTable,
        written: Sequence[WrittenFile],
        ranges: Mapping[tuple[PartitionPath, str], Sequence[ColumnRange]],
    ) -> dict[PartitionPath, list[ColumnRange]]:
        """Ranges over all files that are current after the commit, of each partition that it touched."""
        if "partition_stats" not in self._config.metadata_partitions or not self._columns:
            return {}
        replaced = {(file.stat.partition, file.stat.file_id) for file in written}
        found: dict[PartitionPath, list[ColumnRange]] = {}
        for partition in sorted({file.stat.partition for file in written}):
            others = [
                piece.base_file
                for piece in snapshot.slices_of_partition(partition)
                if (partition, piece.file_id) not in replaced and piece.base_file is not None
            ]
            parts = [item for (where, _), items in ranges.items() if where == partition for item in items]
            parts += self._ranges_of(table, partition, others)
            found[partition] = _combined(parts, self._columns)
        return found

    def _ranges_of(
        self, metadata: MetadataTable, partition: PartitionPath, files: Sequence[BaseFile]
    ) -> list[ColumnRange]:
        """Ranges of files that the commit left alone: from the statistics, else from their footers."""
        if not files:
            return []
        table = metadata.column_ranges(self._columns, [partition])
        known = set(table["file_name"].to_pylist()) if table is not None else set()
        found: list[ColumnRange] = []
        if table is not None:
            current = table.filter(pc.is_in(table["file_name"], pa.array([file.name for file in files])))
            found += _table_ranges(current, self._columns)
        for file in files:
            if file.name not in known:
                with open_base_file(self._store, file) as reader:
                    found += footer_ranges(reader.metadata, self._snapshot.schema, self._columns)
        return found


def _table_ranges(table: pa.Table, columns: Sequence[str]) -> list[ColumnRange]:
    """One range for each column over all files of a statistics table."""
    found = []
    for column in columns:
        low, high, nulls = (f"{part}:{column}" for part in ("min", "max", "nulls"))
        if low not in table.column_names:
            continue
        kind = table.schema.field(low).type
        found.append(
            ColumnRange(
                column=column,
                type=kind,
                minimum=_valid(pc.min(table[low])),
                maximum=_valid(pc.max(table[high])),
                num_nulls=pc.sum(table[nulls]).as_py() or 0,
                num_values=pc.sum(table["num_values"]).as_py() or 0,
            )
        )
    return found


def _valid(scalar: pa.Scalar) -> pa.Scalar | None:
    return scalar if scalar.is_valid else None


def _combined(parts: Iterable[ColumnRange], columns: Sequence[str]) -> list[ColumnRange]:
    """The range over several ones, for each column that has any."""
    by_column: dict[str, list[ColumnRange]] = {}
    for part in parts:
        by_column.setdefault(part.column, []).append(part)
    found = []
    for column in columns:
        ranges = by_column.get(column)
        if not ranges:
            continue
        kind = ranges[0].type
        lows = [item.minimum for item in ranges if item.minimum is not None]
        highs = [item.maximum for item in ranges if item.maximum is not None]
        found.append(
            ColumnRange(
                column=column,
                type=kind,
                minimum=_extreme(lows, kind, least=True),
                maximum=_extreme(highs, kind, least=False),
                num_nulls=sum(item.num_nulls for item in ranges),
                num_values=sum(item.num_values for item in ranges),
                total_size_bytes=sum(item.total_size_bytes for item in ranges),
                total_uncompressed_bytes=sum(item.total_uncompressed_bytes for item in ranges),
            )
        )
    return found


def _extreme(bounds: Sequence[pa.Scalar], kind: pa.DataType, *, least: bool) -> pa.Scalar | None:
    if not bounds:
        return None
    values = pa.array([bound.cast(kind).as_py() for bound in bounds], kind)
    return pc.min(values) if least else pc.max(values)


def _indexed(written: Sequence[WrittenFile]) -> pa.Table:
    """Where the inserted keys are."""
    tables = [
        pa.table(
            {
                "key": keys,
                "partition": pa.repeat(pa.scalar(str(file.stat.partition)), len(keys)),
                "file_id": pa.repeat(pa.scalar(str(file.stat.file_id)), len(keys)),
            }
        )
        for file in written
        for keys in file.inserted_keys
    ]
    empty = pa.table({name: pa.array([], pa.string()) for name in ("key", "partition", "file_id")})
    return pa.concat_tables([empty, *tables])


def _flat(arrays: Sequence[pa.Array]) -> pa.Array:
    return pa.chunked_array(list(arrays), pa.string()).combine_chunks()
