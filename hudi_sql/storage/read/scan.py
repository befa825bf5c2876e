"""Rows of file slices, filtered exactly, as a stream.

Files whose columns have the table's own types are scanned by pyarrow's dataset scanner, which decodes, filters and
skips row groups in C++. Files of an older schema, with two-level lists, INT96 timestamps or without the partition
columns are brought into the table's types first and filtered then.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hudi_sql.errors import (
    BindError,
    CorruptTableError,
    HudiSqlError,
    ObjectNotFoundError,
    UnsupportedTableError,
)
from hudi_sql.storage.base_file.reader import (
    DEFAULT_BATCH_ROWS,
    BaseFileReader,
    PositionedBatch,
    RowGroup,
    open_base_file,
)
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.files import BaseFile, FileSlice, PartitionPath
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN
from hudi_sql.storage.read.streaming import stream_in_order
from hudi_sql.storage.schema.evolution import same_type

__all__ = ["ScanTask", "scan_rows", "scan_rows_with_positions"]

_REMOTE_THREADS = 16
# Footers stay in memory while their files are scanned, and a Bloom filter of Hudi's makes one of half a megabyte.
_FILES_AT_ONCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """What to read of some file slices."""

    store: Store
    schema: pa.Schema
    """Of the table, meta columns first."""
    columns: tuple[str, ...]
    predicate: pc.Expression | None
    slices: tuple[FileSlice, ...]
    constants: Mapping[PartitionPath, Mapping[str, pa.Scalar]]
    """Values of partition columns by partition. They stand instead of what files hold, as in Spark: a writer with a
    global index that keeps rows where they are may leave the value of another partition in a file."""

    @property
    def output_schema(self) -> pa.Schema:
        """The asked columns, in order."""
        return pa.schema([self.schema.field(name) for name in self.columns])

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The asked columns and those that the predicate mentions."""
        if self.predicate is None:
            return self.columns
        # An expression does not list its columns; its text has all their names. More than needed does no harm.
        text = str(self.predicate)
        return tuple(dict.fromkeys((*self.columns, *(name for name in self.schema.names if name in text))))


def scan_rows(task: ScanTask) -> pa.RecordBatchReader:
    """Stream the rows of which the predicate is true."""
    _check_slices(task.slices)
    _check_predicate(task)
    return pa.RecordBatchReader.from_batches(task.output_schema, _rows(task))


def scan_rows_with_positions(task: ScanTask) -> pa.RecordBatchReader:
    """Stream like `scan_rows`, with the place of each row behind the asked columns.

    The slice column counts in `task.slices`.
    """
    _check_slices(task.slices)
    _check_predicate(task)
    schema = task.output_schema
    for name, kind in ((SLICE_COLUMN, pa.int32()), (POSITION_COLUMN, pa.int64())):
        schema = schema.append(pa.field(name, kind, nullable=False))
    sources = [
        lambda index=index, base=piece.base_file: _placed(task, index, base, schema)
        for index, piece in enumerate(task.slices)
        if piece.base_file is not None
    ]
    return pa.RecordBatchReader.from_batches(schema, stream_in_order(sources, _threads(task.store)))


def _check_slices(slices: Sequence[FileSlice]) -> None:
    for piece in slices:
        if piece.log_files:
            raise UnsupportedTableError(
                f"File group {piece.file_id} has log files, which are not merged on read yet",
                property="hoodie.table.type",
                value="MERGE_ON_READ",
                hint="Compact the table first, or read it with Hudi.",
            )


def _check_predicate(task: ScanTask) -> None:
    """Refuse what is no condition on these columns, before a file could be called damaged for it."""
    if task.predicate is not None:
        _filtered(pa.RecordBatch.from_pylist([], task.schema), task.predicate)


def _filtered(batch: pa.RecordBatch, predicate: pc.Expression) -> pa.RecordBatch:
    try:
        return batch.filter(predicate)
    except pa.ArrowException as exc:
        raise BindError(
            f"The condition {predicate} cannot be evaluated while the table is read: {exc}",
            hint="Compare the columns with values of their own types.",
        ) from exc


def _threads(store: Store) -> int:
    return os.cpu_count() or 1 if store.local_path("") is not None else _REMOTE_THREADS


def _rows(task: ScanTask) -> Iterator[pa.RecordBatch]:
    files = [piece.base_file for piece in task.slices if piece.base_file is not None]
    for start in range(0, len(files), _FILES_AT_ONCE):
        plain, odd = _sorted_out(task, files[start : start + _FILES_AT_ONCE])
        if plain:
            yield from _scan_plain(task, plain)
        if odd:
            sources = [lambda base=base: _scan_odd(task, base) for base in odd]
            yield from stream_in_order(sources, _threads(task.store))


