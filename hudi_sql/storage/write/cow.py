"""The copy-on-write rewrite of one file slice: by position, in one pass, in bounded memory.

A new base file takes the place of the old one: rows that are deleted are left out, rows that are updated get their new
values scattered in, all others are carried over as they are, and new rows may follow at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import SchemaError
from hudi_sql.storage.base_file.reader import open_base_file
from hudi_sql.storage.base_file.writer import BaseFileWriter, WrittenBaseFile
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.commit import NEW_FILE_GROUP, WriteStat
from hudi_sql.storage.model.files import FileId, FileSlice, PartitionPath, base_file_name
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.schema.meta_columns import META_COLUMNS
from hudi_sql.storage.write.changes import SliceChanges
from hudi_sql.storage.write.meta_values import constant, sequence_numbers

__all__ = [
    "FileGroupWriter",
    "OutputFile",
    "WriteTarget",
    "WrittenFile",
    "no_changes",
    "output_file",
    "rewrite_slice",
]

_COMMIT_TIME, _SEQNO, _KEY, _PARTITION, _FILE_NAME = META_COLUMNS
_BATCH_ROWS = 131_072


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTarget:
    """What all writer tasks of one commit share. Pickles."""

    store: Store
    instant: InstantTime
    schema: pa.Schema
    """Of the files: meta columns first."""
    table_name: str
    settings: WriteConfig
    collect_keys: bool
    """Whether keys of inserted and deleted rows are wanted, for the record index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """One base file to write. Pickles."""

    task: int
    """Number of the writer task, unique within the commit."""
    partition: PartitionPath
    file_id: FileId
    name: str
    previous: FileSlice | None

    @property
    def path(self) -> str:
        """Relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A finished base file, and what the metadata table must know of it."""

    stat: WriteStat
    footer: WrittenBaseFile
    inserted_keys: tuple[pa.Array, ...] = field(default=())
    deleted_keys: tuple[pa.Array, ...] = field(default=())


def output_file(
    instant: InstantTime, task: int, partition: PartitionPath, file_id: FileId, previous: FileSlice | None
) -> OutputFile:
    """Name the file that a task is going to write; the token makes it its own within the instant."""
    name = base_file_name(file_id, f"{task}-0-0", instant, "parquet")
    return OutputFile(task=task, partition=partition, file_id=file_id, name=name, previous=previous)


def rewrite_slice(target: WriteTarget, output: OutputFile, changes: SliceChanges) -> WrittenFile:
    """Write the next version of a file slice."""
    with FileGroupWriter(target, output) as writer:
        writer.copy(changes)
        return writer.finish()


