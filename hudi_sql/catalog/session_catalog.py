"""Names of one session, in memory, and the folder of its managed tables."""

from __future__ import annotations

import difflib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hudi_sql.catalog.base import TableEntry
from hudi_sql.errors import BindError, TableExistsError, TableNotFoundError

__all__ = ["DEFAULT_DATABASE", "SessionCatalog"]

DEFAULT_DATABASE = "default"
_CATALOGS = ("spark_catalog", "hudi")


class SessionCatalog:
    """The `Catalog` of a session.

    Args:
        warehouse: Folder or URI of managed tables; a temporary folder, removed at the end, unless given.
    """

    def __init__(self, warehouse: str | None = None) -> None:
        self._warehouse = warehouse
        self._temporary: str | None = None
        self._entries: dict[tuple[str, str], TableEntry] = {}

    def qualify(self, parts: Sequence[str]) -> tuple[str, str]:
        """`t`, `default.t` and `spark_catalog.default.t` mean the same."""
        if len(parts) == 3 and parts[0].lower() in _CATALOGS:
            parts = parts[1:]
        if len(parts) == 2:
            return parts[0], parts[1]
        if len(parts) == 1:
            return DEFAULT_DATABASE, parts[0]
        raise BindError(
            f"There is no table {'.'.join(parts)}: the name has {len(parts)} parts",
            hint="Write table, database.table or spark_catalog.database.table.",
            table=".".join(parts),
        )

    def find(self, parts: Sequence[str]) -> TableEntry | None:
        """Entry of a name, in any case; None when it is not one of ours."""
        try:
            database, name = self.qualify(parts)
        except BindError:
            return None
        return self._entries.get((database.lower(), name.lower()))

    def add(self, entry: TableEntry) -> None:
        """Take a name."""
        key = (entry.database.lower(), entry.name.lower())
        if key in self._entries:
            raise TableExistsError(
                f"There is a table {entry.name} already",
                hint="Drop it, choose another name, or say IF NOT EXISTS.",
                table=entry.name,
            )
        self._entries[key] = entry

    def remove(self, parts: Sequence[str]) -> TableEntry:
        """Forget a name."""
        entry = self.find(parts)
        if entry is None:
            near = difflib.get_close_matches(".".join(parts), self.names(), n=3)
            raise TableNotFoundError(
                f"There is no Hudi table {'.'.join(parts)}",
                hint=f"Did you mean {' or '.join(near)}?" if near else "Create it first.",
                table=".".join(parts),
            )
        return self._entries.pop((entry.database.lower(), entry.name.lower()))

    def names(self) -> tuple[str, ...]:
        """All names; those of the default database unqualified."""
        return tuple(
            entry.name if entry.database == DEFAULT_DATABASE else f"{entry.database}.{entry.name}"
            for entry in self._entries.values()
        )

    def managed_location(self, database: str, name: str) -> str:
        """Folder of a managed table, by database as Spark's warehouse has it."""
        if self._warehouse is None:
            if self._temporary is None:
                self._temporary = tempfile.mkdtemp(prefix="hudi-sql-warehouse-")
            root = self._temporary
        else:
            root = self._warehouse.rstrip("/")
        folder = name.lower() if database == DEFAULT_DATABASE else f"{database.lower()}.db/{name.lower()}"
        return f"{root}/{folder}"

    def close(self) -> None:
        """Forget all names; remove the temporary warehouse."""
        self._entries.clear()
        if self._temporary is not None and Path(self._temporary).exists():
            shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary = None
