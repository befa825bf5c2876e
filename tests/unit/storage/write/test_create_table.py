from __future__ import annotations

import json
import uuid

import pyarrow as pa
import pytest

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import SchemaError, TableExistsError, UnsupportedTableError
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.properties.kinds import MergeMode, TableType
from hudi_sql.storage.properties.table_config import KeyGeneratorType, load_table_config
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.write.create import create_table

PAYLOAD = "org.apache.hudi.common.model."
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("ts", pa.int64()),
        ("day", pa.date32()),
        ("place", pa.struct([("city", pa.string()), ("at", pa.list_(pa.float64()))])),
    ]
)


@pytest.fixture
def store():
    return MemoryStore(f"t{uuid.uuid4().hex}")


def make(store, **options):
    options = {"schema": SCHEMA, "name": "t", **options}
    return create_table(store, **options)


def test_properties_are_those_that_were_asked_for(store):
    config = make(
        store,
        database="d",
        record_key_fields=["id", "place.city"],
        partition_fields=["day"],
        ordering_fields=["ts"],
        properties={"hoodie.some.thing": "x"},
    )
    assert config == load_table_config(store)
    assert (config.name, config.database, config.version, config.table_type) == (
        "t",
        "d",
        9,
        TableType.COPY_ON_WRITE,
    )
    assert config.record_key_fields == ("id", "place.city")
    assert config.partition_fields == ("day",)
    assert config.ordering_fields == ("ts",)
    assert config.merge_mode is MergeMode.EVENT_TIME_ORDERING
    assert config.key_generator is KeyGeneratorType.COMPLEX
    assert config.hive_style_partitioning
    assert config.raw["hoodie.some.thing"] == "x"
    assert [field["name"] for field in json.loads(config.create_schema_json)["fields"]] == SCHEMA.names
    assert config.metadata_partitions == {"files", "column_stats", "partition_stats"}
    assert load_timeline(store, config).instants == ()


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        ({}, "merge_mode", MergeMode.COMMIT_TIME_ORDERING),
        ({"ordering_fields": ["ts"]}, "merge_mode", MergeMode.EVENT_TIME_ORDERING),
        (
            {"ordering_fields": ["ts"], "merge_mode": MergeMode.COMMIT_TIME_ORDERING},
            "merge_mode",
            MergeMode.COMMIT_TIME_ORDERING,
        ),
        (
            {"payload_class": f"{PAYLOAD}OverwriteWithLatestAvroPayload", "ordering_fields": ["ts"]},
            "merge_mode",
            MergeMode.COMMIT_TIME_ORDERING,
        ),
        (
            {"payload_class": f"{PAYLOAD}DefaultHoodieRecordPayload", "ordering_fields": ["ts"]},
            "legacy_payload_class",
            f"{PAYLOAD}DefaultHoodieRecordPayload",
        ),
        ({"table_type": TableType.MERGE_ON_READ}, "table_type", TableType.MERGE_ON_READ),
        ({"record_key_fields": ["id"]}, "key_generator", KeyGeneratorType.NON_PARTITION),
        (
            {"record_key_fields": ["id"], "partition_fields": ["day"]},
            "key_generator",
            KeyGeneratorType.SIMPLE,
        ),
        ({"settings": WriteConfig(metadata_enable=False)}, "metadata_partitions", frozenset()),
        ({"settings": WriteConfig(column_stats_enable=False)}, "metadata_partitions", {"files"}),
        ({}, "metadata_partitions", {"files", "column_stats"}),
        (
            {"partition_fields": ["day"], "settings": WriteConfig(partition_stats_enable=False)},
            "metadata_partitions",
            {"files", "column_stats"},
        ),
    ],
)
def test_choices(store, options, field, value):
    make(store, **options)
    assert getattr(load_table_config(store), field) == value


@pytest.mark.parametrize(
    "options",
    [
        {"record_key_fields": ["missing"]},
        {"record_key_fields": ["place.missing"]},
        {"record_key_fields": ["id.x"]},
        {"record_key_fields": ["place"]},
        {"record_key_fields": ["place.at"]},
        {"partition_fields": ["ID"]},
        {"ordering_fields": ["nothing"]},
        {"schema": pa.schema([("a b", pa.int64())])},
        {"schema": pa.schema([("a", pa.duration("s"))])},
        {"schema": pa.schema([("_hoodie_record_key", pa.string())])},
    ],
    ids=str,
)
def test_what_cannot_be_stored_leaves_nothing(store, options):
    with pytest.raises(SchemaError):
        make(store, **options)
    assert list(store.walk("")) == []


def test_an_unknown_payload_leaves_nothing(store):
    with pytest.raises(UnsupportedTableError, match="MyPayload"):
        make(store, payload_class="com.example.MyPayload")
    assert list(store.walk("")) == []


def test_a_table_is_never_created_over_another(store):
    make(store, name="first")
    before = {info.path: store.read(info.path) for info in store.walk("")}
    with pytest.raises(TableExistsError):
        make(store, name="second")
    assert {info.path: store.read(info.path) for info in store.walk("")} == before


def test_foreign_files_do_not_matter(store):
    store.create("README.md", b"x")
    make(store)
    assert store.read("README.md") == b"x"
