"""A table at one point of its timeline: schema, file slices, rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import BindError
from hudi_sql.storage.base_file.reader import open_base_file
from hudi_sql.storage.file_system_view import FileSystemView
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.key_generator.key_generator import KeyGenerator
from hudi_sql.storage.model.files import BaseFile, FileSlice, PartitionPath
from hudi_sql.storage.model.protocols import FileLister, FileStatistics
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.read.predicate import Predicate, referenced_columns
from hudi_sql.storage.read.pruning import may_match_files, may_match_partitions
from hudi_sql.storage.read.scan import ScanTask, scan_rows, scan_rows_with_positions
from hudi_sql.storage.read.table_schema import TableSchema, load_table_schema
from hudi_sql.storage.schema.meta_columns import with_meta_columns
from hudi_sql.storage.timeline.timeline import Timeline

__all__ = ["Snapshot", "SnapshotRelation"]

_KEY = "_hoodie_record_key"


class Snapshot:
    """What a reader of a table sees. Never changes; files that are cleaned later end its life.

    Args:
        store: The table's files.
        config: Its properties.
        timeline: Its instants, cut to a point in time for time travel.
        lister: Names its partitions and files.
        view: Its file slices as of the timeline.
        table_schema: Its columns as of the timeline.
        statistics: Value ranges of its files, if any are kept.
    """

    def __init__(
        self,
        store: Store,
        config: TableConfig,
        timeline: Timeline,
        *,
        lister: FileLister,
        view: FileSystemView,
        table_schema: TableSchema,
        statistics: FileStatistics | None = None,
    ) -> None:
        self.store = store
        self.config = config
        self.timeline = timeline
        self.view = view
        self._lister = lister
        self._schema = table_schema
        self._statistics = statistics

    @classmethod
    def load(
        cls,
        store: Store,
        config: TableConfig,
        timeline: Timeline,
        *,
        lister: FileLister,
        statistics: FileStatistics | None = None,
    ) -> Snapshot:
        """Read what is needed to know a table's schema and files as of a timeline.

        Raises:
            SchemaError: Nothing tells the table's schema.
            UnsupportedTableError: The table cannot be read right.
        """
        view = FileSystemView.load(lister, timeline, store=store, config=config)
        return cls(
            store,
            config,
            timeline,
            lister=lister,
            view=view,
            table_schema=load_table_schema(store, config, timeline, view),
            statistics=statistics,
        )

    @property
    def table_schema(self) -> pa.Schema:
        """The table's own columns."""
        return self._schema.arrow

    @cached_property
    def schema(self) -> pa.Schema:
        """Meta columns, then the table's own: what can be scanned."""
        return with_meta_columns(self._schema.arrow)

    @cached_property
    def file_schema(self) -> pa.Schema:
        """Columns of the base files: all, or all but the partition columns where the table drops those."""
        if not self.config.drop_partition_columns:
            return self.schema
        dropped = set(self.config.partition_fields)
        return pa.schema([field for field in self.schema if field.name not in dropped])

    @property
    def commit_schema_json(self) -> str:
        """The Avro schema that a commit on top of this snapshot states, when it changes no column."""
        return self._schema.commit_json

    @cached_property
    def key_generator(self) -> KeyGenerator:
        """How the table's keys and partition paths are made.

        For some tables below version 9 that shows in the stored keys only: then a file is looked into.
        """
        generator = KeyGenerator.for_table(self.config, self._schema.arrow)
        if not generator.needs_stored_key:
            return generator
        for base in self.view.latest_base_files():
            if (key := _any_key(self.store, base)) is not None:
                return KeyGenerator.for_table(self.config, self._schema.arrow, stored_key=key)
        return replace(generator, needs_stored_key=False)  # without rows, there is nothing to agree with

    @cached_property
    def partitions(self) -> tuple[PartitionPath, ...]:
        """All partitions that the table lists, sorted; some may have no slices as of this timeline."""
        return self._lister.list_partitions()

    @cached_property
    def partition_values(self) -> Mapping[PartitionPath, Mapping[str, pa.Scalar]]:
        """Values that the partition columns have in every row of a partition, where the path tells."""
        return {path: self.key_generator.partition_values(path) for path in self.partitions}

    def slices(self, pruning: Predicate | None = None) -> tuple[FileSlice, ...]:
        """The newest slice of each file group, without those that hold no row of the predicate for certain.

        Slices that a predicate keeps may hold no such row.
        """
        if pruning is None:
            return self.view.latest_slices(self.partitions)
        kept = self._matching_partitions(pruning)
        slices = self.view.latest_slices(kept)
        if self._statistics is None or not slices:
            return slices
        # A predicate on partition columns alone has done its work.
        columns = sorted(referenced_columns(pruning) & set(self.schema.names))
        is_all = len(kept) == len(self.partitions)
        ranges = self._statistics.column_ranges(columns, None if is_all else kept) if columns else None
        if ranges is None or not ranges.num_rows:
            return slices
        gone = ranges.filter(pc.invert(may_match_files(pruning, ranges)))
        names = set(zip(gone["partition"].to_pylist(), gone["file_name"].to_pylist(), strict=True))
        return tuple(item for item in slices if not _is_gone(item, names))

    def slices_of_partition(self, partition: PartitionPath) -> tuple[FileSlice, ...]:
        """The newest slice of each file group of one partition; empty when there is no such partition."""
        return self.view.latest_slices((partition,)) if partition in self.partition_values else ()

    def scan(
        self,
        columns: Sequence[str] | None = None,
        predicate: pc.Expression | None = None,
        *,
        slices: Sequence[FileSlice] | None = None,
    ) -> pa.RecordBatchReader:
        """Stream some columns of the rows of which the predicate is true, exactly.

        Memory holds a few batches for each thread.

        Args:
            columns: Names in `schema`; None for all, may be empty.
            predicate: Over any columns of `schema`.
            slices: Out of `slices(...)`; None for all.

        Raises:
            BindError: A column is not in the schema.
            UnsupportedTableError: A slice has log files.
            CorruptTableError: (from the stream) a file is damaged.

        Example:
            >>> snapshot.scan(["id"], pc.field("id") > 5).read_all()  # doctest: +SKIP
        """
        return scan_rows(self._task(columns, predicate, slices))

    def scan_positions(
        self,
        columns: Sequence[str] | None = None,
        *,
        slices: Sequence[FileSlice],
        predicate: pc.Expression | None = None,
    ) -> pa.RecordBatchReader:
        """Stream like `scan`, followed by two columns that say where each row lives.

        `SLICE_COLUMN` (int32) counts in the given slices, `POSITION_COLUMN` (int64) is the row's position in the
        slice's base file.
        """
        return scan_rows_with_positions(self._task(columns, predicate, slices))

    def _task(
        self,
        columns: Sequence[str] | None,
        predicate: pc.Expression | None,
        slices: Sequence[FileSlice] | None,
    ) -> ScanTask:
        names = self.schema.names
        wanted = tuple(names if columns is None else columns)
        for name in wanted:
            if name not in names:
                raise BindError(
                    f"There is no column {name}", table=self.config.name, hint=f"Columns: {', '.join(names)}."
                )
        chosen = tuple(self.slices() if slices is None else slices)
        generator = self.key_generator
        of_path = (
            generator.filled_values if self.config.drop_partition_columns else generator.partition_values
        )
        constants = {path: of_path(path) for path in {item.partition for item in chosen}}
        return ScanTask(
            store=self.store,
            schema=self.schema,
            columns=wanted,
            predicate=predicate,
            slices=chosen,
            constants=constants,
        )

    def _matching_partitions(self, predicate: Predicate) -> tuple[PartitionPath, ...]:
        generator = self.key_generator
        kinds = dict(zip(generator.partition_fields, generator.partition_kinds, strict=False))
        if not kinds or not referenced_columns(predicate) & kinds.keys():
            return self.partitions
        values = [self.partition_values[path] for path in self.partitions]
        may = may_match_partitions(predicate, values, kinds).to_pylist()
        return tuple(path for path, keep in zip(self.partitions, may, strict=True) if keep)


