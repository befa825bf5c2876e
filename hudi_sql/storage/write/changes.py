"""The change set by position: what changes where in the base files of one snapshot.

Whoever evaluated a statement (an engine, or a verb of `HudiTable`) answers with rows that name a file slice, a
position in its base file and an action; the rewrite of a file group is then positional, with no second join.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.model.files import FileSlice, PartitionPath

__all__ = ["Changes", "SliceChanges"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceChanges:
    """Changes to one file slice. Positions ascend and are distinct; no position is both updated and deleted."""

    slice: FileSlice
    deleted: npt.NDArray[np.int64]
    updated: npt.NDArray[np.int64]
    values: pa.Table
    """New values of the updated rows, aligned with `updated`: the changed columns only, in the types of the table
    schema. Key, partition and meta columns are never among them (such a change is a delete plus an insert)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All that one commit changes."""

    operation: OperationType
    slices: tuple[SliceChanges, ...] = ()
    inserts: pa.RecordBatchReader | None = None
    """New rows: every column of the table schema in its order and types, no meta columns. Read once, streamed."""
    num_rows_hint: int | None = None
    """Rows that `inserts` will give, where known."""
    read_partitions: tuple[PartitionPath, ...] | None = None
    """Partitions whose rows decided what changes; None means all. A commit by another writer that touched one of
    them since the snapshot is a conflict, unless `reads_nothing`."""
    reads_nothing: bool = False
    """A blind append: conflicts with nobody."""
    keys_are_new: bool = False
    """The inserted keys were checked, or are known, not to be in the table: keys that another writer inserted into
    the same partitions since the snapshot are then a conflict."""
