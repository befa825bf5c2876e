"""Names of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_sql.catalog.base import TableEntry
from hudi_sql.catalog.session_catalog import SessionCatalog
from hudi_sql.errors import BindError, TableExistsError, TableNotFoundError


def entry(name: str, database: str = "default") -> TableEntry:
    return TableEntry(database=database, name=name, location=f"/x/{name}", is_managed=False)


def test_a_name_is_found_in_any_case_and_qualified_or_not() -> None:
    catalog = SessionCatalog()
    catalog.add(entry("Trips"))
    for parts in (("trips",), ("TRIPS",), ("default", "trips"), ("spark_catalog", "default", "Trips")):
        assert catalog.find(parts) == entry("Trips")
    assert catalog.find(("other", "trips")) is None
    assert catalog.find(("a", "b", "trips")) is None


def test_a_name_is_taken_once() -> None:
    catalog = SessionCatalog()
    catalog.add(entry("t"))
    with pytest.raises(TableExistsError, match="t"):
        catalog.add(entry("T"))
    catalog.add(entry("t", "other"))
    assert catalog.names() == ("t", "other.t")


def test_a_missing_name_proposes_near_ones() -> None:
    catalog = SessionCatalog()
    catalog.add(entry("trips"))
    with pytest.raises(TableNotFoundError) as raised:
        catalog.remove(("tripz",))
    assert "trips" in (raised.value.hint or "")
    with pytest.raises(BindError):
        catalog.qualify(("a", "b", "c", "d"))


def test_managed_tables_lie_in_the_warehouse(tmp_path: Path) -> None:
    catalog = SessionCatalog(f"{tmp_path}/w/")
    assert catalog.managed_location("default", "T") == f"{tmp_path}/w/t"
    assert catalog.managed_location("Sales", "T") == f"{tmp_path}/w/sales.db/t"


def test_a_temporary_warehouse_goes_with_the_session() -> None:
    catalog = SessionCatalog()
    folder = Path(catalog.managed_location("default", "t"))
    assert folder.parent.is_dir()
    catalog.close()
    assert not folder.parent.exists()
