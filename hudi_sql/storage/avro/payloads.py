"""Payloads of instants: commit metadata as values, plans and other metadata as dictionaries (timeline notes §6, §7)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from enum import Enum
from typing import Any

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.avro.container import decode_container, encode_container
from hudi_sql.storage.model.commit import CommitMetadata, OperationType, WriteStat
from hudi_sql.storage.model.files import FileId, PartitionPath

__all__ = [
    "PayloadKind",
    "decode_commit_metadata",
    "decode_payload",
    "encode_commit_metadata",
    "encode_payload",
]


class PayloadKind(Enum):
    """Payloads that stay dictionaries. The value is the name of the Avro record."""

    ROLLBACK_PLAN = "HoodieRollbackPlan"
    ROLLBACK_METADATA = "HoodieRollbackMetadata"
    REPLACE_REQUESTED = "HoodieRequestedReplaceMetadata"
    COMPACTION_PLAN = "HoodieCompactionPlan"
    CLEANER_PLAN = "HoodieCleanerPlan"
    CLEAN_METADATA = "HoodieCleanMetadata"
    RESTORE_PLAN = "HoodieRestorePlan"
    RESTORE_METADATA = "HoodieRestoreMetadata"
    SAVEPOINT_METADATA = "HoodieSavepointMetadata"
    INDEX_PLAN = "HoodieIndexPlan"
    INDEX_COMMIT = "HoodieIndexCommitMetadata"


_COMMIT = "HoodieCommitMetadata"
_REPLACE_COMMIT = "HoodieReplaceCommitMetadata"

_ZEROS = (
    "totalWriteErrors",
    "totalLogRecords",
    "totalUpdatedRecordsCompacted",
    "totalLogBlocks",
    "totalCorruptLogBlock",
    "totalRollbackBlocks",
    "totalLogFilesCompacted",
    "totalLogReadTimeMs",
    "totalLogSizeCompacted",
    "numUpdates",
)
"""Counts of compactions and of log scans: nought in the stats of a plain write, but present in Spark's."""


def encode_payload(kind: PayloadKind, record: dict[str, Any]) -> bytes:
    """Write a plan or metadata record as Hudi does."""
    return encode_container(kind.value, record)


def decode_payload(kind: PayloadKind, data: bytes, path: str) -> dict[str, Any]:
    """Read a plan or metadata record; no bytes are a record that says nothing.

    Raises:
        CorruptTableError: The bytes are something else.
    """
    del kind  # the file brings its own schema
    return decode_container(data, path) if data else {}


def encode_commit_metadata(metadata: CommitMetadata) -> bytes:
    """Write commit metadata; as a replacecommit when file groups are replaced."""
    partitions: dict[str, list[dict[str, Any]]] = {str(name): [] for name in metadata.touched_partitions}
    for stat in metadata.write_stats:
        partitions.setdefault(str(stat.partition), []).append(_encode_stat(stat))
    record: dict[str, Any] = {
        "partitionToWriteStats": partitions,
        "compacted": metadata.compacted,
        "extraMetadata": dict(metadata.extra),
        "version": None,
        "operationType": metadata.operation.value,
    }
    if not metadata.replaced_file_ids:
        return encode_container(_COMMIT, record)
    record["partitionToReplaceFileIds"] = {
        str(partition): [str(item) for item in ids] for partition, ids in metadata.replaced_file_ids.items()
    }
    return encode_container(_REPLACE_COMMIT, record)


def decode_commit_metadata(data: bytes, path: str) -> CommitMetadata:
    """Read commit metadata: Avro, or the JSON of version 6. No bytes, `{}` and `null` say nothing.

    Raises:
        CorruptTableError: The bytes are something else.
    """
    if not data:
        return CommitMetadata(operation=OperationType.UNKNOWN)
    record = _decode_json(data, path) if data.lstrip()[:1] in (b"{", b"n") else decode_container(data, path)
    try:
        return _decode_commit(record)
    except (TypeError, ValueError, KeyError, AttributeError) as exc:
        raise CorruptTableError(f"{path} is no commit metadata: {exc!r}", path=path) from exc


def _decode_json(data: bytes, path: str) -> dict[str, Any]:
    try:
        record = json.loads(data)
    except ValueError as exc:
        raise CorruptTableError(f"{path} is no JSON: {exc}", path=path) from exc
    if record is not None and not isinstance(record, dict):
        raise CorruptTableError(f"{path} holds a JSON {type(record).__name__}, not an object", path=path)
    return record or {}


def _decode_commit(record: Mapping[str, Any]) -> CommitMetadata:
    stats = []
    by_partition: Mapping[str, Any] = record.get("partitionToWriteStats") or {}
    for partition, entries in by_partition.items():
        stats += [_decode_stat(PartitionPath(partition), entry) for entry in entries or ()]
    replaced: Mapping[str, Any] = record.get("partitionToReplaceFileIds") or {}
    operation = record.get("operationType") or OperationType.UNKNOWN.value
    return CommitMetadata(
        operation=OperationType(operation)
        if operation in OperationType.__members__
        else OperationType.UNKNOWN,
        write_stats=tuple(stats),
        replaced_file_ids={
            PartitionPath(partition): tuple(FileId(item) for item in ids)
            for partition, ids in replaced.items()
        },
        extra={str(key): str(value) for key, value in (record.get("extraMetadata") or {}).items()},
        compacted=bool(record.get("compacted")),
        touched_partitions=tuple(PartitionPath(name) for name in by_partition),
    )


def _encode_stat(stat: WriteStat) -> dict[str, Any]:
    record: dict[str, Any] = dict.fromkeys(_ZEROS, 0)
    record.update(
        fileId=str(stat.file_id),
        path=stat.path or None,
        prevCommit=stat.previous_commit,
        partitionPath=str(stat.partition),
        numWrites=stat.num_writes,
        numInserts=stat.num_inserts,
        numUpdateWrites=stat.num_update_writes,
        numDeletes=stat.num_deletes,
        totalWriteBytes=stat.file_size_bytes,
        fileSizeInBytes=stat.file_size_bytes,
        prevBaseFile=stat.previous_base_file,
    )
    if stat.cdc_files:
        record["cdcStats"] = dict(stat.cdc_files)
    if stat.is_log:
        name = stat.path.rsplit("/", 1)[-1]
        version = int(name.rsplit(".log.", 1)[1].split("_", 1)[0])
        record.update(logVersion=version, logOffset=0, baseFile="", logFiles=[name])
    return record


def _decode_stat(partition: PartitionPath, record: Mapping[str, Any]) -> WriteStat:
    numbers: defaultdict[str, int] = defaultdict(int)
    numbers.update({key: value for key, value in record.items() if isinstance(value, int)})
    return WriteStat(
        partition=partition,
        file_id=FileId(record.get("fileId") or ""),
        path=record.get("path") or "",
        previous_commit=record.get("prevCommit") or "null",
        previous_base_file=record.get("prevBaseFile"),
        num_writes=numbers["numWrites"],
        num_inserts=numbers["numInserts"],
        num_update_writes=numbers["numUpdateWrites"],
        num_deletes=numbers["numDeletes"],
        file_size_bytes=numbers["fileSizeInBytes"] or numbers["totalWriteBytes"],
        is_log=record.get("logFiles") is not None or record.get("logVersion") is not None,
        cdc_files=dict(record.get("cdcStats") or {}),
    )
