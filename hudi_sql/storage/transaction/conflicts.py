"""Whether commits that came in between change what this one read or wrote.

Hudi compares file groups only (write protocol notes §6), so two writers may insert one key twice. On top of its rule
we look at what decided our changes: partitions that were read, and keys that were found to be new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hudi_sql.errors import ConflictError
from hudi_sql.storage.model.commit import CommitMetadata, OperationType
from hudi_sql.storage.model.files import FileId, PartitionPath
from hudi_sql.storage.model.instant import Instant, InstantTime

__all__ = ["Footprint", "OtherCommit", "check_conflicts", "check_pending_clustering", "touched_file_ids"]

_KEEPS_ROWS = frozenset(
    {OperationType.CLUSTER, OperationType.COMPACT, OperationType.LOG_COMPACT, OperationType.INDEX}
)
"""Operations that move rows between files and change none."""

FileGroup = tuple[PartitionPath, FileId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What one commit read and wrote."""

    file_groups: frozenset[FileGroup]
    """File groups that existed before and of which a new slice is written, or that are replaced."""
    read_partitions: frozenset[PartitionPath] | None
    """Partitions whose rows decided the changes; None means all."""
    reads_nothing: bool
    inserted_partitions: frozenset[PartitionPath]
    keys_are_new: bool
    keys_are_global: bool = False
    """Whether a key may stand in one partition of the table only: where a global record index is live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCommit:
    """A commit by another writer that completed since our snapshot."""

    instant: Instant
    metadata: CommitMetadata

    @property
    def partitions(self) -> frozenset[PartitionPath]:
        """Partitions in which it wrote or replaced files."""
        return frozenset(
            (
                *(stat.partition for stat in self.metadata.write_stats),
                *self.metadata.replaced_file_ids,
                *self.metadata.touched_partitions,
            )
        )

    @property
    def inserted_partitions(self) -> frozenset[PartitionPath]:
        """Partitions into which it put new keys."""
        return frozenset(stat.partition for stat in self.metadata.write_stats if stat.num_inserts)


def touched_file_ids(metadata: CommitMetadata) -> frozenset[FileGroup]:
    """File groups that a commit wrote or replaced."""
    written = ((stat.partition, stat.file_id) for stat in metadata.write_stats)
    replaced = (
        (partition, file_id) for partition, ids in metadata.replaced_file_ids.items() for file_id in ids
    )
    return frozenset((*written, *replaced))


def check_conflicts(
    mine: Footprint, others: Iterable[OtherCommit], *, instant: InstantTime, table: str
) -> None:
    """Compare a commit with those that completed since its snapshot.

    Raises:
        ConflictError: Naming both instants and what they share.
    """
    for other in others:
        shared = mine.file_groups & touched_file_ids(other.metadata)
        if shared:
            partition, file_id = min(shared)
            raise _conflict(
                f"Instants {instant} and {other.instant.requested} both changed file group {file_id} of partition "
                f"{partition!r}",
                instant,
                other,
                table,
            )
        if other.metadata.operation in _KEEPS_ROWS:
            continue
        if not mine.reads_nothing:
            changed = (
                other.partitions if mine.read_partitions is None else other.partitions & mine.read_partitions
            )
            if changed:
                raise _conflict(
                    f"Instant {other.instant.requested} changed partition {min(changed)!r}, which instant "
                    f"{instant} had read",
                    instant,
                    other,
                    table,
                )
        if mine.keys_are_new and (both := _same_scope(mine, other)):
            raise _conflict(
                f"Instants {instant} and {other.instant.requested} both inserted keys, the latter into partition "
                f"{min(both)!r}",
                instant,
                other,
                table,
            )


def _same_scope(mine: Footprint, other: OtherCommit) -> frozenset[PartitionPath]:
    """Partitions into which the other put keys that may be among ours."""
    if mine.keys_are_global:
        return other.inserted_partitions if mine.inserted_partitions else frozenset()
    return mine.inserted_partitions & other.inserted_partitions


def check_pending_clustering(
    file_groups: frozenset[FileGroup], plan: frozenset[FileGroup], *, clustering: InstantTime, table: str
) -> None:
    """Refuse to change file groups that a pending clustering is going to replace: the change would be lost.

    Raises:
        ConflictError: Not retryable, the plan stays until somebody runs it.
    """
    if shared := sorted(file_groups & plan):
        partition, file_id = shared[0]
        raise ConflictError(
            f"File group {file_id} of partition {partition!r} is part of the pending clustering {clustering}",
            hint="Run that clustering, or roll it back, and write again.",
            table=table,
            retryable=False,
            other_instant=clustering,
            file_groups=tuple(shared),
        )


def _conflict(message: str, instant: InstantTime, other: OtherCommit, table: str) -> ConflictError:
    return ConflictError(
        message,
        hint="Nothing was committed; run the statement again on the new state of the table.",
        table=table,
        instant=instant,
        other_instant=other.instant.requested,
    )
