from __future__ import annotations

import pickle
import uuid
import zipfile

import pytest

from hudi_sql.errors import (
    CorruptTableError,
    ObjectExistsError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedTableError,
)
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.properties.java_properties import decode_properties
from hudi_sql.storage.properties.table_config import (
    KeyGeneratorType,
    MergeMode,
    TableType,
    TimelineZone,
    create_table_config,
    load_table_config,
    parse_table_config,
    update_table_config,
)
from tests.golden_tables import TABLES, expected, unpack

FILE = ".hoodie/hoodie.properties"
BACKUP = ".hoodie/hoodie.properties.backup"
COW_TABLES = sorted(path.stem for path in TABLES.glob("v[89]_cow*.zip"))
MODEL = "org.apache.hudi.common.model."


@pytest.fixture
def store():
    return MemoryStore(f"t{uuid.uuid4().hex}")


def config_of(**values):
    properties = {"hoodie.table.name": "t"}
    properties |= {"hoodie." + key.replace("__", "."): value for key, value in values.items()}
    return parse_table_config(properties)


@pytest.mark.parametrize("name", COW_TABLES)
def test_golden_tables_open(name, store):
    want = expected(name)
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        store.put(FILE, archive.read(f"{name}/{FILE}"))
    config = load_table_config(store)
    assert dict(config.raw) == want["properties"]
    assert config.version == want["table_version"]
    assert config.table_type is TableType.COPY_ON_WRITE
    assert config.partition_fields == tuple(want["partition_fields"])
    assert config.ordering_fields == tuple(want["ordering_fields"])
    assert config.record_key_fields == tuple(want["primary_key"])
    assert config.timeline_path == ".hoodie/timeline"
    assert pickle.loads(pickle.dumps(config)) == config


def test_golden_metadata_table_opens(tmp_path):
    folder = unpack("v9_cow_hive", tmp_path)
    config = load_table_config(LocalStore(str(folder / ".hoodie/metadata")))
    assert config.table_type is TableType.MERGE_ON_READ
    assert config.key_generator is KeyGeneratorType.HOODIE_TABLE_METADATA
    assert config.merge_mode is MergeMode.CUSTOM
    assert config.base_file_format == "HFILE"
    assert not config.populate_meta_fields


def test_absent_keys_have_hudis_defaults():
    config = config_of()
    assert config.version == 9
    assert config.initial_version == 9
    assert config.layout_version == 2
    assert config.table_type is TableType.COPY_ON_WRITE
    assert config.timeline_zone is TimelineZone.LOCAL
    assert (config.timeline_path, config.history_path) == (".hoodie/timeline", ".hoodie/timeline/history")
    assert config.record_key_fields == ()
    assert config.populate_meta_fields
    assert not config.hive_style_partitioning
    assert not config.url_encode_partitions
    assert config.base_file_format == "PARQUET"
    assert config.metadata_partitions == frozenset()
    assert config.key_generator is KeyGeneratorType.NON_PARTITION
    assert config.index_definitions_path == ".hoodie/.index_defs/index.json"


def test_version_6_has_its_own_folders():
    config = config_of(table__version="6", archivelog__folder="archived", timeline__path="timeline")
    assert (config.timeline_path, config.history_path) == (".hoodie", ".hoodie/archived")
    assert pickle.loads(pickle.dumps(config)) == config


def test_lists_are_split_and_trimmed():
    config = config_of(
        table__recordkey__fields="a, b,,",
        table__metadata__partitions="files,column_stats",
        table__ordering__fields="x,y",
    )
    assert config.record_key_fields == ("a", "b")
    assert config.metadata_partitions == {"files", "column_stats"}
    assert config.ordering_fields == ("x", "y")


def test_the_old_name_of_ordering_fields_is_read():
    assert config_of(table__precombine__field="ts").ordering_fields == ("ts",)
    both = config_of(table__precombine__field="old", table__ordering__fields="new")
    assert both.ordering_fields == ("new",)


def test_custom_partition_fields_have_types():
    config = config_of(table__keygenerator__type="CUSTOM", table__partition__fields="a:SIMPLE,b:timestamp,c")
    assert config.partition_fields == ("a", "b", "c")
    assert config.partition_types == ("SIMPLE", "TIMESTAMP", "SIMPLE")
    plain = config_of(table__keygenerator__type="SIMPLE", table__partition__fields="a")
    assert (plain.partition_fields, plain.partition_types) == (("a",), ())