class SnapshotRelation:
    """A snapshot, or some of its slices, as a lazy table that an engine can be lent."""

    def __init__(self, snapshot: Snapshot, slices: Sequence[FileSlice] | None = None) -> None:
        self._snapshot = snapshot
        self._slices = None if slices is None else tuple(slices)

    @property
    def schema(self) -> pa.Schema:
        """Meta columns first."""
        return self._snapshot.schema

    def scan(self, columns: Sequence[str] | None, predicate: pc.Expression | None) -> pa.RecordBatchReader:
        """Stream some columns of the rows of which the predicate is true."""
        return self._snapshot.scan(columns, predicate, slices=self._slices)


def _any_key(store: Store, base: BaseFile) -> str | None:
    with open_base_file(store, base) as reader:
        if reader.key_range is not None:
            return reader.key_range[0]
        key = with_meta_columns(pa.schema([])).field(_KEY)
        for batch in reader.batches([_KEY], target_schema=pa.schema([key])):
            stored = batch.column(0).drop_null()
            if len(stored):
                return str(stored[0])
    return None


def _is_gone(item: FileSlice, names: set[tuple[str, str]]) -> bool:
    # Ranges of a base file say nothing about the logs on top of it.
    base = item.base_file
    return base is not None and not item.log_files and (item.partition, base.name) in names
