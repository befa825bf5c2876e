"""Reads one Parquet base file, whoever wrote it (base file notes §3, §5).

Two-level lists of Hudi's Avro writer, INT96 timestamps, several row groups, columns in another order and columns that
the file lacks are all ordinary here: rows come out in the table's schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_sql.errors import CorruptTableError, HudiSqlError, UnsupportedTableError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.files import BaseFile
from hudi_sql.storage.schema.evolution import adapt_array, adapt_batch, same_type

__all__ = ["DEFAULT_BATCH_ROWS", "BaseFileReader", "PositionedBatch", "RowGroup", "open_base_file"]

DEFAULT_BATCH_ROWS = 131_072
_MIN_KEY, _MAX_KEY = b"hoodie_min_record_key", b"hoodie_max_record_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """A run of rows that is stored, and can be skipped, on its own."""

    index: int
    start: int
    """Position of its first row in the file."""
    num_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionedBatch:
    """Consecutive rows, the first of which is at `start` in the file."""

    start: int
    batch: pa.RecordBatch


def open_base_file(store: Store, base_file: BaseFile) -> BaseFileReader:
    """Open a base file. Reads its footer.

    Raises:
        ObjectNotFoundError: The file is gone (cleaned).
        CorruptTableError: It is no Parquet file.
        UnsupportedTableError: It is of another format.

    Example:
        >>> with open_base_file(store, slice.base_file) as reader:  # doctest: +SKIP
        ...     rows = reader.num_rows
    """
    if not base_file.name.endswith(".parquet"):
        extension = base_file.name.rpartition(".")[2]
        raise UnsupportedTableError(
            f"Base files of format {extension} are not read",
            property="hoodie.table.base.file.format",
            value=extension.upper(),
            hint="Only Parquet is.",
        )
    source = store.open_input(base_file.path)
    try:
        file = pq.ParquetFile(
            source, pre_buffer=store.local_path("") is None, coerce_int96_timestamp_unit="us"
        )
    except HudiSqlError:
        source.close()
        raise
    except (pa.ArrowException, OSError) as exc:
        source.close()
        raise _corrupt(base_file.path, exc) from exc
    return BaseFileReader(file=file, source=source, path=base_file.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFileReader:
    """An open base file. A context manager; not for several threads at once."""

    file: pq.ParquetFile
    source: pa.NativeFile
    path: str
    _schema: list[pa.Schema] = field(default_factory=list, repr=False, compare=False)

    def __enter__(self) -> BaseFileReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.file.close()
        if not self.source.closed:
            self.source.close()

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer."""
        return self.file.metadata

    @property
    def schema(self) -> pa.Schema:
        """Columns as this file has them."""
        if not self._schema:
            try:
                self._schema.append(self.file.schema_arrow.remove_metadata())
            except (pa.ArrowException, OSError) as exc:
                raise _corrupt(self.path, exc) from exc
        return self._schema[0]

    @property
    def num_rows(self) -> int:
        """Rows of the file."""
        return int(self.metadata.num_rows)

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """All row groups, in file order."""
        groups = []
        start = 0
        for index in range(self.metadata.num_row_groups):
            num_rows = self.metadata.row_group(index).num_rows
            groups.append(RowGroup(index=index, start=start, num_rows=num_rows))
            start += num_rows
        return tuple(groups)

    @property
    def key_range(self) -> tuple[str, str] | None:
        """Least and greatest record key as the footer states them; None when it does not."""
        entries = self.metadata.metadata or {}
        if _MIN_KEY not in entries or _MAX_KEY not in entries:
            return None
        return entries[_MIN_KEY].decode("utf-8"), entries[_MAX_KEY].decode("utf-8")

    @property
    def avro_schema_json(self) -> str | None:
        """The Avro schema that the footer states, meta columns included."""
        text = (self.metadata.metadata or {}).get(b"parquet.avro.schema")
        return None if text is None else text.decode("utf-8")

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        target_schema: pa.Schema,
        row_groups: Sequence[RowGroup] | None = None,
        constants: Mapping[str, pa.Scalar] | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        use_threads: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """Stream the rows in file order, in the types of the target schema.

        Args:
            columns: Which columns of the target schema, and in which order; None for all, empty for row counts only.
            target_schema: The table's schema; columns that the file lacks are NULL.
            row_groups: Which parts of the file; None for all.
            constants: Values of columns that the file lacks (partition columns that only the path holds).
            batch_rows: Most rows of a batch.
            use_threads: Whether columns are decoded in parallel.

        Raises:
            SchemaError: A column's type in the file cannot become the table's.
            CorruptTableError: The file is damaged.
        """
        for item in self.positioned_batches(
            columns,
            target_schema=target_schema,
            row_groups=row_groups,
            constants=constants,
            batch_rows=batch_rows,
            use_threads=use_threads,
        ):
            yield item.batch

    def positioned_batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        target_schema: pa.Schema,
        row_groups: Sequence[RowGroup] | None = None,
        constants: Mapping[str, pa.Scalar] | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        use_threads: bool = True,
    ) -> Iterator[PositionedBatch]:
        """Stream like `batches`, with the position of each batch's first row, also when row groups are skipped."""
        wanted = target_schema if columns is None else _select(target_schema, columns)
        stored = [name for name in wanted.names if name in self.schema.names]
        filled = {
            name: value
            for name, value in (constants or {}).items()
            if name in wanted.names and name not in stored
        }
        for run in _runs(self.row_groups if row_groups is None else row_groups):
            position = run[0].start
            for batch in self._read(run, stored, batch_rows, use_threads=use_threads):
                adapted = self._adapt(batch, wanted, filled)
                yield PositionedBatch(start=position, batch=adapted)
                position += batch.num_rows

    def _read(
        self, run: Sequence[RowGroup], stored: Sequence[str], batch_rows: int, *, use_threads: bool
    ) -> Iterator[pa.RecordBatch]:
        if not stored:
            yield from _length_only(sum(group.num_rows for group in run), batch_rows)
            return
        try:
            yield from self.file.iter_batches(
                batch_size=batch_rows,
                row_groups=[group.index for group in run],
                columns=list(stored),
                use_threads=use_threads,
            )
        except HudiSqlError:
            raise
        except (pa.ArrowException, OSError) as exc:
            raise _corrupt(self.path, exc) from exc

    def _adapt(
        self, batch: pa.RecordBatch, wanted: pa.Schema, filled: Mapping[str, pa.Scalar]
    ) -> pa.RecordBatch:
        if not filled and _agrees(batch.schema, wanted):
            return batch
        for name, value in filled.items():
            kind = wanted.field(name).type
            column = adapt_array(pa.repeat(value, batch.num_rows), kind, name)
            batch = _append(batch, pa.field(name, kind), column)
        return adapt_batch(batch, wanted)


