from __future__ import annotations

import uuid

import pytest

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.properties.index_definitions import (
    IndexDefinition,
    load_index_definitions,
    save_index_definitions,
)
from hudi_sql.storage.properties.table_config import load_table_config, parse_table_config
from tests.golden_tables import unpack

V9 = parse_table_config({"hoodie.table.name": "t", "hoodie.table.version": "9"})
V8 = parse_table_config({"hoodie.table.name": "t", "hoodie.table.version": "8"})
PATH = ".hoodie/.index_defs/index.json"


@pytest.fixture
def store():
    return MemoryStore(f"t{uuid.uuid4().hex}")


@pytest.mark.parametrize("name", ["v9_cow_hive", "v9_cow_all_indexes", "v9_cow_record_index", "v8_cow"])
def test_golden_definitions_survive_byte_for_byte(name, tmp_path):
    store = LocalStore(str(unpack(name, tmp_path)))
    config = load_table_config(store)
    text = store.read(PATH)
    definitions = load_index_definitions(store, config)
    assert definitions["column_stats"].source_fields[:3] == (
        "_hoodie_commit_time",
        "_hoodie_partition_path",
        "_hoodie_record_key",
    )
    save_index_definitions(store, config, definitions)
    assert store.read(PATH) == text


def test_no_file_means_no_definitions(store):
    assert load_index_definitions(store, V9) == {}


def test_any_text_round_trips(store):
    definitions = {
        "expr_index_a": IndexDefinition(
            name="expr_index_a",
            index_type="column_stats",
            function="from_unixtime",
            source_fields=('a"b\\', "é中"),
            options={"expr": "from_unixtime", "format": "yyyy"},
            version="V2",
        ),
        "record_index": IndexDefinition(name="record_index", index_type="record_index"),
    }
    save_index_definitions(store, V9, definitions)
    assert load_index_definitions(store, V9) == definitions
    save_index_definitions(store, V9, {})
    assert load_index_definitions(store, V9) == {}


def test_versions_are_needed_from_9_on(store):
    store.put(PATH, b'{"indexDefinitions": {"column_stats": {"indexType": "column_stats", "new": [1]}}}')
    assert load_index_definitions(store, V8)["column_stats"].version == "V1"
    with pytest.raises(CorruptTableError, match="version"):
        load_index_definitions(store, V9)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"indexDefinitions": []}',
        b'{"indexDefinitions": {"a": 1}}',
        b'{"indexDefinitions": {"a": {"version": "V1"}}}',
        b'{"indexDefinitions": {"a": {"indexType": "x", "version": "V1", "sourceFields": "id"}}}',
        b"\xff\xfe",
    ],
)
def test_garbage_is_corrupt(store, text):
    store.put(PATH, text)
    with pytest.raises(CorruptTableError) as caught:
        load_index_definitions(store, V9)
    assert caught.value.path == PATH
