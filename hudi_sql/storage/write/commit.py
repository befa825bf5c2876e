"""Carrying out a change set: from `Changes` to a completed instant."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import CommitOutcomeUnknownError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.commit import CommitMetadata, WriteStat
from hudi_sql.storage.model.files import FileSlice, PartitionPath
from hudi_sql.storage.model.instant import Action, Instant, InstantTime
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.read.snapshot import Snapshot
from hudi_sql.storage.timeline.read import read_commit
from hudi_sql.storage.transaction.conflicts import Footprint
from hudi_sql.storage.transaction.markers import MarkerKind
from hudi_sql.storage.transaction.transaction import (
    MetadataSteps,
    Transaction,
    pending_clustering_groups,
)
from hudi_sql.storage.write.changes import Changes
from hudi_sql.storage.write.cow import OutputFile, WriteTarget, WrittenFile, output_file, rewrite_slice
from hudi_sql.storage.write.executor import writer_threads
from hudi_sql.storage.write.first_metadata_table import ensure_metadata_table
from hudi_sql.storage.write.inserts import InsertRouter
from hudi_sql.storage.write.metadata_table import MetadataTableWriter
from hudi_sql.storage.write.partitioner import Bin, average_record_bytes, bins, new_file_id
from hudi_sql.storage.write.support import check_slices_writable

__all__ = ["CommitResult", "run_commit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """What one commit did."""

    instant: InstantTime | None = None
    """None when nothing was to be changed and no commit was made."""
    num_inserted: int = 0
    num_updated: int = 0
    num_deleted: int = 0
    files: tuple[str, ...] = ()
    """Base files that were written, relative to the table."""
    bytes_written: int = 0
    partitions: tuple[PartitionPath, ...] = ()
    phases_ms: dict[str, float] = field(default_factory=dict)
    lock_held_ms: float = 0.0


class _Phases:
    """Wall time between marks, by name."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def mark(self, name: str) -> None:
        now = time.perf_counter()
        self.ms[name] = self.ms.get(name, 0.0) + (now - self._last) * 1000
        self._last = now


def run_commit(
    store: Store, config: TableConfig, snapshot: Snapshot, changes: Changes, settings: WriteConfig
) -> CommitResult:
    """Write the files of a change set and commit them as one instant, or leave no trace.

    Memory is bounded by batches and open files, not by the table; inserts are streamed.

    Raises:
        ConflictError: Another writer came in between; nothing was committed.
        CommitOutcomeUnknownError: The commit may have happened; nothing was deleted.
        LockError: The table is locked by another writer.
        ConstraintError: New rows break a rule of the table; nothing was committed.
    """
    inserts = _first_batch(changes)
    if not changes.slices and inserts is None:
        return CommitResult()
    phases = _Phases()
    config = ensure_metadata_table(store, config, snapshot.table_schema, settings)
    metadata_table = MetadataTableWriter.open(store, config, snapshot)
    steps = MetadataSteps(
        write=metadata_table.write, discard=metadata_table.discard, roll_back=metadata_table.roll_back
    )
    transaction = Transaction(store, config, settings, snapshot.timeline, steps)
    transaction.begin(Action.COMMIT)
    try:
        phases.mark("begin")
        writer = _Writer(store, config, snapshot, settings=settings, transaction=transaction, changes=changes)
        transaction.start(_planned(changes))
        written = writer.write(inserts)
        phases.mark("write")
        metadata_table.prepare(written)
        metadata = CommitMetadata(
            operation=changes.operation,
            write_stats=tuple(file.stat for file in written),
            extra={"schema": snapshot.commit_schema_json},
        )
        instant = transaction.commit(metadata, _footprint(config, changes, metadata))
        phases.mark("commit")
    except CommitOutcomeUnknownError:
        raise
    except BaseException:
        transaction.abort()
        raise
    return _result(instant, metadata, phases, transaction)


