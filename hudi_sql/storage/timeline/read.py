"""Reading what the files of an instant hold (timeline notes §3)."""

from __future__ import annotations

from hudi_sql.storage.avro.payloads import decode_commit_metadata
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.commit import CommitMetadata
from hudi_sql.storage.model.instant import Instant
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.timeline.write import instant_path

__all__ = ["read_commit"]


def read_commit(store: Store, config: TableConfig, instant: Instant) -> CommitMetadata:
    """Read what a commit, deltacommit or replacecommit did (or, inflight, is about to do).

    A file of 0 bytes is metadata that says nothing.

    Raises:
        ObjectNotFoundError: The file went since the timeline was loaded (archived, or rolled back).
        CorruptTableError: The file is no commit metadata.
    """
    path = instant_path(config, instant)
    return decode_commit_metadata(store.read(path), path)
