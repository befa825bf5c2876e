"""What the tests of transactions share: a bare table, and a writer of one file."""

from __future__ import annotations

from hudi_sql.config.lock import HeartbeatConfig, LockConfig
from hudi_sql.config.write import WriteConfig
from hudi_sql.storage.model.commit import NEW_FILE_GROUP, CommitMetadata, OperationType, WriteStat
from hudi_sql.storage.model.files import FileId, PartitionPath, base_file_name
from hudi_sql.storage.model.instant import Action
from hudi_sql.storage.properties.table_config import create_table_config, load_table_config
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.transaction.conflicts import Footprint
from hudi_sql.storage.transaction.markers import MarkerKind
from hudi_sql.storage.transaction.transaction import MetadataSteps, Transaction

SETTINGS = WriteConfig(
    lock=LockConfig(wait_ms=2000), heartbeat=HeartbeatConfig(interval_ms=60_000, tolerable_misses=2)
)
BLIND = Footprint(
    file_groups=frozenset(),
    read_partitions=frozenset(),
    reads_nothing=True,
    inserted_partitions=frozenset(),
    keys_are_new=False,
)


def bare_table(store, zone="UTC"):
    return create_table_config(
        store,
        {
            "hoodie.table.name": "t",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.version": "9",
            "hoodie.timeline.layout.version": "2",
            "hoodie.table.timeline.timezone": zone,
        },
    )


class Steps:
    """Records what a transaction asks of the metadata table."""

    def __init__(self, *, fail=None):
        self.calls = []
        self.fail = fail

    def steps(self):
        return MetadataSteps(write=self._write, discard=self._discard, roll_back=self._roll_back)

    def _write(self, instant, metadata):
        self.calls.append(("write", instant))
        if self.fail is not None:
            raise self.fail

    def _discard(self, instant):
        self.calls.append(("discard", instant))

    def _roll_back(self, instant, rollback):
        self.calls.append(("roll_back", instant, rollback))


def transaction(store, *, config=None, settings=SETTINGS, steps=None, seen=None):
    config = config or load_table_config(store)
    return Transaction(
        store,
        config,
        settings,
        seen or load_timeline(store, config),
        (steps or Steps()).steps(),
    )


def write_file(store, writer, *, partition="p", file_id="a-0", data=b"data", previous=None):
    """Mark and write one file, as writer tasks do."""
    name = base_file_name(FileId(file_id), "0-0-0", writer.instant, "parquet")
    kind = MarkerKind.CREATE if previous is None else MarkerKind.MERGE
    writer.mark(PartitionPath(partition), name, kind)
    path = f"{partition}/{name}" if partition else name
    store.create(path, data)
    return WriteStat(
        partition=PartitionPath(partition),
        file_id=FileId(file_id),
        path=path,
        previous_commit=NEW_FILE_GROUP if previous is None else previous,
        num_writes=1,
        num_inserts=1,
        num_update_writes=0,
        num_deletes=0,
        file_size_bytes=len(data),
    )


def committed(*stats, operation=OperationType.INSERT):
    return CommitMetadata(operation=operation, write_stats=stats, extra={"schema": "{}"})


PLANNED = CommitMetadata(operation=OperationType.INSERT)


def commit_one(store, *, file_id="a-0", partition="p", **options):
    """A whole commit of one file."""
    writer = transaction(store, **options)
    writer.begin(Action.COMMIT)
    writer.start(PLANNED)
    stat = write_file(store, writer, file_id=file_id, partition=partition)
    return writer.commit(committed(stat), BLIND)


def files(store):
    """All files but the properties, sorted."""
    return sorted(
        info.path
        for info in store.walk("")
        if not info.path.startswith((".hoodie/hoodie.properties", ".hoodie/.locks/"))
    )
