"""Writing the files of an instant, each created once and never replaced (timeline notes §2, §5).

`ObjectExistsError` of these functions means that someone else, or an earlier attempt of our own whose answer
was lost, was first: the caller decides which by reading back.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.instant import Action, Instant, InstantTime, State
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.timeline.file_names import instant_file_name

__all__ = ["complete", "create_inflight", "create_requested", "delete_instant_file", "instant_path"]


def instant_path(config: TableConfig, instant: Instant) -> str:
    """Path of the file that shows an instant in its state, relative to the table."""
    name = instant.file_name or instant_file_name(instant, layout_version=config.layout_version)
    return f"{config.timeline_path}/{name}"


def create_requested(
    store: Store, config: TableConfig, requested: InstantTime, action: Action, payload: bytes = b""
) -> Instant:
    """Create the requested file of a new instant. Raises `ObjectExistsError`."""
    return _create(store, config, Instant(requested=requested, action=action, state=State.REQUESTED), payload)


def create_inflight(store: Store, config: TableConfig, instant: Instant, payload: bytes = b"") -> Instant:
    """Create the inflight file of an instant. Raises `ObjectExistsError`."""
    return _create(store, config, replace(instant, state=State.INFLIGHT, file_name=""), payload)


def complete(
    store: Store, config: TableConfig, instant: Instant, completed: InstantTime, payload: bytes
) -> Instant:
    """Create the completed file: from then on readers see the instant. Raises `ObjectExistsError`.

    To be called under the table lock, with a completion time that was drawn under it.
    """
    done = replace(
        instant,
        action=instant.action.when_completed,
        state=State.COMPLETED,
        completed=completed,
        file_name="",
    )
    return _create(store, config, done, payload)


def delete_instant_file(store: Store, config: TableConfig, instant: Instant) -> bool:
    """Delete the file of an instant's state (not those of its lower states); False when it was not there."""
    return store.delete(instant_path(config, instant))


def _create(store: Store, config: TableConfig, instant: Instant, payload: bytes) -> Instant:
    named = replace(instant, file_name=instant_file_name(instant, layout_version=config.layout_version))
    store.create(instant_path(config, named), payload)
    return named
