"""Undoing commits that died (write protocol notes §4).

Which files a dead commit left is told by its markers alone; the rollback is an instant of its own, so that a writer
that dies while it rolls back leaves enough for the next one to finish.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from hudi_sql.config.lock import HeartbeatConfig
from hudi_sql.errors import ObjectNotFoundError
from hudi_sql.storage.avro.payloads import PayloadKind, decode_payload, encode_payload
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.files import PartitionPath, parse_file
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
from hudi_sql.storage.transaction.markers import (
    Marker,
    MarkerKind,
    delete_markers,
    marker_folder,
    read_markers,
)

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
    planned: tuple[Marker, ...] = ()
    """Files that an earlier attempt had planned to delete: the markers may be gone already."""


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
    beats; one without (Spark's single writer has none) while anything of its instant, data files included, was
    modified within the time after which a silent heartbeat counts as dead.

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
    rollbacks = [
        unfinished.pop(instant.requested)
        if instant.requested in unfinished
        else _Rollback(target=instant, instant=_plan(store, config, instant, clock))
        for instant in sorted(dead, reverse=True)
    ]
    # What is left has lost its target: only the last step of those rollbacks is missing.
    rollbacks += unfinished.values()
    for rollback in rollbacks:
        _finish(store, config, rollback, clock, in_metadata)
        _log.info("rolled back the dead commit %s of %s", rollback.target.requested, store.uri)
    return len(rollbacks)


def _unfinished(store: Store, config: TableConfig, timeline: Timeline) -> dict[InstantTime, _Rollback]:
    """Pending rollbacks of writes that are pending or gone, by the instant that they undo.

    Those of completed instants and of table services are for whoever began them (a restore, say): to go on with them
    would take files away that readers see.
    """
    found = {}
    for instant in timeline.pending:
        if instant.action is not Action.ROLLBACK:
            continue
        path = instant_path(config, replace(instant, state=State.REQUESTED, file_name=""))
        try:
            plan = decode_payload(PayloadKind.ROLLBACK_PLAN, store.read(path), path)
        except ObjectNotFoundError:
            continue
        undone = plan.get("instantToRollback") or {}
        if not undone.get("commitTime"):
            continue
        requested = InstantTime(str(undone["commitTime"]))
        target = timeline.find(requested)
        if target is None and not timeline.is_archived(requested):
            target = Instant(requested=requested, action=_write_action(undone), state=State.INFLIGHT)
        if target is None or target.state is State.COMPLETED or target.action not in _ROLLED_BACK:
            continue
        found[requested] = _Rollback(target=target, instant=instant, planned=_planned(plan))
    return found


def _write_action(undone: Mapping[str, object]) -> Action:
    named = undone.get("action")
    return next((action for action in _ROLLED_BACK if action.value == named), Action.COMMIT)


def _planned(plan: Mapping[str, Any]) -> tuple[Marker, ...]:
    """The files of a plan. It names them by URI, from where the table was then; partition and name still hold."""
    return tuple(
        Marker(
            partition=PartitionPath(request.get("partitionPath") or ""),
            file_name=str(uri).rsplit("/", 1)[-1],
            kind=MarkerKind.CREATE,
        )
        for request in plan.get("RollbackRequests") or ()
        for uri in request.get("filesToBeDeleted") or ()
    )


def _is_dead(store: Store, config: TableConfig, instant: Instant, heartbeat: HeartbeatConfig) -> bool:
    pulse = read_pulse(store, instant.requested, heartbeat)
    if pulse is not Pulse.NONE:
        return pulse is Pulse.DEAD
    oldest_alive_ms = time.time() * 1000 - heartbeat.expiry_ms
    return all(modified_ms < oldest_alive_ms for modified_ms in _modified_ms(store, config, instant))


def _modified_ms(store: Store, config: TableConfig, instant: Instant) -> Iterator[int]:
    """When things of an instant were modified: its own files, its markers, and the files that these mark."""
    for info in store.walk(marker_folder(instant.requested)):
        yield info.modified_ms
    states = (
        instant_path(config, replace(instant, state=state, file_name=""))
        for state in (State.REQUESTED, State.INFLIGHT)
    )
    marked = (marker.path for marker in _files(store, instant.requested))
    for path in chain(states, marked):
        try:
            yield store.info(path).modified_ms
        except ObjectNotFoundError:
            continue


def _plan(store: Store, config: TableConfig, target: Instant, clock: InstantClock) -> Instant:
    requests: list[dict[str, Any]] = [
        {
            "partitionPath": str(marker.partition),
            "fileId": _file_id(marker),
            "latestBaseInstant": None,
            "filesToBeDeleted": [f"{store.uri}/{marker.path}"],
            "logBlocksToBeDeleted": {},
        }
        for marker in _files(store, target.requested)
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
    markers = _files(store, rollback.target.requested, rollback.planned)
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


def _files(store: Store, instant: InstantTime, planned: Iterable[Marker] = ()) -> tuple[Marker, ...]:
    """Files that an instant has written, as far as markers and an earlier plan tell: none of another instant."""
    marked = {marker.path: marker for marker in (*planned, *read_markers(store, instant))}
    found = []
    for _, marker in sorted(marked.items()):
        file = parse_file(marker.partition, marker.file_name, 0)
        if file is not None and file.instant == instant:
            found.append(marker)
    return tuple(found)


def _file_id(marker: Marker) -> str:
    return marker.file_name.lstrip(".").split("_", 1)[0]