class _Writer:
    """Writes all files of one commit, in threads."""

    def __init__(
        self,
        store: Store,
        config: TableConfig,
        snapshot: Snapshot,
        *,
        settings: WriteConfig,
        transaction: Transaction,
        changes: Changes,
    ) -> None:
        self._config = config
        self._snapshot = snapshot
        self._settings = settings
        self._transaction = transaction
        self._store = store
        self._pending = {item.slice: item for item in changes.slices}
        self._tasks = count()
        self._target = WriteTarget(
            store=store,
            instant=transaction.instant,
            schema=snapshot.file_schema,
            table_name=config.name,
            settings=settings,
            collect_keys="record_index" in config.metadata_partitions,
        )

    def write(self, inserts: Iterator[pa.RecordBatch] | None) -> list[WrittenFile]:
        """Rewrite slices and route new rows."""
        with writer_threads(self._settings.parallelism) as threads:
            written = [] if inserts is None else self._insert(inserts, threads)
            rewrites = [
                threads.submit(rewrite_slice, self._target, self._next(piece.partition, piece), changes)
                for piece, changes in self._pending.items()
            ]
            written += [future.result() for future in rewrites]
        return written

    def _insert(self, inserts: Iterator[pa.RecordBatch], threads: Executor) -> list[WrittenFile]:
        router = InsertRouter(
            self._target,
            self._snapshot.key_generator,
            threads,
            bins=self._bins(),
            next_output=self._next,
            changes=self._pending,
        )
        try:
            for batch in inserts:
                router.route(batch)
            return router.finish()
        except BaseException:
            router.abandon()
            raise

    def _bins(self) -> Callable[[PartitionPath], Iterator[Bin]]:
        timeline = self._snapshot.timeline
        commits = (
            read_commit(self._store, self._config, instant) for instant in reversed(timeline.completed_writes)
        )
        record_bytes = average_record_bytes(commits, self._settings)

        clusterings = pending_clustering_groups(self._store, self._config, timeline)
        clustered = frozenset(group for groups in clusterings.values() for group in groups)

        def small(partition: PartitionPath) -> Iterable[FileSlice]:
            """Slices that may take new rows: a pending clustering is going to replace what it read."""
            slices = self._snapshot.slices_of_partition(partition)
            check_slices_writable(slices, self._config.name)
            return (piece for piece in slices if (piece.partition, piece.file_id) not in clustered)

        def of(partition: PartitionPath) -> Iterator[Bin]:
            return bins(partition, small, record_bytes=record_bytes, config=self._settings)

        return of

    def _next(self, partition: PartitionPath, piece: FileSlice | None) -> OutputFile:
        file_id = piece.file_id if piece is not None else new_file_id()
        output = output_file(self._transaction.instant, next(self._tasks), partition, file_id, piece)
        kind = MarkerKind.CREATE if piece is None else MarkerKind.MERGE
        self._transaction.mark(partition, output.name, kind)
        return output


def _first_batch(changes: Changes) -> Iterator[pa.RecordBatch] | None:
    """The new rows, or None when there are none: that must be known before an instant is requested."""
    if changes.inserts is None:
        return None
    reader = iter(changes.inserts)
    for batch in reader:
        if batch.num_rows:
            return _chain(batch, reader)
    return None


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _planned(changes: Changes) -> CommitMetadata:
    """What is known before anything is written; other writers look at it for early conflicts only."""
    stats = tuple(
        WriteStat(
            partition=item.slice.partition,
            file_id=item.slice.file_id,
            path="",
            previous_commit=str(item.slice.instant),
            num_writes=0,
            num_inserts=0,
            num_update_writes=len(item.updated),
            num_deletes=len(item.deleted),
            file_size_bytes=0,
        )
        for item in changes.slices
    )
    return CommitMetadata(operation=changes.operation, write_stats=stats)


def _footprint(config: TableConfig, changes: Changes, metadata: CommitMetadata) -> Footprint:
    stats = metadata.write_stats
    return Footprint(
        file_groups=frozenset(
            (stat.partition, stat.file_id) for stat in stats if stat.previous_base_file is not None
        ),
        read_partitions=None if changes.read_partitions is None else frozenset(changes.read_partitions),
        reads_nothing=changes.reads_nothing,
        inserted_partitions=frozenset(stat.partition for stat in stats if stat.num_inserts),
        keys_are_new=changes.keys_are_new,
        keys_are_global="record_index" in config.metadata_partitions,
    )


def _result(
    instant: Instant, metadata: CommitMetadata, phases: _Phases, transaction: Transaction
) -> CommitResult:
    stats = metadata.write_stats
    return CommitResult(
        instant=instant.requested,
        num_inserted=sum(stat.num_inserts for stat in stats),
        num_updated=sum(stat.num_update_writes for stat in stats),
        num_deleted=sum(stat.num_deletes for stat in stats),
        files=tuple(stat.path for stat in stats),
        bytes_written=sum(stat.file_size_bytes for stat in stats),
        partitions=tuple(sorted({stat.partition for stat in stats})),
        phases_ms=phases.ms,
        lock_held_ms=transaction.lock_held_ms,
    )
