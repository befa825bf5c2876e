"""A session with its tables, which are looked at again after each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hudi_sql
from hudi_sql.storage.fs.uri import open_store
from tests.table_writes import check_consistent

ITEM = "id INT, name VARCHAR, price DOUBLE, ts BIGINT"
ITEM_ROWS = "(1,'a',1.0,10),(2,'b',2.0,10),(3,'c',3.0,10)"
VISIT = "id INT, day DATE, n INT, ts BIGINT, place VARCHAR"
VISIT_ROWS = "(1,DATE '2026-01-01',5,10,'p1'),(2,DATE '2026-01-02',6,10,'p1'),(3,DATE '2026-01-01',7,10,'p2')"


class Lake:
    """Tables of one test in one session."""

    def __init__(self, engine: str, folder: Path, **options: Any) -> None:
        self.engine, self.folder = engine, folder
        self.session = hudi_sql.connect(engine, **options)
        self.names: list[str] = []

    def create(
        self,
        name: str,
        columns: str,
        *,
        key: str | None = "id",
        ordering: str | None = None,
        partition: str | None = None,
        rows: str | None = None,
        properties: dict[str, str] | None = None,
    ) -> Path:
        """CREATE TABLE, rows with it, and where it lies."""
        given = {"primaryKey": key, "preCombineField": ordering, **(properties or {})}
        pairs = ", ".join(f"'{k}' = '{v}'" for k, v in given.items() if v is not None)
        parts = [f"CREATE TABLE {name} ({columns}) USING hudi"]
        parts += [f"TBLPROPERTIES ({pairs})"] if pairs else []
        parts += [f"PARTITIONED BY ({partition})"] if partition else []
        location = self.folder / name
        self.session.sql(" ".join([*parts, f"LOCATION '{location}'"]))
        self.names.append(name)
        if rows:
            self.run(f"INSERT INTO {name} VALUES {rows}")
        return location

    def item(self, name: str = "item", rows: str | None = ITEM_ROWS) -> Path:
        """The table `item` of the cases: event-time ordering, no partitions."""
        return self.create(name, ITEM, ordering="ts", rows=rows)

    def visit(self, name: str = "visit", rows: str | None = VISIT_ROWS, **options: Any) -> Path:
        """The table `visit` of the cases: event-time ordering, partitioned."""
        return self.create(name, VISIT, ordering="ts", partition="place", rows=rows, **options)

    def run(self, text: str) -> tuple[Any, ...]:
        """Counts of a statement that changes rows: inserted, updated, deleted, ignored."""
        found = self.session.sql(text).fetchone()
        return () if found is None else found[1:5]

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        return self.session.sql(text).fetchall()

    def fails(self, kind: Any, text: str, words: str = "") -> None:
        """A typed error that leaves no trace in any table."""
        before = self.files()
        with pytest.raises(kind, match=words or None):
            self.session.sql(text).fetchall()
        assert self.files() == before

    def files(self) -> list[str]:
        return sorted(str(path) for path in self.folder.rglob("*") if path.is_file())

    def partitions(self, name: str) -> list[str]:
        """Folders that hold base files."""
        location = self.folder / name
        found = {path.parent.relative_to(location) for path in location.rglob("*.parquet")}
        return sorted(str(path) for path in found if path.parts[:1] != (".hoodie",))

    def check(self) -> None:
        """The metadata table lists the live files, and a second read gives the same rows."""
        for name in self.names:
            query = f"SELECT * FROM {name} ORDER BY 5, 2"
            assert repr(self.rows(query)) == repr(self.rows(query))
            check_consistent(open_store(str(self.folder / name)), column=None)


@pytest.fixture
def lake(engine: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(engine, tmp_path)
    with made.session:
        yield made
        made.check()
