"""Instants of a timeline: time, action, state."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Action", "Instant", "InstantTime", "State"]


@dataclass(frozen=True, slots=True, order=True)
class InstantTime:
    """The time that names an instant: `yyyyMMddHHmmssSSS`, ordered as text (timeline format notes, §4).

    Old tables have 14 digits, and the metadata table has instants with suffixes; text order holds for all.
    """

    value: str

    def __str__(self) -> str:
        return self.value


class Action(Enum):
    """What an instant does. The value is the word in file names of pending instants."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"
    SCHEMA_COMMIT = "schemacommit"

    @property
    def when_completed(self) -> Action:
        """The action in the name of the completed file: services complete as the commit kind they amount to."""
        return {
            Action.COMPACTION: Action.COMMIT,
            Action.LOG_COMPACTION: Action.DELTA_COMMIT,
            Action.CLUSTERING: Action.REPLACE_COMMIT,
        }.get(self, self)

    @property
    def is_write(self) -> bool:
        """Whether a completed instant of this action may add or replace data files."""
        return self.when_completed in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


class State(Enum):
    """How far an instant is."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One instant, in the highest state that the timeline shows for it. Ordered by requested time."""

    requested: InstantTime
    action: Action = field(compare=False)
    state: State = field(compare=False)
    completed: InstantTime | None = field(default=None, compare=False)
    """Completion time. None while pending; for version 6 tables the file's modification time stands in."""
    file_name: str = field(default="", compare=False)
    """Name of the file that shows this state, inside the timeline folder."""
