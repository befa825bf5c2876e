"""Names of timeline files (timeline notes §1, §2)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hudi_sql.storage.model.instant import Action, Instant, InstantTime, State

__all__ = ["TimelineFile", "instant_file_name", "parse_instant_file"]

_NAME = re.compile(r"^(\d+)(?:_(\d+))?\.([a-z]+)(?:\.([a-z]+))?$")
_ACTIONS = {action.value: action for action in Action}
_FIRST_LAYOUT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineFile:
    """What one file name says. `completed` is None for pending states and for names of layout 1."""

    requested: InstantTime
    action: Action
    state: State
    completed: InstantTime | None


def parse_instant_file(name: str) -> TimelineFile | None:
    """Parse a file name; None for whatever is no timeline file (sidecars, temporary files, folders).

    Example:
        >>> parse_instant_file("20260101000000000.inflight").action
        <Action.COMMIT: 'commit'>
    """
    match = _NAME.match(name)
    if match is None:
        return None
    requested, completed, word, suffix = match.groups()
    if word == State.INFLIGHT.value and suffix is None:
        word, suffix = Action.COMMIT.value, word  # the inflight file of a commit names no action
    action = _ACTIONS.get(word)
    if action is None or suffix not in (None, State.REQUESTED.value, State.INFLIGHT.value):
        return None
    if suffix is not None and completed is not None:
        return None
    return TimelineFile(
        requested=InstantTime(requested),
        action=action,
        state=State.COMPLETED if suffix is None else State(suffix),
        completed=InstantTime(completed) if completed else None,
    )


def instant_file_name(instant: Instant, *, layout_version: int) -> str:
    """Name of the file that shows an instant in its state. A completed one needs its completion time.

    Example:
        >>> time = InstantTime("20260101000000000")
        >>> pending = Instant(requested=time, action=Action.COMPACTION, state=State.INFLIGHT)
        >>> instant_file_name(pending, layout_version=2)
        '20260101000000000.compaction.inflight'
    """
    if instant.state is State.COMPLETED:
        word = instant.action.when_completed.value
        if layout_version == _FIRST_LAYOUT:
            return f"{instant.requested}.{word}"
        if instant.completed is None:
            raise ValueError("a completed instant needs its completion time")
        return f"{instant.requested}_{instant.completed}.{word}"
    if instant.action is Action.COMMIT and instant.state is State.INFLIGHT:
        return f"{instant.requested}.inflight"
    word = instant.action.value
    if layout_version == _FIRST_LAYOUT and instant.action is Action.CLUSTERING:
        word = Action.REPLACE_COMMIT.value  # layout 1 has no action of its own for clustering
    return f"{instant.requested}.{word}.{instant.state.value}"