def _sorted_out(
    task: ScanTask, files: Sequence[BaseFile]
) -> tuple[list[ds.ParquetFileFragment], list[BaseFile]]:
    """Split files into fragments that the dataset scanner takes as they are, and the rest."""
    wanted = pa.schema([task.schema.field(name) for name in task.read_columns])

    def fragment_of(base: BaseFile) -> ds.ParquetFileFragment | None:
        try:
            fragment = _fragment(task, base)
            physical = fragment.physical_schema
        except (pa.ArrowException, OSError):
            return None  # read one by one, the file gets an error that says what it is
        return fragment if _is_plain(physical, wanted) else None

    with ThreadPoolExecutor(min(_threads(task.store), len(files) or 1)) as threads:
        found = list(threads.map(fragment_of, files))
    plain = [fragment for fragment in found if fragment is not None]
    return plain, [base for base, fragment in zip(files, found, strict=True) if fragment is None]


def _fragment(task: ScanTask, base: BaseFile) -> ds.ParquetFileFragment:
    """A base file as a dataset fragment that knows the values of its partition."""
    file_system, root = task.store.arrow_filesystem()
    path = f"{root}/{base.path}" if root else base.path
    known: pc.Expression | None = None
    for name, value in task.constants.get(base.partition, {}).items():
        field = pc.field(name)
        fact = field == value if value.is_valid else field.is_null()
        known = fact if known is None else known & fact
    return ds.ParquetFileFormat().make_fragment(path, file_system, partition_expression=known)


def _is_plain(physical: pa.Schema, wanted: pa.Schema) -> bool:
    for field in wanted:
        index = physical.get_field_index(field.name)
        if index < 0 or not same_type(physical.field(index).type, field.type):
            return False
    return True


def _scan_plain(task: ScanTask, fragments: Sequence[ds.ParquetFileFragment]) -> Iterator[pa.RecordBatch]:
    wanted = pa.schema([task.schema.field(name) for name in task.read_columns])
    dataset = ds.FileSystemDataset(fragments, wanted, fragments[0].format)
    try:
        scanner = dataset.scanner(
            columns=list(task.columns), filter=task.predicate, batch_size=DEFAULT_BATCH_ROWS
        )
        yield from scanner.to_reader()
    except HudiSqlError:
        raise
    except FileNotFoundError as exc:
        raise ObjectNotFoundError(
            f"A base file of the snapshot is gone: {exc}", hint="It was cleaned; read the table again."
        ) from exc
    except (pa.ArrowException, OSError) as exc:
        raise CorruptTableError(f"Base files of the table cannot be read: {exc}") from exc


def _scan_odd(task: ScanTask, base: BaseFile) -> Iterator[pa.RecordBatch]:
    output = task.output_schema
    with open_base_file(task.store, base) as reader:
        for item in _adapted(task, base, reader, None):
            batch = item.batch
            if task.predicate is not None:
                batch = _filtered(batch, task.predicate)
            if batch.num_rows:
                yield _with_columns(batch, output)


def _placed(task: ScanTask, index: int, base: BaseFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with open_base_file(task.store, base) as reader:
        groups = _matching_groups(task, base, reader)
        for item in _adapted(task, base, reader, groups):
            batch = item.batch
            rows = batch.num_rows
            places = [
                pa.repeat(pa.scalar(index, pa.int32()), rows),
                pa.array(np.arange(item.start, item.start + rows, dtype=np.int64)),
            ]
            fields = [*batch.schema, *list(schema)[-2:]]
            batch = pa.RecordBatch.from_arrays([*batch.columns, *places], schema=pa.schema(fields))
            if task.predicate is not None:
                batch = _filtered(batch, task.predicate)
            if batch.num_rows:
                yield _with_columns(batch, schema)


def _adapted(
    task: ScanTask, base: BaseFile, reader: BaseFileReader, groups: Sequence[RowGroup] | None
) -> Iterator[PositionedBatch]:
    constants = task.constants.get(base.partition, {})
    known = {name: value for name, value in constants.items() if name in task.read_columns}
    for item in reader.positioned_batches(
        task.read_columns,
        target_schema=task.schema,
        row_groups=groups,
        constants=constants,
        use_threads=len(task.slices) == 1,
    ):
        batch = item.batch
        for name, value in known.items():
            index = batch.schema.get_field_index(name)
            field = batch.schema.field(index)
            batch = batch.set_column(index, field, pa.repeat(value.cast(field.type), batch.num_rows))
        yield PositionedBatch(start=item.start, batch=batch)


def _matching_groups(task: ScanTask, base: BaseFile, reader: BaseFileReader) -> Sequence[RowGroup] | None:
    """Row groups that may hold a row of the predicate, by pyarrow's own reading of the footer; None for all."""
    wanted = pa.schema([task.schema.field(name) for name in task.read_columns])
    if task.predicate is None or len(reader.row_groups) < 2 or not _is_plain(reader.schema, wanted):
        return None
    try:
        fragment = _fragment(task, base)
        kept = {group.id for group in fragment.subset(task.predicate, schema=wanted).row_groups}
    except (pa.ArrowException, OSError):
        return None
    return [group for group in reader.row_groups if group.index in kept]


def _with_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch
    picked = batch.select(schema.names)
    if not len(schema):
        return picked
    return pa.RecordBatch.from_arrays(picked.columns, schema=schema)