@pytest.mark.parametrize(
    ("keys", "partitions", "kind"),
    [
        ("", "", "NON_PARTITION"),
        ("a,b", "", "NON_PARTITION"),
        ("a", "p", "SIMPLE"),
        ("", "p", "SIMPLE"),
        ("a", "p,q", "COMPLEX"),
        ("a,b", "p", "COMPLEX"),
        ("a", "p:TIMESTAMP", "CUSTOM"),
        ("a,b", "p:SIMPLE,q:SIMPLE", "CUSTOM"),
    ],
)
def test_key_generators_are_inferred(keys, partitions, kind):
    config = config_of(table__recordkey__fields=keys, table__partition__fields=partitions)
    assert config.key_generator.name == kind


@pytest.mark.parametrize(
    ("class_name", "kind"),
    [
        ("org.apache.hudi.keygen.SimpleKeyGenerator", "SIMPLE"),
        ("org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator", "TIMESTAMP"),
        ("org.apache.spark.sql.hudi.command.SqlKeyGenerator", "SPARK_SQL"),
        ("com.example.SimpleKeyGenerator", "USER_PROVIDED"),
    ],
)
def test_key_generators_are_known_by_class(class_name, kind):
    config = config_of(table__keygenerator__class=class_name)
    assert config.key_generator.name == kind
    assert config.key_generator_class == class_name


def test_avro_twins_are_the_same_key_generator():
    assert config_of(table__keygenerator__type="complex_avro").key_generator is KeyGeneratorType.COMPLEX


@pytest.mark.parametrize(
    ("version", "mode", "payload", "strategy", "ordering", "result"),
    [
        ("9", "", "", "", "ts", "EVENT_TIME_ORDERING"),
        ("9", "", "", "", "", "COMMIT_TIME_ORDERING"),
        ("9", "CUSTOM", MODEL + "DefaultHoodieRecordPayload", "", "ts", "CUSTOM"),
        ("8", "COMMIT_TIME_ORDERING", MODEL + "DefaultHoodieRecordPayload", "", "ts", "COMMIT_TIME_ORDERING"),
        (
            "8",
            "",
            MODEL + "OverwriteWithLatestAvroPayload",
            "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
            "",
            "EVENT_TIME_ORDERING",
        ),
        (
            "6",
            "",
            MODEL + "OverwriteWithLatestAvroPayload",
            "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
            "",
            "COMMIT_TIME_ORDERING",
        ),
        ("6", "", MODEL + "EventTimeAvroPayload", "", "", "EVENT_TIME_ORDERING"),
        ("6", "", "com.example.MyPayload", "", "ts", "CUSTOM"),
        ("6", "", "", "00000000-0000-0000-0000-000000000000", "ts", "CUSTOM"),
        ("6", "", "", "", "ts", "COMMIT_TIME_ORDERING"),
    ],
)
def test_merge_modes_are_inferred(version, mode, payload, strategy, ordering, result):
    config = config_of(
        table__version=version,
        record__merge__mode=mode,
        compaction__payload__class=payload,
        record__merge__strategy__id=strategy,
        table__ordering__fields=ordering,
    )
    assert config.merge_mode.name == result


def test_index_definitions_path_loses_the_tables_location():
    config = config_of(table__index__defs__path="s3://b/t/.hoodie/.index_defs/index.json")
    assert config.index_definitions_path == ".hoodie/.index_defs/index.json"


@pytest.mark.parametrize("version", ["0", "5", "7", "10", "99"])
def test_unknown_versions_are_refused(version):
    with pytest.raises(UnsupportedTableError) as caught:
        config_of(table__version=version)
    assert (caught.value.property, caught.value.value) == ("hoodie.table.version", version)


@pytest.mark.parametrize(("version", "layout"), [("9", "1"), ("6", "2"), ("9", "3")])
def test_layouts_must_fit_the_version(version, layout):
    with pytest.raises(UnsupportedTableError) as caught:
        config_of(table__version=version, timeline__layout__version=layout)
    assert caught.value.property == "hoodie.timeline.layout.version"


def test_unknown_key_generator_types_are_refused():
    with pytest.raises(UnsupportedTableError) as caught:
        config_of(table__keygenerator__type="QUANTUM")
    assert caught.value.value == "QUANTUM"


@pytest.mark.parametrize(
    "values",
    [
        {"table__version": "nine"},
        {"table__version": "-1"},
        {"table__version": "9" * 30},
        {"table__type": "COPY"},
        {"record__merge__mode": "x"},
        {"table__timeline__timezone": "CET"},
        {"table__name": ""},
    ],
)
def test_garbage_is_corrupt(values):
    with pytest.raises(CorruptTableError) as caught:
        config_of(**values)
    assert caught.value.path == FILE


def test_no_table_at_all(store, tmp_path):
    for empty in (store, LocalStore(str(tmp_path / "none"))):
        with pytest.raises(TableNotFoundError) as caught:
            load_table_config(empty)
        assert caught.value.table == empty.uri


