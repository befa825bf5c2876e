"""What planning reads off a table that Spark wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudi_sql.planner.scope import table_facts
from hudi_sql.storage.table import HudiTable
from tests.golden_tables import unpack


@pytest.mark.parametrize(
    ("name", "is_global"),
    [
        ("v9_cow_hive", False),
        ("v9_cow_record_index", True),
        ("v9_cow_partitioned_record_index", False),
    ],
)
def test_keys_are_unique_in_the_table_only_under_a_global_index(
    tmp_path: Path, name: str, *, is_global: bool
) -> None:
    facts = table_facts("t", HudiTable.open(str(unpack(name, tmp_path))).snapshot())
    assert facts.has_global_index is is_global
    assert facts.record_key_fields == ("id",)
    assert facts.is_event_time
