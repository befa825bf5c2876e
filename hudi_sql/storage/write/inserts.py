"""New rows on their way into files: keys and partitions are computed, rows split by partition, files filled.

One file is open in each partition at a time, and only so many partitions are: a stream that jumps between more of them
than that leaves some files small, which the next insert then fills up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudi_sql.errors import ConstraintError, SchemaError
from hudi_sql.storage.key_generator.key_generator import KeyGenerator
from hudi_sql.storage.model.files import FileSlice, PartitionPath
from hudi_sql.storage.schema.meta_columns import META_COLUMNS
from hudi_sql.storage.write.changes import SliceChanges
from hudi_sql.storage.write.cow import FileGroupWriter, OutputFile, WriteTarget, WrittenFile, no_changes
from hudi_sql.storage.write.meta_values import numbered
from hudi_sql.storage.write.partitioner import Bin

__all__ = ["InsertRouter", "OutputNamer"]

_, _, _KEY, _PARTITION, _ = META_COLUMNS
_MAX_OPEN_FILES = 64

OutputNamer = Callable[[PartitionPath, FileSlice | None], OutputFile]
"""Names the next output file and marks it."""


@dataclass(slots=True)
class _OpenFile:
    """A file that is being filled; its batches are written one after the other."""

    writer: FileGroupWriter
    room: int
    last: Future[None]


class InsertRouter:
    """Routes batches of new rows into files. Not for several threads; the files themselves are written by threads."""

    def __init__(
        self,
        target: WriteTarget,
        keys: KeyGenerator,
        threads: Executor,
        *,
        bins: Callable[[PartitionPath], Iterator[Bin]],
        next_output: OutputNamer,
        changes: dict[FileSlice, SliceChanges],
    ) -> None:
        """Make a router.

        Args:
            target: What is written to.
            keys: Computes keys and partitions.
            threads: Where files are written.
            bins: Room for new rows of a partition.
            next_output: Names files.
            changes: Changes by slice, for slices that are to be rewritten anyway; those whose rewrite the router
                takes over are removed from it.
        """
        self._target = target
        self._keys = keys
        self._threads = threads
        self._bins = bins
        self._next_output = next_output
        self._changes = changes
        self._room: dict[PartitionPath, Iterator[Bin]] = {}
        self._open: OrderedDict[PartitionPath, _OpenFile] = OrderedDict()
        self._closing: list[Future[WrittenFile]] = []
        self._num_auto_keys = 0

    def route(self, batch: pa.RecordBatch) -> None:
        """Put the rows of one batch into files."""
        if not batch.num_rows:
            return
        self._check_columns(batch)
        _check_not_null(batch)
        with_meta = self._with_meta(batch)
        for partition, rows in _by_partition(with_meta):
            self._fill(partition, rows)

    def finish(self) -> list[WrittenFile]:
        """Close all files and wait for them."""
        while self._open:
            self._close_oldest()
        return [future.result() for future in self._closing]

    def abandon(self) -> None:
        """Close what is open after an error."""
        for file in self._open.values():
            file.last.cancel()
            file.last.exception() if not file.last.cancelled() else None
            file.writer.__exit__(RuntimeError, None, None)
        self._open.clear()
        for future in self._closing:
            if not future.cancel():
                future.exception()

    def _check_columns(self, batch: pa.RecordBatch) -> None:
        wanted = [name for name in self._target.schema.names if name not in META_COLUMNS]
        if sorted(batch.schema.names) != sorted(wanted):
            raise SchemaError(
                f"New rows have the columns {', '.join(batch.schema.names)}, and the table has {', '.join(wanted)}",
                table=self._target.table_name,
            )

    def _with_meta(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The file's columns; those that a file fills in itself are left empty here."""
        rows = batch.num_rows
        if self._keys.is_auto:
            keys: pa.Array = numbered(f"{self._target.instant}_0", self._num_auto_keys, rows)
            self._num_auto_keys += rows
        else:
            keys = self._keys.record_keys(batch)
        empty = pa.nulls(rows, pa.string())
        columns = {name: batch.column(name) for name in batch.schema.names}
        meta = dict.fromkeys(META_COLUMNS, empty)
        meta[_KEY] = keys
        meta[_PARTITION] = self._keys.partition_paths(batch)
        arrays = [meta[name] if name in meta else columns[name] for name in self._target.schema.names]
        return pa.RecordBatch.from_arrays(arrays, names=self._target.schema.names)

    def _fill(self, partition: PartitionPath, rows: pa.RecordBatch) -> None:
        start = 0
        while start < rows.num_rows:
            file = self._file(partition)
            taken = min(file.room, rows.num_rows - start)
            piece = rows.slice(start, taken)
            # The previous batch must be written before the next one, and no more than one waits: that bounds memory.
            file.last.result()
            file.last = self._threads.submit(file.writer.append, piece)
            file.room -= taken
            start += taken
            if file.room == 0:
                self._close(partition)

    def _file(self, partition: PartitionPath) -> _OpenFile:
        file = self._open.get(partition)
        if file is not None:
            self._open.move_to_end(partition)
            return file
        if len(self._open) >= _MAX_OPEN_FILES:
            self._close_oldest()
        if partition not in self._room:
            self._room[partition] = self._bins(partition)
        room = next(self._room[partition])
        output = self._next_output(partition, room.slice)
        writer = FileGroupWriter(self._target, output)
        if room.slice is not None:
            changes = self._changes.pop(room.slice, None) or no_changes(room.slice)
            ready = self._threads.submit(writer.copy, changes)
        else:
            ready = Future()
            ready.set_result(None)
        file = self._open[partition] = _OpenFile(writer=writer, room=room.num_rows, last=ready)
        return file

    def _close_oldest(self) -> None:
        self._close(next(iter(self._open)))

    def _close(self, partition: PartitionPath) -> None:
        file = self._open.pop(partition)
        file.last.result()
        self._closing.append(self._threads.submit(file.writer.finish))


def _check_not_null(batch: pa.RecordBatch) -> None:
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            raise ConstraintError(
                f"Column {field.name} is NOT NULL, and {column.null_count} new rows have no value for it",
                hint="Give it a value in the statement.",
                part=f"column {field.name}",
                column=field.name,
            )


def _by_partition(batch: pa.RecordBatch) -> Iterator[tuple[PartitionPath, pa.RecordBatch]]:
    """Rows of each partition, in their order."""
    encoded = batch.column(_PARTITION)
    if not isinstance(encoded, pa.DictionaryArray):
        encoded = encoded.dictionary_encode()
    plain = batch.set_column(batch.schema.get_field_index(_PARTITION), _PARTITION, encoded.cast(pa.string()))
    names = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    used = np.unique(codes)
    if len(used) == 1:
        yield PartitionPath(names[used[0]]), plain
        return
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], used, side="right")
    start = 0
    for code, end in zip(used, ends, strict=True):
        yield PartitionPath(names[code]), plain.take(pa.array(order[start:end]))
        start = end
