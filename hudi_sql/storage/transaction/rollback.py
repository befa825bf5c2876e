"""Undoing commits that died (write protocol notes §4).

Which files a dead commit left is told by its markers alone; the rollback is an instant of its own, so that a writer
that dies while it rolls back leaves enough for the next one to finish.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hudi_sql.config.lock import HeartbeatConfig
from hudi_sql.errors import ObjectNotFoundError
from hudi_sql.storage.avro.payloads import PayloadKind, decode_payload, encode_payload
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.instant import Action, Instant, InstantTime, State
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.timeline.clock import InstantClock
from hudi_sql.storage.timeline.timeline import Timeline
from hudi_sql.storage.timeline.write import (
    complete,
    create_inflight,
    create_requested,
    delete_instant_file,
    instant_path,
)
from hudi_sql.storage.transaction.heartbeat import Pulse, read_pulse, remove_heartbeat
from hudi_sql.storage.transaction.markers import Marker, delete_markers, marker_folder, read_markers

__all__ = ["MetadataRollback", "roll_back_dead_writes"]

_log = logging.getLogger(__name__)

MetadataRollback = Callable[[InstantTime, InstantTime], None]
"""Rolls a data instant back in the metadata table: (instant, rollback instant)."""

_ROLLED_BACK = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
"""Pending instants that a writer may undo; those of table services have plans and can be run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rollback:
    """One rollback: which instant it undoes, under which instant of its own."""

    target: Instant
    instant: Instant
    """Of the rollback, requested or inflight."""


def roll_back_dead_writes(
    store: Store,
    config: TableConfig,
    timeline: Timeline,
    *,
    clock: InstantClock,
    heartbeat: HeartbeatConfig,
    in_metadata: MetadataRollback,
) -> int:
    """Undo the pending commits whose writers are dead, newest first, and finish rollbacks left half done.

    To be called under the table lock. Live writers are never touched: one with a heartbeat lives while that
    beats; one without (Spark's single writer has none) while anything of its instant was modified within the
    time after which a silent heartbeat counts as dead.

    Returns:
        How many commits were undone. The timeline must be loaded again when it is not 0.
    """
    unfinished = _unfinished(store, config, timeline)
    dead = [
        instant
        for instant in timeline.pending
        if instant.action in _ROLLED_BACK
        and (instant.requested in unfinished or _is_dead(store, config, instant, heartbeat))
    ]
    targets = {instant.requested for instant in dead}
    for requested, rollback in unfinished.items():
        if requested not in targets:
            # The target is gone: only the last step of that rollback is missing.
            target = Instant(requested=requested, action=Action.COMMIT, state=State.INFLIGHT)
            _finish(store, config, _Rollback(target=target, instant=rollback), clock, in_metadata)
    for instant in sorted(dead, reverse=True):
        known = unfinished.get(instant.requested)
        rollback = _Rollback(target=instant, instant=known or _plan(store, config, instant, clock))
        _finish(store, config, rollback, clock, in_metadata)
        _log.info("rolled back the dead commit %s of %s", instant.requested, store.uri)
    return len(dead) + sum(1 for requested in unfinished if requested not in targets)


def _unfinished(store: Store, config: TableConfig, timeline: Timeline) -> dict[InstantTime, Instant]:
    """Pending rollbacks by the instant that they undo."""
    found = {}
    for instant in timeline.pending:
        if instant.action is not Action.ROLLBACK:
            continue
        requested = replace(instant, state=State.REQUESTED, file_name="")
        path = instant_path(config, requested)
        try:
            plan = decode_payload(PayloadKind.ROLLBACK_PLAN, store.read(path), path)
        except ObjectNotFoundError:
            continue
        target = plan.get("instantToRollback") or {}
        if target.get("commitTime"):
            found[InstantTime(str(target["commitTime"]))] = instant
    return found


def _is_dead(store: Store, config: TableConfig, instant: Instant, heartbeat: HeartbeatConfig) -> bool:
    pulse = read_pulse(store, instant.requested, heartbeat)
    if pulse is not Pulse.NONE:
        return pulse is Pulse.DEAD
    newest_ms = 0
    for state in (State.REQUESTED, State.INFLIGHT):
        try:
            info = store.info(instant_path(config, replace(instant, state=state, file_name="")))
        except ObjectNotFoundError:
            continue
        newest_ms = max(newest_ms, info.modified_ms)
    for info in store.walk(marker_folder(instant.requested)):
        newest_ms = max(newest_ms, info.modified_ms)
    return time.time() * 1000 - newest_ms > heartbeat.expiry_ms


def _plan(store: Store, config: TableConfig, target: Instant, clock: InstantClock) -> Instant:
    requests = [
        {
            "partitionPath": str(marker.partition),
            "fileId": _file_id(marker),
            "latestBaseInstant": None,
            "filesToBeDeleted": [f"{store.uri}/{marker.path}"],
            "logBlocksToBeDeleted": {},
        }
        for marker in read_markers(store, target.requested)
    ]
    plan = {
        "instantToRollback": {"commitTime": str(target.requested), "action": target.action.value},
        "RollbackRequests": requests,
        "version": 1,
    }
    payload = encode_payload(PayloadKind.ROLLBACK_PLAN, plan)
    instant = create_requested(store, config, clock.next_instant(), Action.ROLLBACK, payload)
    return create_inflight(store, config, instant)


def _finish(
    store: Store, config: TableConfig, rollback: _Rollback, clock: InstantClock, in_metadata: MetadataRollback
) -> None:
    """Delete the files, undo the metadata table's part, complete the rollback, and only then forget the target."""
    started_ms = time.time() * 1000
    if rollback.instant.state is State.REQUESTED:
        rollback = replace(rollback, instant=create_inflight(store, config, rollback.instant))
    markers = read_markers(store, rollback.target.requested)
    for marker in markers:
        store.delete(marker.path)
    in_metadata(rollback.target.requested, rollback.instant.requested)
    metadata = _metadata(store, rollback, markers, int(time.time() * 1000 - started_ms))
    payload = encode_payload(PayloadKind.ROLLBACK_METADATA, metadata)
    complete(store, config, rollback.instant, clock.next_instant(), payload)
    for state in (State.INFLIGHT, State.REQUESTED):
        delete_instant_file(store, config, replace(rollback.target, state=state, file_name=""))
    delete_markers(store, rollback.target.requested)
    remove_heartbeat(store, rollback.target.requested)


def _metadata(
    store: Store, rollback: _Rollback, markers: Sequence[Marker], taken_ms: int
) -> dict[str, object]:
    partitions: dict[str, dict[str, object]] = {}
    for marker in markers:
        entry = partitions.setdefault(
            str(marker.partition),
            {
                "partitionPath": str(marker.partition),
                "successDeleteFiles": [],
                "failedDeleteFiles": [],
                "rollbackLogFiles": {},
                "logFilesFromFailedCommit": {},
            },
        )
        deleted = entry["successDeleteFiles"]
        assert isinstance(deleted, list)
        deleted.append(f"{store.uri}/{marker.path}")
    target = rollback.target
    return {
        "startRollbackTime": str(rollback.instant.requested),
        "timeTakenInMillis": taken_ms,
        "totalFilesDeleted": len(markers),
        "commitsRollback": [str(target.requested)],
        "partitionMetadata": partitions,
        "version": 1,
        "instantsRollback": [{"commitTime": str(target.requested), "action": target.action.value}],
    }


def _file_id(marker: Marker) -> str:
    return marker.file_name.lstrip(".").split("_", 1)[0]
