"""Taking deltacommits out of the metadata table (write protocol notes §4.4)."""

from __future__ import annotations

import time
from collections.abc import Iterator

from hudi_sql.storage.avro.payloads import PayloadKind, encode_payload
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.fs.sub import SubStore
from hudi_sql.storage.metadata.slices import METADATA_FOLDER
from hudi_sql.storage.model.files import LogFile, PartitionPath, parse_file
from hudi_sql.storage.model.instant import Action, Instant, InstantTime, State
from hudi_sql.storage.properties.kinds import TimelineZone
from hudi_sql.storage.properties.table_config import TableConfig, load_table_config
from hudi_sql.storage.timeline.clock import InstantClock
from hudi_sql.storage.timeline.timeline import Timeline, load_timeline
from hudi_sql.storage.timeline.write import complete, create_inflight, create_requested, delete_instant_file

__all__ = ["discard_metadata", "roll_back_metadata"]


def discard_metadata(data_store: Store, instant: InstantTime) -> None:
    """Remove every trace of the deltacommit of an instant of our own that will not complete; under the lock."""
    store = SubStore(data_store, METADATA_FOLDER)
    config = load_table_config(store)
    timeline = load_timeline(store, config)
    for file in _logs_of(store, instant):
        store.delete(file.path)
    _forget(store, config, timeline, instant)


def roll_back_metadata(
    data_store: Store, instant: InstantTime, rollback: InstantTime, *, zone: TimelineZone
) -> None:
    """Roll the deltacommit of a dead instant back, as an instant of the metadata table's own; under the lock.

    Nothing happens when the metadata table never saw the instant.
    """
    store = SubStore(data_store, METADATA_FOLDER)
    config = load_table_config(store)
    timeline = load_timeline(store, config)
    if timeline.find(instant, Action.DELTA_COMMIT) is None:
        return
    clock = InstantClock(zone)
    clock.observe(timeline.newest_time, rollback)
    started = time.time()
    files = list(_logs_of(store, instant))
    pending = timeline.find(rollback, Action.ROLLBACK)
    if pending is None:
        plan = {
            "instantToRollback": {"commitTime": str(instant), "action": Action.DELTA_COMMIT.value},
            "RollbackRequests": [
                {
                    "partitionPath": str(file.partition),
                    "fileId": str(file.file_id),
                    "latestBaseInstant": None,
                    "filesToBeDeleted": [f"{store.uri}/{file.path}"],
                    "logBlocksToBeDeleted": {},
                }
                for file in files
            ],
            "version": 1,
        }
        payload = encode_payload(PayloadKind.ROLLBACK_PLAN, plan)
        pending = create_requested(store, config, rollback, Action.ROLLBACK, payload)
    if pending.state is State.REQUESTED:
        pending = create_inflight(store, config, pending)
    for file in files:
        store.delete(file.path)
    if pending.state is not State.COMPLETED:
        metadata = _metadata(store, instant, rollback, files, int((time.time() - started) * 1000))
        payload = encode_payload(PayloadKind.ROLLBACK_METADATA, metadata)
        complete(store, config, pending, clock.next_instant(), payload)
    _forget(store, config, timeline, instant)


def _forget(store: Store, config: TableConfig, timeline: Timeline, instant: InstantTime) -> None:
    """Delete the files of an instant, the completed one first: so it is never half of one."""
    found = timeline.find(instant, Action.DELTA_COMMIT)
    if found is not None and found.state is State.COMPLETED:
        delete_instant_file(store, config, found)
    for state in (State.INFLIGHT, State.REQUESTED):
        delete_instant_file(
            store, config, Instant(requested=instant, action=Action.DELTA_COMMIT, state=state)
        )


def _logs_of(store: Store, instant: InstantTime) -> Iterator[LogFile]:
    for folder in store.list(""):
        if not folder.is_folder or folder.name.startswith("."):
            continue
        for entry in store.list(folder.path):
            file = parse_file(PartitionPath(folder.path), entry.name, entry.size_bytes)
            if isinstance(file, LogFile) and file.instant == instant:
                yield file


def _metadata(
    store: Store, instant: InstantTime, rollback: InstantTime, files: list[LogFile], taken_ms: int
) -> dict[str, object]:
    partitions: dict[str, dict[str, object]] = {}
    for file in files:
        known = partitions.setdefault(
            str(file.partition),
            {
                "partitionPath": str(file.partition),
                "successDeleteFiles": [],
                "failedDeleteFiles": [],
                "rollbackLogFiles": {},
                "logFilesFromFailedCommit": {},
            },
        )
        deleted = known["successDeleteFiles"]
        assert isinstance(deleted, list)
        deleted.append(f"{store.uri}/{file.path}")
    return {
        "startRollbackTime": str(rollback),
        "timeTakenInMillis": taken_ms,
        "totalFilesDeleted": len(files),
        "commitsRollback": [str(instant)],
        "partitionMetadata": partitions,
        "version": 1,
        "instantsRollback": [{"commitTime": str(instant), "action": Action.DELTA_COMMIT.value}],
    }