class FileGroupWriter:
    """Writes one base file: first `copy` the old one, if there is one, then `append` new rows, then `finish`.

    As a context manager it closes the file when an error leaves it unfinished; the file itself is deleted by the
    transaction, which knows it by its marker.
    """

    def __init__(self, target: WriteTarget, output: OutputFile) -> None:
        self._target = target
        self._output = output
        self._writer = BaseFileWriter(
            target.store,
            output.path,
            target.schema,
            table_name=target.table_name,
            settings=target.settings,
        )
        self._num_sequence = 0
        self._num_writes = 0
        self._num_inserts = 0
        self._num_updates = 0
        self._num_deletes = 0
        self._inserted: list[pa.Array] = []
        self._deleted: list[pa.Array] = []

    def __enter__(self) -> FileGroupWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._writer.abandon()

    def copy(self, changes: SliceChanges) -> None:
        """Carry the old base file over, with changes."""
        base = changes.slice.base_file
        assert base is not None
        with open_base_file(self._target.store, base) as reader:
            start = 0
            for batch in reader.batches(target_schema=self._target.schema, batch_rows=_BATCH_ROWS):
                self._write(self._changed(batch, start, changes))
                start += batch.num_rows

    def append(self, batch: pa.RecordBatch) -> None:
        """Add new rows: all columns of the file's schema, but for commit time, seqno and file name."""
        rows = batch.num_rows
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns[_COMMIT_TIME] = constant(str(self._target.instant), rows)
        columns[_SEQNO] = self._sequence(rows)
        columns[_FILE_NAME] = constant(self._output.name, rows)
        if self._target.collect_keys:
            self._inserted.append(columns[_KEY])
        self._num_inserts += rows
        self._write(self._batch(columns))

    def finish(self) -> WrittenFile:
        """Close the file and say what was written."""
        footer = self._writer.close()
        previous = self._output.previous
        base = previous.base_file if previous is not None else None
        stat = WriteStat(
            partition=self._output.partition,
            file_id=self._output.file_id,
            path=self._output.path,
            previous_commit=str(base.instant) if base is not None else NEW_FILE_GROUP,
            previous_base_file=base.name if base is not None else None,
            num_writes=self._num_writes,
            num_inserts=self._num_inserts,
            num_update_writes=self._num_updates,
            num_deletes=self._num_deletes,
            file_size_bytes=footer.size_bytes,
        )
        return WrittenFile(
            stat=stat,
            footer=footer,
            inserted_keys=tuple(self._inserted),
            deleted_keys=tuple(self._deleted),
        )

    def _write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._num_writes += batch.num_rows
            self._writer.write(batch)

    def _changed(self, batch: pa.RecordBatch, start: int, changes: SliceChanges) -> pa.RecordBatch:
        """One batch of the old file with its updates scattered in and its deleted rows left out."""
        stop = start + batch.num_rows
        dead = _window(changes.deleted, start, stop)
        first, last = np.searchsorted(changes.updated, (start, stop))
        fresh = changes.updated[first:last] - start
        if self._target.collect_keys and len(dead):
            self._deleted.append(batch.column(_KEY).take(pa.array(dead)))
        columns = {name: batch.column(name) for name in batch.schema.names}
        kept: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None
        if len(dead):
            kept = np.delete(np.arange(batch.num_rows, dtype=np.int64), dead)
        if len(fresh):
            values = changes.values.slice(first, last - first)
            new = {name: values.column(name).combine_chunks() for name in values.column_names}
            new[_COMMIT_TIME] = constant(str(self._target.instant), len(fresh))
            new[_SEQNO] = self._sequence(len(fresh))
            scattered = np.arange(batch.num_rows, dtype=np.int64)
            scattered[fresh] = batch.num_rows + np.arange(len(fresh))
            picks = pa.array(scattered if kept is None else scattered[kept])
            for name, replacement in new.items():
                old = columns[name]
                columns[name] = _concat(old, replacement).take(picks)
        plain = None if kept is None else pa.array(kept)
        rows = batch.num_rows if kept is None else len(kept)
        changed = set(changes.values.column_names) | {_COMMIT_TIME, _SEQNO} if len(fresh) else set()
        for name in columns.keys() - changed:
            if plain is not None:
                columns[name] = columns[name].take(plain)
        columns[_FILE_NAME] = constant(self._output.name, rows)
        self._num_updates += len(fresh)
        self._num_deletes += len(dead)
        return self._batch(columns)

    def _sequence(self, rows: int) -> pa.StringArray:
        numbers = sequence_numbers(self._target.instant, self._output.task, self._num_sequence, rows)
        self._num_sequence += rows
        return numbers

    def _batch(self, columns: dict[str, pa.Array]) -> pa.RecordBatch:
        schema = self._target.schema
        try:
            return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as exc:
            raise SchemaError(
                f"New values do not fit the columns of table {self._target.table_name}: {exc}",
                hint="Cast them to the types of the table.",
                table=self._target.table_name,
            ) from exc


def _window(positions: np.ndarray, start: int, stop: int) -> np.ndarray:
    first, last = np.searchsorted(positions, (start, stop))
    return positions[first:last] - start


def _concat(old: pa.Array, new: pa.Array) -> pa.Array:
    return pa.concat_arrays([old, new if new.type == old.type else new.cast(old.type)])


def no_changes(piece: FileSlice) -> SliceChanges:
    """A rewrite that only makes room for new rows."""
    empty = np.empty(0, dtype=np.int64)
    return SliceChanges(slice=piece, deleted=empty, updated=empty, values=pa.table({}))
