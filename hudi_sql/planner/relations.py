"""Snapshots as the relations that engines are lent."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from hudi_sql.planner.model import LentTable
from hudi_sql.storage.model.files import FileSlice
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN
from hudi_sql.storage.read.snapshot import Snapshot, SnapshotRelation

__all__ = ["PositionsRelation", "relation_of"]

_PLACES = (SLICE_COLUMN, POSITION_COLUMN)


class PositionsRelation:
    """The target of a change: some columns, and for each row its slice and position."""

    def __init__(self, snapshot: Snapshot, slices: tuple[FileSlice, ...], columns: Sequence[str]) -> None:
        self._snapshot = snapshot
        self._slices = slices
        self._columns = tuple(columns)
        fields = [snapshot.schema.field(name) for name in self._columns]
        self._schema = pa.schema(
            [*fields, pa.field(SLICE_COLUMN, pa.int32()), pa.field(POSITION_COLUMN, pa.int64())]
        )

    @property
    def schema(self) -> pa.Schema:
        """The needed columns, then slice and position."""
        return self._schema

    def scan(self, columns: Sequence[str] | None, predicate: pc.Expression | None) -> pa.RecordBatchReader:
        """Stream the rows for which the predicate is true."""
        wanted = list(self._schema.names if columns is None else columns)
        predicate = _expression(predicate)
        text = "" if predicate is None else str(predicate)
        is_constant = predicate is not None and not any(name in text for name in self._schema.names)
        if is_constant or any(name in text for name in _PLACES):
            # Storage numbers rows; a filter on the numbers, or on nothing, is applied to what it gave.
            reader = self._snapshot.scan_positions(self._columns, slices=self._slices)
            return ds.Scanner.from_batches(reader, columns=wanted, filter=predicate).to_reader()
        own = [name for name in wanted if name not in _PLACES]
        reader = self._snapshot.scan_positions(own, slices=self._slices, predicate=predicate)
        schema = pa.schema([self._schema.field(name) for name in wanted])
        return pa.RecordBatchReader.from_batches(schema, (batch.select(wanted) for batch in reader))


class _Rows(SnapshotRelation):
    """A snapshot for reading."""

    def scan(self, columns: Sequence[str] | None, predicate: pc.Expression | None) -> pa.RecordBatchReader:
        """Stream some columns of the rows of which the predicate is true."""
        return super().scan(columns, _expression(predicate))


def _expression(predicate: pc.Expression | pa.Scalar | None) -> pc.Expression | None:
    """DataFusion pushes a condition that it found to be constant as a bare value; NULL has to stay a boolean."""
    if isinstance(predicate, pa.Scalar):
        return pc.scalar(pa.scalar(predicate.as_py(), pa.bool_()))
    return predicate


def relation_of(table: LentTable, snapshot: Snapshot) -> SnapshotRelation | PositionsRelation:
    """The relation that a plan asks for."""
    if table.slices is not None:
        return PositionsRelation(snapshot, table.slices, table.columns or ())
    return _Rows(snapshot, snapshot.slices(table.predicate))
