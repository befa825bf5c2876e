"""What the session asks of a catalogue of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["Catalog", "TableEntry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """A name and where its table is."""

    database: str
    name: str
    location: str
    is_managed: bool
    """Whether DROP TABLE removes the files: the location was chosen by us."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Write settings given at CREATE TABLE, in force for this name."""


class Catalog(Protocol):
    """Names of tables."""

    def find(self, parts: Sequence[str]) -> TableEntry | None:
        """Entry of a possibly qualified name, in any case."""

    def add(self, entry: TableEntry) -> None:
        """Take a name. Raises `TableExistsError`."""

    def remove(self, parts: Sequence[str]) -> TableEntry:
        """Forget a name. Raises `TableNotFoundError`."""

    def names(self) -> tuple[str, ...]:
        """All names, for proposals in messages."""

    def qualify(self, parts: Sequence[str]) -> tuple[str, str]:
        """Database and name that a possibly qualified name means. Raises `BindError` for other catalogues."""

    def managed_location(self, database: str, name: str) -> str:
        """Where a table without LOCATION goes."""
