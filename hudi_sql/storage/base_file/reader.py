"""Reading Parquet base files, by whatever Hudi release or engine they were written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from hudi_sql.errors import CorruptTableError, StorageError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.files import BaseFile
from hudi_sql.storage.schema.evolution import adapt_batch

__all__ = ["BaseFileReader", "Block", "open_base_file"]

_BATCH_ROWS = 131_072


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Consecutive rows of a base file."""

    start: int
    """Position of the first of them in the file."""
    batch: pa.RecordBatch


class BaseFileReader:
    """An open base file. A context manager."""

    def __init__(self, store: Store, base: BaseFile) -> None:
        self._store = store
        self._base = base
        self._source = store.open_input(base.path)
        try:
            # INT96 has no unit of its own; Hudi's timestamps are in microseconds.
            self._file = pq.ParquetFile(self._source, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
        except (pa.ArrowException, OSError) as exc:
            self._source.close()
            raise _corrupt(base, exc) from exc

    def __enter__(self) -> BaseFileReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._source.close()

    @property
    def schema(self) -> pa.Schema:
        """Columns of the file, as Arrow reads them."""
        return self._file.schema_arrow

    @property
    def num_rows(self) -> int:
        """Rows of the file."""
        return int(self._file.metadata.num_rows)

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer."""
        return self._file.metadata

    @property
    def footer(self) -> dict[str, str]:
        """Key/value metadata of the footer."""
        pairs = self._file.metadata.metadata or {}
        return {key.decode(): value.decode("utf-8", "replace") for key, value in pairs.items()}

    def batches(
        self, columns: Sequence[str] | None, *, target_schema: pa.Schema, batch_rows: int = _BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """All rows in their order, in columns and types of the table's schema."""
        for block in self.blocks(columns, target_schema=target_schema, batch_rows=batch_rows):
            yield block.batch

    def blocks(
        self,
        columns: Sequence[str] | None,
        *,
        target_schema: pa.Schema,
        predicate: pc.Expression | None = None,
        batch_rows: int = _BATCH_ROWS,
    ) -> Iterator[Block]:
        """Rows with their positions; row groups in which nothing can satisfy `predicate` are left out.

        Rows are not filtered otherwise. Columns that the file does not have are NULL.
        """
        target = target_schema if columns is None else pa.schema([target_schema.field(name) for name in columns])
        present = [name for name in target.names if self.schema.get_field_index(name) >= 0]
        groups = self._row_groups(predicate)
        starts = np.concatenate([[0], np.cumsum(self._row_group_rows())])
        # Runs of neighbouring row groups are read in one go: a file may have many small ones.
        for first, last in _runs(groups):
            position = int(starts[first])
            if not present:
                yield from _empty_blocks(position, int(starts[last + 1]) - position, target, batch_rows)
                continue
            try:
                for batch in self._file.iter_batches(
                    batch_rows, row_groups=list(range(first, last + 1)), columns=present
                ):
                    yield Block(start=position, batch=adapt_batch(batch, target))
                    position += batch.num_rows
            except (pa.ArrowException, OSError) as exc:
                raise _corrupt(self._base, exc) from exc

    def _row_group_rows(self) -> list[int]:
        return [self._file.metadata.row_group(i).num_rows for i in range(self._file.metadata.num_row_groups)]

    def _row_groups(self, predicate: pc.Expression | None) -> list[int]:
        everything = list(range(self._file.metadata.num_row_groups))
        if predicate is None or len(everything) <= 1:
            return everything
        filesystem, root = self._store.arrow_filesystem()
        path = f"{root}/{self._base.path}" if root else self._base.path
        try:
            fragment = ds.ParquetFileFormat().make_fragment(path, filesystem)
            kept = fragment.subset(filter=predicate, schema=self.schema)
            return [group.id for group in kept.row_groups]
        except (pa.ArrowException, OSError, StorageError, KeyError):
            # The filter is about columns or types that this file does not have: nothing can be left out.
            return everything


def open_base_file(store: Store, base: BaseFile) -> BaseFileReader:
    """Open a base file for reading.

    Raises:
        ObjectNotFoundError: It is gone (cleaned, for example).
        CorruptTableError: It is no Parquet file.
    """
    return BaseFileReader(store, base)


def _runs(groups: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(groups):
        end = start
        while end + 1 < len(groups) and groups[end + 1] == groups[end] + 1:
            end += 1
        yield groups[start], groups[end]
        start = end + 1


def _empty_blocks(position: int, num_rows: int, target: pa.Schema, batch_rows: int) -> Iterator[Block]:
    """Rows of which no column is in the file."""
    end = position + num_rows
    while position < end:
        rows = min(batch_rows, end - position)
        counted = pa.record_batch([pa.nulls(rows, pa.bool_())], names=["rows"])
        batch = adapt_batch(counted, target) if len(target) else counted.select([])
        yield Block(start=position, batch=batch)
        position += rows


def _corrupt(base: BaseFile, exc: Exception) -> CorruptTableError:
    return CorruptTableError(
        f"The base file {base.path} cannot be read: {exc}",
        path=base.path,
        hint="The file is damaged or no Parquet file; restore it, or roll back the instant that wrote it.",
    )