def test_create_writes_a_checksum_and_only_once(store):
    config = create_table_config(
        store, {"hoodie.table.name": "t", "hoodie.database.name": "d", "my.key": "a:b"}
    )
    assert config.raw["my.key"] == "a:b"
    assert decode_properties(store.read(FILE)) == dict(config.raw)
    assert config.raw["hoodie.table.checksum"]
    with pytest.raises(TableExistsError):
        create_table_config(store, {"hoodie.table.name": "t"})


def test_create_refuses_what_could_not_be_read(store):
    with pytest.raises(CorruptTableError):
        create_table_config(store, {"hoodie.table.name": "t", "hoodie.table.type": "x"})
    assert not store.exists(FILE)


def test_update_changes_only_what_was_asked(store):
    before = create_table_config(
        store, {"hoodie.table.name": "t", "b": "2", "a": "1", "hoodie.unknown": " é=:\\"}
    )
    after = update_table_config(store, {"hoodie.table.metadata.partitions": "files", "b": None, "gone": None})
    changed = {key: value for key, value in before.raw.items() if key != "b"}
    assert dict(after.raw) == {**changed, "hoodie.table.metadata.partitions": "files"}
    assert after == load_table_config(store)
    assert [info.name for info in store.list(".hoodie")] == ["hoodie.properties"]


def test_update_refuses_what_could_not_be_read(store):
    before = create_table_config(store, {"hoodie.table.name": "t"})
    for change in ({"hoodie.table.type": "x"}, {"hoodie.table.name": None}):
        with pytest.raises(CorruptTableError):
            update_table_config(store, change)
    assert load_table_config(store) == before


def test_readers_use_the_backup_of_a_writer_that_died(store):
    config = create_table_config(store, {"hoodie.table.name": "t"})
    store.put(BACKUP, store.read(FILE))
    for broken in (
        None,
        b"",
        b"hoodie.table.name=t\nhoodie.table.checksum=1\n",
        b"a=\\u1",
        b"hoodie.table.name=t\n",
    ):
        store.delete(FILE)
        if broken is not None:
            store.put(FILE, broken)
        assert load_table_config(store) == config
        assert update_table_config(store, {"x": "y"}).raw["x"] == "y"
        assert not store.exists(BACKUP)
        update_table_config(store, {"x": None})
        store.put(BACKUP, store.read(FILE))


def test_a_left_over_backup_does_not_hide_good_properties(store):
    create_table_config(store, {"hoodie.table.name": "old"})
    store.put(BACKUP, store.read(FILE))
    store.delete(FILE)
    create_table_config(store, {"hoodie.table.name": "new"})
    assert load_table_config(store).name == "new"
    assert update_table_config(store, {"x": "y"}).name == "new"


def test_wrong_checksum_without_backup_is_corrupt(store):
    store.put(FILE, b"hoodie.table.name=t\nhoodie.table.checksum=1\n")
    with pytest.raises(CorruptTableError, match="checksum") as caught:
        load_table_config(store)
    assert caught.value.path == FILE
    assert caught.value.table == store.uri


def test_an_absent_checksum_is_fine(store):
    store.put(FILE, b"hoodie.table.name=t\n")
    assert load_table_config(store).name == "t"


def test_binary_properties_are_corrupt(store):
    store.put(FILE, bytes(range(256)) * 10)
    with pytest.raises(CorruptTableError):
        load_table_config(store)


class _DyingStore(MemoryStore):
    """Fails before its Nth change."""

    __slots__ = ("left",)

    def put(self, path, data):
        self._spend()
        super().put(path, data)

    def delete(self, path):
        self._spend()
        return super().delete(path)

    def _spend(self):
        if self.left == 0:
            raise RuntimeError("the process died")
        object.__setattr__(self, "left", self.left - 1)


@pytest.mark.parametrize("steps", range(4))
def test_a_writer_that_dies_at_any_step_loses_nothing(steps):
    name = f"t{uuid.uuid4().hex}"
    store = MemoryStore(name)
    create_table_config(store, {"hoodie.table.name": "t", "x": "old"})
    dying = _DyingStore(name)
    object.__setattr__(dying, "left", steps)
    try:
        update_table_config(dying, {"x": "new"})
    except RuntimeError:
        assert steps < 3
    else:
        assert steps == 3
    assert load_table_config(store).raw["x"] in ("old", "new")
    assert update_table_config(store, {"y": "1"}).raw["x"] in ("old", "new")
    assert not store.exists(BACKUP)


def test_two_updates_at_once_do_not_mix(store):
    create_table_config(store, {"hoodie.table.name": "t"})

    class Racing(MemoryStore):
        def create(self, path, data):
            MemoryStore.create(self, path, data)
            MemoryStore.create(self, path, data)  # someone else has just made it

    with pytest.raises(ObjectExistsError):
        update_table_config(Racing(store.root), {"x": "1"})
    assert "x" not in load_table_config(store).raw
