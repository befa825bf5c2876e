"""Writing the metadata table: for each commit of the data table one deltacommit of the same instant (notes §6 to §10).

What is written is in proportion to what the commit touched: one log file for each file group of the metadata table that
gets records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.avro.payloads import encode_commit_metadata
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.log_file.writer import encode_delete_block, encode_hfile_block
from hudi_sql.storage.metadata.column_stats import stats_payload
from hudi_sql.storage.metadata.keys import (
    ALL_PARTITIONS,
    column_stats_key,
    file_groups_of,
    partition_identifier,
    partition_stats_key,
)
from hudi_sql.storage.metadata.record_index import index_payload
from hudi_sql.storage.metadata.records import (
    COLUMN_STATS,
    FILES,
    PARTITION_LIST,
    PARTITION_STATS,
    RECORD_INDEX,
    file_schema_json,
    files_record,
    records,
    table_schema_json,
)
from hudi_sql.storage.metadata.slices import MetadataFiles
from hudi_sql.storage.model.commit import CommitMetadata, OperationType, WriteStat
from hudi_sql.storage.model.files import FileSlice, PartitionPath, log_file_name
from hudi_sql.storage.model.instant import Action, InstantTime
from hudi_sql.storage.model.statistics import ColumnRange
from hudi_sql.storage.properties.kinds import TimelineZone
from hudi_sql.storage.timeline.clock import InstantClock, instant_epoch_ms
from hudi_sql.storage.timeline.write import complete, create_inflight, create_requested

__all__ = ["MetadataChanges", "write_metadata"]

_WRITE_TOKEN = "0-0-0"  # noqa: S105  # no secret: Hudi's word for the name of an attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataChanges:
    """What a commit of the data table changes in its metadata table."""

    files: Mapping[PartitionPath, Mapping[str, int]]
    """New files of each touched partition: name → size in bytes."""
    ranges: Mapping[tuple[PartitionPath, str], Sequence[ColumnRange]]
    """Ranges of the indexed columns in each new file, by partition and file name."""
    partition_ranges: Mapping[PartitionPath, Sequence[ColumnRange]]
    """Ranges over all current files of each touched partition."""
    indexed: pa.Table
    """Keys that are new or moved: columns `key`, `partition`, `file_id`."""
    unindexed: pa.Array
    """Keys that are gone."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """Records for one metadata partition."""

    partition: str
    keys: pa.Array
    values: pa.Array
    deleted: pa.Array


def write_metadata(
    files: MetadataFiles,
    changes: MetadataChanges,
    instant: InstantTime,
    *,
    partitions: frozenset[str],
    zone: TimelineZone,
) -> InstantTime:
    """Write the deltacommit of an instant, complete; under the data table's lock.

    Args:
        files: The metadata table.
        changes: What the commit changed.
        instant: Of the data table's commit.
        partitions: Metadata partitions that the data table has.
        zone: Of the data table's timeline.

    Returns:
        The completion time: that of the data instant must be greater.
    """
    clock = InstantClock(zone)
    clock.observe(files.timeline.newest_time, instant)
    pending = create_requested(files.store, files.config, instant, Action.DELTA_COMMIT)
    pending = create_inflight(files.store, files.config, pending)
    stats: list[WriteStat] = []
    for batch in _batches(changes, instant, partitions, zone):
        stats += _write_partition(files, batch, instant)
    metadata = CommitMetadata(
        operation=OperationType.UPSERT_PREPPED,
        write_stats=tuple(stats),
        extra={"schema": table_schema_json()},
    )
    done = complete(
        files.store, files.config, pending, clock.next_instant(), encode_commit_metadata(metadata)
    )
    assert done.completed is not None
    return done.completed


def _batches(
    changes: MetadataChanges, instant: InstantTime, partitions: frozenset[str], zone: TimelineZone
) -> list[_Batch]:
    nothing = pa.array([], pa.string())
    found = [_files_batch(changes, nothing)]
    if "column_stats" in partitions:
        found.append(_column_stats_batch(changes, nothing))
    if "partition_stats" in partitions:
        found.append(_partition_stats_batch(changes, nothing))
    if "record_index" in partitions:
        payload = index_payload(
            changes.indexed["partition"].combine_chunks(),
            changes.indexed["file_id"].combine_chunks(),
            instant_epoch_ms(instant, zone),
        )
        values = records(RECORD_INDEX, len(payload), recordIndexMetadata=payload)
        keys = changes.indexed["key"].combine_chunks()
        # A key that was deleted and written again in one commit has moved: it is there.
        gone = pc.unique(changes.unindexed)
        gone = gone.filter(pc.invert(pc.is_in(gone, keys)))
        found.append(_Batch("record_index", keys, values, gone))
    return [batch for batch in found if len(batch.keys) or len(batch.deleted)]


def _files_batch(changes: MetadataChanges, nothing: pa.Array) -> _Batch:
    touched = sorted(changes.files)
    names = {partition_identifier(partition): (0, False) for partition in touched}
    maps = [{name: (size, False) for name, size in changes.files[item].items()} for item in touched]
    values = pa.concat_arrays(
        [
            records(PARTITION_LIST, 1, filesystemMetadata=files_record([names])),
            records(FILES, len(touched), filesystemMetadata=files_record(maps)),
        ]
    )
    keys = pa.array([ALL_PARTITIONS, *(partition_identifier(item) for item in touched)], pa.string())
    return _Batch("files", keys, values, nothing)


def _column_stats_batch(changes: MetadataChanges, nothing: pa.Array) -> _Batch:
    keys, names, ranges = [], [], []
    for (partition, file_name), found in changes.ranges.items():
        for item in found:
            keys.append(column_stats_key(item.column, partition, file_name))
            names.append(file_name)
            ranges.append(item)
    # Ranges out of footers are exact, but Spark calls those of files loose (HoodieMetadataPayload).
    payload = stats_payload(names, ranges, is_tight=False)
    values = records(COLUMN_STATS, len(keys), ColumnStatsMetadata=payload)
    return _Batch("column_stats", pa.array(keys, pa.string()), values, nothing)


def _partition_stats_batch(changes: MetadataChanges, nothing: pa.Array) -> _Batch:
    keys, names, ranges = [], [], []
    for partition, found in changes.partition_ranges.items():
        for item in found:
            keys.append(partition_stats_key(item.column, partition))
            names.append(partition_identifier(partition))
            ranges.append(item)
    payload = stats_payload(names, ranges, is_tight=True)
    values = records(PARTITION_STATS, len(keys), ColumnStatsMetadata=payload)
    return _Batch("partition_stats", pa.array(keys, pa.string()), values, nothing)


def _write_partition(files: MetadataFiles, batch: _Batch, instant: InstantTime) -> list[WriteStat]:
    slices = files.slices(batch.partition)
    _check_numbered(slices, batch.partition)
    group_of_key = file_groups_of(batch.keys, len(slices))
    group_of_gone = file_groups_of(batch.deleted, len(slices))
    stats = []
    for number in np.union1d(group_of_key, group_of_gone).tolist():
        keys = batch.keys.filter(pa.array(group_of_key == number))
        values = batch.values.filter(pa.array(group_of_key == number))
        gone = batch.deleted.filter(pa.array(group_of_gone == number))
        stats.append(
            _write_log(files.store, slices[number], instant, _Batch(batch.partition, keys, values, gone))
        )
    return stats


def _write_log(
    store: Store,
    piece: FileSlice,
    instant: InstantTime,
    batch: _Batch,
) -> WriteStat:
    partition, keys, values, gone = batch.partition, batch.keys, batch.values, batch.deleted
    data = b""
    if len(keys):
        # Cells ascend by the bytes of their keys, each key once: the last one stands.
        raw = keys.cast(pa.large_binary())
        order = pc.sort_indices(raw)
        ordered = raw.take(order)
        is_last = np.ones(len(ordered), bool)
        if len(ordered) > 1:
            is_last[:-1] = pc.not_equal(ordered.slice(1), ordered.slice(0, len(ordered) - 1)).to_numpy(
                zero_copy_only=False
            )
        kept = order.filter(pa.array(is_last))
        data += encode_hfile_block(instant, file_schema_json(), raw.take(kept), values.take(kept))
    if len(gone):
        data += encode_delete_block(instant, gone, partition, file_schema_json())
    name = log_file_name(piece.file_id, _WRITE_TOKEN, instant, 1)
    store.create(f"{partition}/{name}", data)
    return WriteStat(
        partition=PartitionPath(partition),
        file_id=piece.file_id,
        path=f"{partition}/{name}",
        previous_commit=str(instant),
        num_writes=len(keys),
        num_inserts=0,
        num_update_writes=len(keys),
        num_deletes=len(gone),
        file_size_bytes=len(data),
        is_log=True,
    )


def _check_numbered(slices: Sequence[FileSlice], partition: str) -> None:
    """Keys go to groups by number, and groups are found by name: both must agree, or every key would be lost."""
    numbers = [int(piece.file_id.rsplit("-", 2)[1]) for piece in slices]
    if numbers != list(range(len(slices))):
        raise CorruptTableError(
            f"The file groups of the metadata partition {partition} are not numbered 0 to {len(slices) - 1}",
            path=f".hoodie/metadata/{partition}",
            hint="Remove its name from hoodie.table.metadata.partitions; Spark builds it anew.",
        )
