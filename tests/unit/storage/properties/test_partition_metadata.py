from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pyarrow.parquet as pq
import pytest

from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.model.files import PartitionPath
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.properties.java_properties import decode_properties
from hudi_sql.storage.properties.partition_metadata import ensure_partition_metadata
from hudi_sql.storage.properties.properties_file import java_date

INSTANT = InstantTime("20261201042103969")


@pytest.fixture
def store():
    return MemoryStore(f"t{uuid.uuid4().hex}")


@pytest.mark.parametrize(("partition", "depth"), [("", "0"), ("city=la", "1"), ("2026/12/01", "3")])
def test_a_partition_gets_its_file_once(store, partition, depth):
    path = f"{partition}/.hoodie_partition_metadata".lstrip("/")
    ensure_partition_metadata(store, PartitionPath(partition), INSTANT)
    first = store.read(path)
    assert decode_properties(first) == {"commitTime": INSTANT.value, "partitionDepth": depth}
    assert first.startswith(b"#partition metadata\n#")
    ensure_partition_metadata(store, PartitionPath(partition), InstantTime("20270101000000000"))
    assert store.read(path) == first


def test_the_base_format_keeps_the_values_in_the_footer(store):
    ensure_partition_metadata(store, PartitionPath("a/b"), INSTANT, use_base_format=True)
    footer = pq.read_metadata(store.open_input("a/b/.hoodie_partition_metadata.parquet"))
    assert footer.num_rows == 0
    assert footer.metadata[b"commitTime"] == INSTANT.value.encode()
    assert footer.metadata[b"partitionDepth"] == b"2"
    ensure_partition_metadata(store, PartitionPath("a/b"), INSTANT)
    assert [info.name for info in store.list("a/b")] == [".hoodie_partition_metadata.parquet"]


def test_dates_are_javas_in_any_locale():
    assert java_date(datetime(2026, 12, 1, 4, 21, 7, tzinfo=UTC)) == "Tue Dec 01 04:21:07 UTC 2026"
