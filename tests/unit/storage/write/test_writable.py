from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import UnsupportedTableError
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.model.commit import CommitMetadata, OperationType
from hudi_sql.storage.properties.table_config import load_table_config, parse_table_config
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN
from hudi_sql.storage.table import HudiTable
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.write.changes import Changes, SliceChanges
from hudi_sql.storage.write.support import check_slices_writable, check_table_writable
from tests.golden_tables import TABLES, expected, unpack
from tests.table_writes import check_consistent
from tests.unit.storage.write.test_partitioner import piece

BASE = {
    "hoodie.table.name": "t",
    "hoodie.table.version": "9",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.keygenerator.type": "NON_PARTITION",
}


def check(properties, newest=None):
    check_table_writable(parse_table_config({**BASE, **properties}), newest, "t")


def test_plain_tables_are_writable():
    check({})
    check({"hoodie.table.metadata.partitions": "files,column_stats,partition_stats,record_index"})
    check({}, CommitMetadata(operation=OperationType.INSERT, extra={"schema": "{}", "latest_schema": ""}))


@pytest.mark.parametrize(
    ("properties", "named", "value"),
    [
        ({"hoodie.table.version": "8"}, "hoodie.table.version", "8"),
        ({"hoodie.table.version": "6", "hoodie.timeline.layout.version": "1"}, "hoodie.table.version", "6"),
        ({"hoodie.table.type": "MERGE_ON_READ"}, "hoodie.table.type", "MERGE_ON_READ"),
        ({"hoodie.table.keygenerator.type": "CUSTOM"}, "hoodie.table.keygenerator.type", "CUSTOM"),
        ({"hoodie.table.keygenerator.type": "TIMESTAMP"}, "hoodie.table.keygenerator.type", "TIMESTAMP"),
        ({"hoodie.record.merge.mode": "CUSTOM"}, "hoodie.record.merge.mode", "CUSTOM"),
        (
            {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"},
            "hoodie.table.partial.update.mode",
            "IGNORE_DEFAULTS",
        ),
        ({"hoodie.record.merge.property.x": "1"}, "hoodie.record.merge.property.x", "1"),
        ({"hoodie.table.cdc.enabled": "true"}, "hoodie.table.cdc.enabled", "true"),
        ({"hoodie.populate.meta.fields": "false"}, "hoodie.populate.meta.fields", "false"),
        (
            {"hoodie.datasource.write.drop.partition.columns": "true"},
            "hoodie.datasource.write.drop.partition.columns",
            "true",
        ),
        ({"hoodie.table.base.file.format": "ORC"}, "hoodie.table.base.file.format", "ORC"),
        (
            {"hoodie.table.multiple.base.file.formats.enable": "true"},
            "hoodie.table.base.file.format",
            "PARQUET",
        ),
        ({"hoodie.bootstrap.base.path": "/x"}, "hoodie.bootstrap.base.path", "/x"),
        ({"hoodie.allow.operation.metadata.field": "true"}, "hoodie.allow.operation.metadata.field", "true"),
        (
            {"hoodie.table.metadata.partitions": "files,bloom_filters"},
            "hoodie.table.metadata.partitions",
            "bloom_filters",
        ),
        (
            {"hoodie.table.metadata.partitions": "files,secondary_index_x"},
            "hoodie.table.metadata.partitions",
            "secondary_index_x",
        ),
        (
            {"hoodie.table.metadata.partitions.inflight": "column_stats"},
            "hoodie.table.metadata.partitions.inflight",
            "column_stats",
        ),
    ],
)
def test_a_feature_that_we_would_break_is_named(properties, named, value):
    with pytest.raises(UnsupportedTableError) as caught:
        check(properties)
    assert (caught.value.property, caught.value.value) == (named, value)
    assert named in str(caught.value)
    assert caught.value.table == "t"


def test_a_history_of_the_schema_is_refused():
    newest = CommitMetadata(operation=OperationType.INSERT, extra={"latest_schema": '{"max_column_id": 3}'})
    with pytest.raises(UnsupportedTableError, match="history"):
        check({}, newest)


def test_buckets_and_slices_with_logs_are_refused():
    check_slices_writable((piece("12345678-883a-4f93-aea9-c8a47c0a4c4a-0", 1),), "t")
    with pytest.raises(UnsupportedTableError, match="bucket"):
        check_slices_writable((piece("00000012-883a-4f93-aea9-c8a47c0a4c4a-0", 1),), "t")
    # A UUID may look like a bucket by chance, its neighbours do not.
    by_chance = (
        piece("00062809-25c2-45f4-9532-cbed74cb4d54-0", 1),
        piece("a1b2c3d4-883a-4f93-aea9-c8a47c0a4c4a-0", 1),
    )
    check_slices_writable(by_chance, "t")
    with pytest.raises(UnsupportedTableError, match="log files"):
        check_slices_writable((piece("a", 1, log=True),), "t")


def empty_like(table):
    """One row of every column, all NULL but the keys."""
    return pa.Table.from_pylist([{}], schema=table.schema)


def tree(store):
    return {info.path: info.size_bytes for info in store.walk("") if ".locks" not in info.path}


REFUSED = {
    "v8_cow": "hoodie.table.version",
    "v9_cow_all_indexes": "hoodie.table.metadata.partitions",
    "v9_cow_cdc": "hoodie.table.cdc.enabled",
    "v9_cow_cdc_before": "hoodie.table.cdc.enabled",
    "v9_cow_cdc_insert_into_small_file": "hoodie.table.cdc.enabled",
    "v9_cow_cdc_keys_only": "hoodie.table.cdc.enabled",
    "v9_cow_drop_partition_columns": "hoodie.datasource.write.drop.partition.columns",
    "v9_cow_mdt_compacted": "hoodie.table.metadata.partitions",
    "v9_cow_partitioned_record_index": "hoodie.metadata.record.level.index.enable",
    "v9_cow_timestamp_key_millis": "hoodie.table.keygenerator.type",
    "v9_cow_timestamp_key_string": "hoodie.table.keygenerator.type",
    "v9_cow_virtual_keys": "hoodie.populate.meta.fields",
}
"""Tables of Spark with a feature that a write of ours would break, and the property that says so."""


@pytest.mark.parametrize(
    ("name", "named"), [(name, named) for name, named in REFUSED.items() if (TABLES / f"{name}.zip").exists()]
)
def test_tables_of_spark_that_we_would_break_are_left_as_they_are(tmp_path, name, named):
    store = LocalStore(str(unpack(name, tmp_path)))
    before = tree(store)
    table = HudiTable(store, load_table_config(store))
    changes = Changes(
        operation=OperationType.INSERT, inserts=empty_like(table).to_reader(), reads_nothing=True
    )
    with pytest.raises(UnsupportedTableError) as caught:
        table.commit(table.snapshot(), changes)
    assert caught.value.property == named
    assert tree(store) == before


def test_a_row_is_not_put_beside_buckets(tmp_path):
    store = LocalStore(str(unpack("v9_cow_bucket", tmp_path)))
    table = HudiTable(store, load_table_config(store))
    before = tree(store)
    row = table.snapshot().scan(table.schema.names).read_all().slice(0, 1)
    changes = Changes(operation=OperationType.INSERT, inserts=row.to_reader(), reads_nothing=True)
    with pytest.raises(UnsupportedTableError, match="bucket"):
        table.commit(table.snapshot(), changes)
    assert tree(store) == before


def test_rows_go_beside_a_pending_clustering_and_not_into_it(tmp_path):
    store = LocalStore(str(unpack("v9_cow_pending_clustering", tmp_path)))
    table = HudiTable(store, load_table_config(store))
    before = table.snapshot()
    rows = before.scan(table.schema.names).read_all()
    groups = {item.file_id for item in before.slices()}
    changes = Changes(
        operation=OperationType.INSERT, inserts=rows.slice(0, 1).to_reader(), reads_nothing=True
    )
    table.commit(before, changes, config=WriteConfig())
    after = table.snapshot()
    assert len({item.file_id for item in after.slices()} - groups) == 1
    assert after.scan(["_hoodie_record_key"]).read_all().num_rows == rows.num_rows + 1
    (pending,) = load_timeline(store, table.config).pending
    assert pending.action.value == "clustering"


# Those of schema on read are not even read, buckets and pending clusterings have tests of their own.
OTHERS = {"v9_cow_schema_on_read", "v9_cow_bucket", "v9_cow_pending_clustering"}
WRITABLE = sorted({path.stem for path in TABLES.glob("v9_cow*.zip")} - REFUSED.keys() - OTHERS)


@pytest.mark.parametrize("name", WRITABLE)
def test_the_other_tables_of_spark_can_be_deleted_from(tmp_path, name):
    """Delete one row by position; all others stay, and the metadata table still knows every file."""
    store = LocalStore(str(unpack(name, tmp_path)))
    table = HudiTable(store, load_table_config(store))
    snapshot = table.snapshot()
    slices = snapshot.slices()
    places = snapshot.scan_positions(["_hoodie_record_key"], slices=slices).read_all().to_pylist()
    gone = places[0]
    changes = Changes(
        operation=OperationType.DELETE,
        slices=(
            SliceChanges(
                slice=slices[gone[SLICE_COLUMN]],
                deleted=np.array([gone[POSITION_COLUMN]]),
                updated=np.array([], np.int64),
                values=pa.table({}),
            ),
        ),
    )
    columns = [column for column in snapshot.schema.names if column != "_hoodie_file_name"]
    before = snapshot.scan(columns).read_all().to_pylist()
    table.commit(snapshot, changes)
    after = table.snapshot().scan(columns).read_all().to_pylist()
    assert len(before) == expected(name)["snapshot"]["count"] == len(after) + 1
    texts = {repr(row) for row in after}  # NaN equals nothing, but its text does
    missing = [row for row in before if repr(row) not in texts]
    assert [row["_hoodie_record_key"] for row in missing] == [gone["_hoodie_record_key"]]
    check_consistent(store, after_crash=True, column=None)
    assert load_timeline(store, table.config).completed_writes[-1].action.value == "commit"