def _select(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in columns])


def _agrees(schema: pa.Schema, wanted: pa.Schema) -> bool:
    if schema.names != wanted.names:
        return False
    pairs = zip(schema, wanted, strict=True)
    return all(one.nullable == other.nullable and same_type(one.type, other.type) for one, other in pairs)


def _append(batch: pa.RecordBatch, field: pa.Field, column: pa.Array) -> pa.RecordBatch:
    if not batch.num_columns:
        # A batch without columns forgets its length as soon as it is rebuilt.
        return pa.RecordBatch.from_arrays([column], schema=pa.schema([field]))
    return batch.append_column(field, column)


def _runs(groups: Sequence[RowGroup]) -> Iterator[list[RowGroup]]:
    """Row groups that follow one another in the file can be read in one go."""
    run: list[RowGroup] = []
    for group in groups:
        if group.num_rows == 0:
            continue
        if run and group.index != run[-1].index + 1:
            yield run
            run = []
        run.append(group)
    if run:
        yield run


def _length_only(num_rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    while num_rows > 0:
        rows = min(num_rows, batch_rows)
        yield pa.RecordBatch.from_arrays([pa.nulls(rows)], names=["rows"]).select([])
        num_rows -= rows


def _corrupt(path: str, cause: Exception) -> CorruptTableError:
    return CorruptTableError(
        f"Base file {path} cannot be read: {cause}",
        path=path,
        hint="The file is damaged or no Parquet file.",
    )
