"""The metadata table of a new, empty table (metadata table notes §1, §10)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudi_sql.storage.avro.payloads import encode_commit_metadata
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.fs.sub import SubStore
from hudi_sql.storage.hfile.writer import encode_hfile
from hudi_sql.storage.log_file.writer import encode_empty_delete_block
from hudi_sql.storage.metadata.keys import ALL_PARTITIONS
from hudi_sql.storage.metadata.records import (
    PARTITION_LIST,
    file_schema_json,
    files_record,
    records,
    table_schema_json,
)
from hudi_sql.storage.metadata.slices import METADATA_FOLDER
from hudi_sql.storage.model.commit import NEW_FILE_GROUP, CommitMetadata, OperationType, WriteStat
from hudi_sql.storage.model.files import FileId, PartitionPath, base_file_name, log_file_name
from hudi_sql.storage.model.instant import Action, InstantTime
from hudi_sql.storage.properties.index_definitions import IndexDefinition, save_index_definitions
from hudi_sql.storage.properties.partition_metadata import ensure_partition_metadata
from hudi_sql.storage.properties.table_config import TableConfig, create_table_config, update_table_config
from hudi_sql.storage.timeline.clock import InstantClock
from hudi_sql.storage.timeline.write import complete, create_inflight, create_requested

__all__ = ["bootstrap_metadata_table"]

_FIRST_INSTANT = "00000000000000000"
_TOKEN = "0-0-0"  # noqa: S105  # no secret
_COLUMN_STATS_GROUPS = 2


def bootstrap_metadata_table(
    store: Store, config: TableConfig, *, columns: Sequence[str], with_partition_stats: bool
) -> TableConfig:
    """Give a table without commits its metadata table.

    Args:
        store: The data table.
        config: Its properties.
        columns: Columns whose ranges are kept; none: no statistics at all.
        with_partition_stats: Whether ranges of partitions are kept too; they need those of files.

    Returns:
        The properties, which announce the metadata table now.
    """
    inner = SubStore(store, METADATA_FOLDER)
    own = create_table_config(inner, _properties(config))
    partitions = [("files", "files", 1)]
    if columns:
        partitions.append(("column_stats", "col-stats", _COLUMN_STATS_GROUPS))
        if with_partition_stats:
            partitions.append(("partition_stats", "partition-stats", 1))
    clock = InstantClock(config.timeline_zone)
    for number, (partition, prefix, num_groups) in enumerate(partitions):
        instant = InstantTime(f"{int(_FIRST_INSTANT) + number:017}")
        _initialise(inner, own, partition, prefix=prefix, num_groups=num_groups, instant=instant, clock=clock)
    if columns:
        definition = IndexDefinition(
            name="column_stats",
            index_type="column_stats",
            function="column_stats",
            source_fields=tuple(columns),
            version="V2",
        )
        save_index_definitions(store, config, {"column_stats": definition})
    changes: dict[str, str | None] = {
        "hoodie.table.metadata.partitions": ",".join(sorted(name for name, _, _ in partitions)),
        "hoodie.table.metadata.partitions.inflight": "",
    }
    if columns:
        changes["hoodie.table.index.defs.path"] = config.index_definitions_path
    return update_table_config(store, changes)


def _properties(config: TableConfig) -> dict[str, str]:
    found = {
        "hoodie.table.name": f"{config.name}_metadata",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "9",
        "hoodie.table.initial.version": "9",
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.datasource.write.drop.partition.columns": "false",
    }
    if (zone := config.raw.get("hoodie.table.timeline.timezone")) is not None:
        found["hoodie.table.timeline.timezone"] = zone
    return found


def _initialise(
    store: Store,
    config: TableConfig,
    partition: str,
    *,
    prefix: str,
    num_groups: int,
    instant: InstantTime,
    clock: InstantClock,
) -> None:
    """Make the file groups of a partition known; only `files` has a record, the empty list of partitions."""
    ensure_partition_metadata(store, PartitionPath(partition), instant)
    for number in range(num_groups):
        name = log_file_name(FileId(f"{prefix}-{number:04}-0"), _TOKEN, instant, 1)
        store.create(f"{partition}/{name}", encode_empty_delete_block(instant))
    pending = create_inflight(store, config, create_requested(store, config, instant, Action.DELTA_COMMIT))
    stats: tuple[WriteStat, ...] = ()
    if partition == "files":
        stats = (_write_empty_list(store, FileId(f"{prefix}-0000-0"), instant),)
    metadata = CommitMetadata(
        operation=OperationType.BULK_INSERT_PREPPED,
        write_stats=stats,
        extra={"schema": table_schema_json()},
    )
    complete(store, config, pending, clock.next_instant(), encode_commit_metadata(metadata))


def _write_empty_list(store: Store, file_id: FileId, instant: InstantTime) -> WriteStat:
    values = records(PARTITION_LIST, 1, filesystemMetadata=files_record([{}]))
    data = encode_hfile(pa.array([ALL_PARTITIONS]), values, file_schema_json())
    path = f"files/{base_file_name(file_id, _TOKEN, instant, 'hfile')}"
    store.create(path, data)
    return WriteStat(
        partition=PartitionPath("files"),
        file_id=file_id,
        path=path,
        previous_commit=NEW_FILE_GROUP,
        num_writes=1,
        num_inserts=1,
        num_update_writes=0,
        num_deletes=0,
        file_size_bytes=len(data),
    )
