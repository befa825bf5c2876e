"""The active timeline: which instants there are, and how far each is (timeline notes §1, §2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hudi_sql.storage.fs.base import FileInfo, Store
from hudi_sql.storage.model.instant import Action, Instant, InstantTime, State
from hudi_sql.storage.properties.kinds import TimelineZone
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.timeline.clock import format_instant, parse_time_text
from hudi_sql.storage.timeline.file_names import parse_instant_file

__all__ = ["Timeline", "load_timeline", "timeline_of_files"]

_RANK = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The instants of the active timeline at one moment, in their highest states, by requested time."""

    instants: tuple[Instant, ...]
    zone: TimelineZone
    first_active_write: InstantTime | None
    """Requested time of the earliest write, done or pending, that is not kept for a savepoint. Older instants
    are archived, and only completed (or rolled back) ones are."""
    query_time: InstantTime | None = None
    """Set when the timeline was cut to a point in time."""
    _completed: dict[InstantTime, InstantTime | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        times = {item.requested: item.completed for item in self.completed_writes}
        object.__setattr__(self, "_completed", times)

    @property
    def completed(self) -> tuple[Instant, ...]:
        """All completed instants, services included."""
        return tuple(item for item in self.instants if item.state is State.COMPLETED)

    @property
    def pending(self) -> tuple[Instant, ...]:
        """All instants that are requested or inflight."""
        return tuple(item for item in self.instants if item.state is not State.COMPLETED)

    @property
    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed commits, deltacommits and replacecommits."""
        return tuple(item for item in self.completed if item.action.is_write)

    @property
    def latest_completed_write(self) -> Instant | None:
        """The completed write with the greatest requested time."""
        return max(self.completed_writes, default=None)

    @property
    def newest_time(self) -> InstantTime | None:
        """The greatest requested or completion time of any instant: new ones must be greater."""
        times = [item.requested for item in self.instants]
        times += [item.completed for item in self.instants if item.completed is not None]
        return max(times, default=None)

    def is_committed(self, requested: InstantTime) -> bool:
        """Whether files of this instant count: it is completed, or archived (base file notes §6.2)."""
        if self.query_time is not None and requested > self.query_time:
            return False
        return requested in self._completed or self.is_archived(requested)

    def is_archived(self, requested: InstantTime) -> bool:
        """Whether an instant is older than the active timeline."""
        return self.first_active_write is not None and requested < self.first_active_write

    def completion_time(self, requested: InstantTime) -> InstantTime | None:
        """When a write of the active timeline was completed; None for pending and archived ones."""
        return self._completed.get(requested)

    def find(self, requested: InstantTime, action: Action | None = None) -> Instant | None:
        """The instant of a requested time; a savepoint shares its time with the instant that it keeps."""
        for item in self.instants:
            if item.requested == requested and (
                action.when_completed is item.action.when_completed
                if action is not None
                else item.action is not Action.SAVEPOINT
            ):
                return item
        return None

    def as_of(self, time_text: str) -> Timeline:
        """The timeline of a point in time: instants requested at or before it.

        Requested, not completion time: a commit shows from the time that its rows carry, as in Spark.

        Raises:
            BindError: The text is no time.
        """
        return self.until(parse_time_text(time_text, self.zone))

    def until(self, last: InstantTime) -> Timeline:
        """The instants requested at or before `last`."""
        kept = tuple(item for item in self.instants if item.requested <= last)
        return replace(self, instants=kept, query_time=last)


def load_timeline(store: Store, config: TableConfig) -> Timeline:
    """Read the active timeline of a table. One listing; no file is opened."""
    return timeline_of_files(store.list(config.timeline_path), config)


def timeline_of_files(files: Iterable[FileInfo], config: TableConfig) -> Timeline:
    """Build the timeline out of a listing of its folder. Foreign files are ignored."""
    found: dict[tuple[InstantTime, Action], Instant] = {}
    for file in files:
        instant = None if file.is_folder else _parse(file, config.timeline_zone)
        if instant is None:
            continue
        # One instant shows under several words: its compaction is requested, its commit is completed.
        key = (instant.requested, instant.action.when_completed)
        other = found.get(key)
        if other is None or _is_higher(instant, other):
            found[key] = instant
    instants = tuple(sorted(found.values(), key=lambda item: (item.requested, item.action.value)))
    return Timeline(
        instants=instants, zone=config.timeline_zone, first_active_write=_first_active_write(instants)
    )


def _parse(file: FileInfo, zone: TimelineZone) -> Instant | None:
    parsed = parse_instant_file(file.name)
    if parsed is None:
        return None
    completed = parsed.completed
    if parsed.state is State.COMPLETED and completed is None:
        # Layout 1 keeps no completion times; Hudi takes the file's own time.
        completed = format_instant(file.modified_ms, zone)
    return Instant(
        requested=parsed.requested,
        action=parsed.action,
        state=parsed.state,
        completed=completed,
        file_name=file.name,
    )


def _is_higher(one: Instant, other: Instant) -> bool:
    if one.state is not other.state:
        return _RANK[one.state] > _RANK[other.state]
    if one.completed is None or other.completed is None:
        return False
    # Two completed files of one instant: a writer lost the answer and completed again. The first one counts.
    return one.completed < other.completed


def _first_active_write(instants: tuple[Instant, ...]) -> InstantTime | None:
    """Archival may pass by commits that a savepoint keeps, so those do not mark where the timeline starts."""
    kept = {item.requested for item in instants if item.action is Action.SAVEPOINT}
    writes = [item.requested for item in instants if item.action.is_write]
    return next((time for time in writes if time not in kept), writes[0] if writes else None)
