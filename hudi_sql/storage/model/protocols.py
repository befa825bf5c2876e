"""What lower layers of storage ask of higher ones, as protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from hudi_sql.storage.model.files import BaseFile, LogFile, PartitionPath
from hudi_sql.storage.model.instant import InstantTime

__all__ = ["Clock", "FileLister", "FileStatistics", "IdSource"]


class FileLister(Protocol):
    """Where the file system view gets names and sizes from: the metadata table or the store itself."""

    def list_partitions(self) -> tuple[PartitionPath, ...]:
        """All partitions that were ever written and not dropped, sorted."""

    def list_files(
        self, partitions: Sequence[PartitionPath]
    ) -> dict[PartitionPath, tuple[BaseFile | LogFile, ...]]:
        """All data files of each partition, committed or not, of any slice."""


class FileStatistics(Protocol):
    """Column ranges of files, for pruning."""

    def column_ranges(
        self, columns: Sequence[str], partitions: Sequence[PartitionPath] | None
    ) -> pa.Table | None:
        """Ranges of files, one row per file.

        Columns `partition`, `file_name`, `num_values`, and for each asked column `c` that is indexed
        `min:c`, `max:c` in the column's own type and `nulls:c` (NULL where the file has no entry).

        None when the table keeps no such statistics.
        """


class Clock(Protocol):
    """Source of instant times."""

    def next_instant(self) -> InstantTime:
        """A time later than every one given before, in the table's timeline zone."""


class IdSource(Protocol):
    """Source of new file ids."""

    def next_file_id(self) -> str:
        """A fresh UUID text without suffix."""
