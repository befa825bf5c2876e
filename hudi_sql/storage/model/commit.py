"""Write stats and commit metadata (timeline format notes §6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hudi_sql.storage.model.files import FileId, PartitionPath

__all__ = ["NEW_FILE_GROUP", "CommitMetadata", "OperationType", "WriteStat"]

NEW_FILE_GROUP = "null"
"""`WriteStat.previous_commit` of a file group's first file: readers take that text as 'new file group'."""


class OperationType(Enum):
    """Write operations as Hudi names them in commit metadata."""

    INSERT = "INSERT"
    INSERT_PREPPED = "INSERT_PREPPED"
    UPSERT = "UPSERT"
    UPSERT_PREPPED = "UPSERT_PREPPED"
    BULK_INSERT = "BULK_INSERT"
    BULK_INSERT_PREPPED = "BULK_INSERT_PREPPED"
    DELETE = "DELETE"
    DELETE_PREPPED = "DELETE_PREPPED"
    BOOTSTRAP = "BOOTSTRAP"
    INSERT_OVERWRITE = "INSERT_OVERWRITE"
    INSERT_OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
    DELETE_PARTITION = "DELETE_PARTITION"
    CLUSTER = "CLUSTER"
    COMPACT = "COMPACT"
    LOG_COMPACT = "LOG_COMPACT"
    INDEX = "INDEX"
    ALTER_SCHEMA = "ALTER_SCHEMA"
    BUCKET_RESCALE = "BUCKET_RESCALE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStat:
    """What one writer task did to one file group."""

    partition: PartitionPath
    file_id: FileId
    path: str
    """Of the new file, relative to the table."""
    previous_commit: str
    """Instant of the base file that was replaced, or `NEW_FILE_GROUP`."""
    previous_base_file: str | None = None
    """Name (no folder) of the base file that was replaced."""
    num_writes: int
    num_inserts: int
    num_update_writes: int
    num_deletes: int
    file_size_bytes: int
    is_log: bool = False
    cdc_files: Mapping[str, int] = field(default_factory=dict)
    """CDC files written beside this one: relative path → size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMetadata:
    """The payload of a completed (or, with planned counts, inflight) commit, deltacommit or replacecommit."""

    operation: OperationType
    write_stats: tuple[WriteStat, ...] = ()
    replaced_file_ids: Mapping[PartitionPath, tuple[FileId, ...]] = field(default_factory=dict)
    """Non-empty only for replacecommits."""
    extra: Mapping[str, str] = field(default_factory=dict)
    compacted: bool = False
    touched_partitions: tuple[PartitionPath, ...] = ()
    """Partitions named in the payload, also those without a stat."""

    @property
    def schema_json(self) -> str | None:
        """Avro schema of the table without meta columns, as the commit states it; None when it states none."""
        return self.extra.get("schema") or None
