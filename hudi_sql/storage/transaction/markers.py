"""Markers: which files an instant was about to write (write protocol notes §2).

The marker of a file exists before the file does. Whoever rolls a pending instant back, Spark included, deletes the
files that have markers and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.files import PartitionPath
from hudi_sql.storage.model.instant import InstantTime

__all__ = ["Marker", "MarkerKind", "create_marker", "delete_markers", "marker_folder", "read_markers"]

_FOLDER = ".hoodie/.temp"
_TYPE_FILE = "MARKERS.type"
_SUFFIX = ".marker."


class MarkerKind(Enum):
    """What the marked file is."""

    CREATE = "CREATE"
    """First base file of a group; from version 8 on also every log file."""
    MERGE = "MERGE"
    """New base file of a group that exists."""
    APPEND = "APPEND"
    """Log file of a version 6 table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """One marked file."""

    partition: PartitionPath
    file_name: str
    kind: MarkerKind

    @property
    def path(self) -> str:
        """Path of the marked file, relative to the table."""
        return f"{self.partition}/{self.file_name}" if self.partition else self.file_name


def marker_folder(instant: InstantTime) -> str:
    """Folder of an instant's markers."""
    return f"{_FOLDER}/{instant}"


def create_marker(store: Store, instant: InstantTime, marker: Marker) -> None:
    """Create a DIRECT marker: an empty file named after the data file."""
    store.touch(f"{marker_folder(instant)}/{marker.path}{_SUFFIX}{marker.kind.value}")


def read_markers(store: Store, instant: InstantTime) -> tuple[Marker, ...]:
    """Read the markers of an instant, of either type.

    Raises:
        CorruptTableError: The markers are of a type that we do not know.
    """
    folder = marker_folder(instant)
    files = [info.path for info in store.walk(folder)]
    type_path = f"{folder}/{_TYPE_FILE}"
    kind = "DIRECT"
    if type_path in files:
        kind = store.read(type_path).decode(errors="replace").strip()
    if kind == "DIRECT":
        names: Iterable[str] = (path[len(folder) + 1 :] for path in files)
    elif kind == "TIMELINE_SERVER_BASED":
        # MARKERS0 to MARKERS19 hold one name a line, in the same form as the names of DIRECT markers.
        lists = [
            path for path in files if path[len(folder) + 1 :].startswith("MARKERS") and path != type_path
        ]
        names = (line for path in lists for line in store.read(path).decode().splitlines())
    else:
        raise CorruptTableError(
            f"Markers of instant {instant} are of an unknown type {kind!r}", table=store.uri, path=type_path
        )
    found = {marker for name in names if (marker := _parse(name.strip())) is not None}
    return tuple(sorted(found, key=lambda marker: marker.path))


def delete_markers(store: Store, instant: InstantTime) -> None:
    """Delete all markers of an instant."""
    store.delete_tree(marker_folder(instant))


def _parse(name: str) -> Marker | None:
    path, separator, kind = name.rpartition(_SUFFIX)
    if not separator or kind not in MarkerKind.__members__:
        return None  # `.crc` sidecars and files of the marker service itself
    partition, _, file_name = path.rpartition("/")
    return Marker(partition=PartitionPath(partition), file_name=file_name, kind=MarkerKind[kind])
