"""A Hudi table as an object: the door to everything that storage does. Thin: every verb is one call down."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import HudiSqlError
from hudi_sql.storage.file_system_view import StoreLister
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.metadata.reader import MetadataTable
from hudi_sql.storage.model.commit import CommitMetadata
from hudi_sql.storage.properties.kinds import MergeMode, TableType, TimelineZone
from hudi_sql.storage.properties.table_config import TableConfig, load_table_config
from hudi_sql.storage.read.snapshot import Snapshot
from hudi_sql.storage.timeline.read import read_commit
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.write.changes import Changes
from hudi_sql.storage.write.commit import CommitResult, run_commit
from hudi_sql.storage.write.create import create_table
from hudi_sql.storage.write.support import check_slices_writable, check_table_writable

__all__ = ["HudiTable"]


class HudiTable:
    """One table at one location.

    What was read of it (properties, timeline) is kept for further reads and dropped by writes through this object;
    `refresh` drops it when others wrote.

    Example:
        >>> import pyarrow as pa
        >>> table = HudiTable.create("memory://example/t", schema=pa.schema([("id", pa.int64())]), name="t",
        ...                          record_key_fields=["id"])
        >>> table.schema.names
        ['id']
    """

    def __init__(self, store: Store, config: TableConfig) -> None:
        self._store = store
        self._config = config
        self._snapshot: Snapshot | None = None
        self._guard = threading.Lock()

    @classmethod
    def open(cls, location: str, storage_options: Mapping[str, str] | None = None) -> HudiTable:
        """Open the table at a location.

        Raises:
            TableNotFoundError: There is no Hudi table.
            CorruptTableError: Its properties cannot be used.
            UnsupportedTableError: Its version is not known here.
        """
        store = open_store(location, storage_options)
        return cls(store, load_table_config(store))

    @classmethod
    def create(
        cls,
        location: str,
        *,
        schema: pa.Schema,
        name: str,
        database: str = "default",
        record_key_fields: Sequence[str] = (),
        partition_fields: Sequence[str] = (),
        ordering_fields: Sequence[str] = (),
        merge_mode: MergeMode | None = None,
        table_type: TableType = TableType.COPY_ON_WRITE,
        payload_class: str | None = None,
        timeline_zone: TimelineZone | None = TimelineZone.UTC,
        properties: Mapping[str, str] | None = None,
        settings: WriteConfig | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> HudiTable:
        """Create an empty table of version 9; see `create_table` for what the arguments mean.

        Raises:
            TableExistsError: There is one already.
            SchemaError: A column cannot be stored.
        """
        store = open_store(location, storage_options)
        config = create_table(
            store,
            schema=schema,
            name=name,
            database=database,
            record_key_fields=record_key_fields,
            partition_fields=partition_fields,
            ordering_fields=ordering_fields,
            merge_mode=merge_mode,
            table_type=table_type,
            payload_class=payload_class,
            timeline_zone=timeline_zone,
            properties=properties,
            settings=settings,
        )
        return cls(store, config)

    @property
    def location(self) -> str:
        """Where the table is."""
        return self._store.uri

    @property
    def store(self) -> Store:
        """The files of the table."""
        return self._store

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        return self._config

    @property
    def schema(self) -> pa.Schema:
        """Columns, without meta columns, as of the latest commit."""
        return self.snapshot().table_schema

    def refresh(self) -> None:
        """Forget what was read: the next read sees what others wrote meanwhile."""
        with self._guard:
            self._snapshot = None
            self._config = load_table_config(self._store)

    def snapshot(self, as_of: str | None = None) -> Snapshot:
        """The table's rows now, or as of a time (see `Timeline.as_of` for its forms).

        Raises:
            BindError: `as_of` is no time.
            CorruptTableError: The metadata table is announced and missing.
        """
        if as_of is not None:
            return self._load(as_of)
        with self._guard:
            if self._snapshot is None:
                self._snapshot = self._load(None)
            return self._snapshot

    def check_writable(self) -> None:
        """Refuse tables with features that a write of ours would break.

        Raises:
            UnsupportedTableError: Naming the property and its value.
        """
        check_table_writable(self._config, self._newest_commit(), self._config.name)

    def commit(
        self, snapshot: Snapshot, changes: Changes, *, config: WriteConfig | None = None
    ) -> CommitResult:
        """Commit changes that were worked out on a snapshot, as one instant, or leave no trace.

        Raises:
            UnsupportedTableError: The table cannot be written by us.
            ConflictError: Another writer came in between; work the changes out again.
            CommitOutcomeUnknownError: The commit may have happened.
            LockError: The table is locked by another writer.
        """
        self.check_writable()
        partitions = dict.fromkeys(item.slice.partition for item in changes.slices)
        beside = [piece for name in partitions for piece in snapshot.slices_of_partition(name)]
        check_slices_writable(tuple(beside), self._config.name)
        try:
            return run_commit(self._store, self._config, snapshot, changes, config or WriteConfig())
        finally:
            # What the commit said must not be hidden by an error of reading the table again.
            with contextlib.suppress(HudiSqlError):
                self.refresh()

    def _load(self, as_of: str | None) -> Snapshot:
        timeline = load_timeline(self._store, self._config)
        metadata = MetadataTable.open(self._store, self._config, timeline)
        seen = timeline if as_of is None else timeline.as_of(as_of)
        return Snapshot.load(
            self._store,
            self._config,
            seen,
            lister=StoreLister(self._store) if metadata is None else metadata,
            statistics=metadata,
        )

    def _newest_commit(self) -> CommitMetadata | None:
        newest = self.snapshot().timeline.latest_completed_write
        return None if newest is None else read_commit(self._store, self._config, newest)
