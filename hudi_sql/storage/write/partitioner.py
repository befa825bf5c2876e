"""Where new rows go: into small base files first, then into new file groups (write protocol notes §7)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from hudi_sql.config.write import WriteConfig
from hudi_sql.storage.model.commit import CommitMetadata
from hudi_sql.storage.model.files import FileId, FileSlice, PartitionPath

__all__ = ["Bin", "average_record_bytes", "bins", "new_file_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Room for new rows of one partition: a small file slice that is rewritten, or a new file group."""

    partition: PartitionPath
    slice: FileSlice | None
    num_rows: int


def new_file_id() -> FileId:
    """Id of a new file group. The suffix counts the files of a writer task; ours open one each.

    It does not begin with eight digits: so do buckets of a bucket index, which other writers treat otherwise.
    """
    while True:
        drawn = str(uuid.uuid4())
        if not drawn[:8].isdigit():
            return FileId(f"{drawn}-0")


def average_record_bytes(commits: Iterable[CommitMetadata], config: WriteConfig) -> int:
    """Bytes that a row takes in a base file: what the newest large enough commit shows, else the estimate.

    Args:
        commits: Completed commits, newest first; only as many as needed are taken.
        config: Holds the threshold and the estimate.
    """
    least = config.record_size_threshold * config.small_file_limit_bytes
    for commit in commits:
        written = sum(stat.file_size_bytes for stat in commit.write_stats)
        rows = sum(stat.num_writes for stat in commit.write_stats)
        if rows and written > least:
            return max(1, -(-written // rows))
    return config.record_size_bytes


def bins(
    partition: PartitionPath,
    slices: Callable[[PartitionPath], Iterable[FileSlice]],
    *,
    record_bytes: int,
    config: WriteConfig,
) -> Iterator[Bin]:
    """Give room for new rows of a partition, without end: small files, then new groups of the target size."""
    for piece in slices(partition):
        base = piece.base_file
        # Slices with logs are merged by compaction, not here.
        if base is None or piece.log_files or base.size_bytes >= config.small_file_limit_bytes:
            continue
        room = (config.max_file_size_bytes - base.size_bytes) // record_bytes
        if room > 0:
            yield Bin(partition=partition, slice=piece, num_rows=room)
    rows = max(1, config.max_file_size_bytes // record_bytes) if config.auto_split else config.split_rows
    while True:
        yield Bin(partition=partition, slice=None, num_rows=rows)
