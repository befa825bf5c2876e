"""The metadata table of real tables, and keys, groups and records against their rules."""

from __future__ import annotations

import base64
import json
import random
import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.file_system_view import FileSystemView, StoreLister
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.metadata.keys import (
    column_prefix,
    column_stats_key,
    file_groups_of,
    partition_stats_key,
)
from hudi_sql.storage.metadata.reader import MetadataTable
from hudi_sql.storage.metadata.record_index import file_ids_of, index_payload
from hudi_sql.storage.model.files import PartitionPath
from hudi_sql.storage.properties.table_config import load_table_config
from hudi_sql.storage.timeline.timeline import load_timeline
from tests.golden_tables import TABLES, expected, unpack

NAMES = sorted(path.stem for path in TABLES.glob("*.zip"))


def open_table(folder):
    store = open_store(str(folder))
    config = load_table_config(store)
    timeline = load_timeline(store, config)
    return store, config, timeline, MetadataTable.open(store, config, timeline)


@pytest.mark.parametrize("name", NAMES)
def test_slices_are_the_same_by_metadata_and_by_listing(name, tmp_path) -> None:
    store, config, timeline, table = open_table(unpack(name, tmp_path))
    if table is None:
        assert "files" not in config.metadata_partitions
        return
    listed = FileSystemView.load(StoreLister(store), timeline, store=store, config=config)
    indexed = FileSystemView.load(table, timeline, store=store, config=config)
    assert indexed.all_slices() == listed.all_slices()
    assert indexed.latest_slices()


@pytest.mark.parametrize("name", ["v9_cow_record_index", "v9_cow_all_indexes", "v9_cow_global_move"])
def test_the_record_index_knows_every_key_and_no_other(name, tmp_path) -> None:
    *_, table = open_table(unpack(name, tmp_path))
    rows = expected(name)["record_keys"]["rows"]
    keys = pa.array([row[0] for row in rows] + ["no-such-key", ""])
    found = table.record_locations(keys)
    assert sorted(zip(found["key"].to_pylist(), found["partition"].to_pylist(), strict=True)) == sorted(
        (key, partition) for key, partition, _ in rows
    )


def test_ranges_hold_every_value(tmp_path) -> None:
    *_, table = open_table(unpack("v9_cow_many_file_groups", tmp_path))
    ranges = table.column_ranges(["id", "name"], None)
    assert ranges.num_rows > 3
    assert pc.min(ranges["min:id"]).as_py() <= min(
        row[0] for row in expected("v9_cow_many_file_groups")["snapshot"]["rows"]
    )
    one = table.column_ranges(["id"], [PartitionPath("city=ny")])
    assert set(one["partition"].to_pylist()) == {"city=ny"}
    assert one.num_rows < ranges.num_rows


def test_an_announced_table_that_is_gone_is_a_loud_error(tmp_path) -> None:
    folder = unpack("v9_cow_hive", tmp_path)
    shutil.rmtree(folder / ".hoodie" / "metadata")
    with pytest.raises(CorruptTableError, match="announce a metadata table"):
        open_table(folder)


def test_an_announced_partition_that_is_gone_is_a_loud_error(tmp_path) -> None:
    folder = unpack("v9_cow_hive", tmp_path)
    shutil.rmtree(folder / ".hoodie" / "metadata" / "column_stats")
    *_, table = open_table(folder)
    assert table.list_partitions()
    with pytest.raises(CorruptTableError, match="column_stats"):
        table.column_ranges(["id"], None)


def test_keys_are_those_of_hudi() -> None:
    assert column_prefix("name") == "F5SYxeUa1U8="
    assert column_prefix("_hoodie_commit_time") == "JBBzUToHtLc="
    assert partition_stats_key("name", PartitionPath("city=ny")) == "F5SYxeUa1U8=DalP+lUYn1A="
    key = column_stats_key("name", PartitionPath("city=ny"), "f.parquet")
    assert key.startswith("F5SYxeUa1U8=DalP+lUYn1A=")
    assert len(base64.b64decode(key[24:])) == 16


def java_hash(text: str) -> int:
    units = text.encode("utf-16-be")
    h = 0
    for i in range(0, len(units), 2):
        h = (31 * h + int.from_bytes(units[i : i + 2], "big")) & 0xFFFFFFFF
    return h - 2**32 if h >= 2**31 else h


def test_groups_are_those_of_java_hashes() -> None:
    assert file_groups_of(pa.array(["1", "2", "3", "4", "9"]), 4).tolist() == [1, 2, 3, 0, 1]
    rng = random.Random(5)
    keys = ["", "polygenelubricants", "😀x", "é"] + [
        "".join(rng.choice("abcé😀0Ω") for _ in range(rng.randrange(12))) for _ in range(300)
    ]
    for n in (1, 2, 7, 10):
        wanted = []
        for key in keys:
            h = java_hash(key)
            h = h if h == -(2**31) else abs(h)
            wanted.append(abs(int(h - n * int(h / n))))
        assert file_groups_of(pa.array(keys), n).tolist() == wanted


def test_file_ids_come_back_in_either_encoding() -> None:
    ids = pa.array(
        [
            "5685ec24-0d37-4675-961f-e603fa266738-0",
            "ffffffff-ffff-ffff-ffff-ffffffffffff-12",
            "raw_name",
            "5685ec24-0d37-4675-961f-e603fa266738",
        ]
    )
    payload = index_payload(pa.array(["a", "b", "c", ""]), ids, 5)
    assert payload[0]["fileIdHighBits"].as_py() == 6234648898749023861
    assert payload[0]["fileIdLowBits"].as_py() == -7629126338986219720
    assert file_ids_of(payload).to_pylist() == ids.to_pylist()


def test_the_index_definition_is_what_the_table_says(tmp_path) -> None:
    folder = unpack("v9_cow_types", tmp_path)
    *_, table = open_table(folder)
    stated = json.loads((folder / ".hoodie" / ".index_defs" / "index.json").read_text())
    assert list(table.indexed_columns()) == stated["indexDefinitions"]["column_stats"]["sourceFields"]
