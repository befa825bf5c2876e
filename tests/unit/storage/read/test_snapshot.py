"""Snapshots of tables whose timeline is made by hand."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import (
    BindError,
    CorruptTableError,
    ObjectNotFoundError,
    SchemaError,
    UnsupportedTableError,
)
from hudi_sql.storage.avro.payloads import encode_commit_metadata
from hudi_sql.storage.base_file.writer import BaseFileWriter
from hudi_sql.storage.file_system_view import StoreLister
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.model.commit import CommitMetadata, OperationType
from hudi_sql.storage.properties.table_config import parse_table_config
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN
from hudi_sql.storage.read.predicate import And, Compare, CompareOp, IsNull
from hudi_sql.storage.read.snapshot import Snapshot, SnapshotRelation
from hudi_sql.storage.schema.avro_arrow import avro_schema_from_arrow, list_of
from hudi_sql.storage.schema.meta_columns import META_COLUMNS
from hudi_sql.storage.timeline.timeline import load_timeline
from tests.unit.storage.base_file.files import NAME, with_meta, write, write_foreign

INSTANT = "20240101000000000"
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("day", pa.date32())])
SMALL = WriteConfig(block_size_bytes=1)


class Table:
    """A table folder that tests put files and commits into."""

    def __init__(self, uri, schema=SCHEMA, **properties):
        self.store = open_store(uri)
        self.schema = schema
        self.properties = {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.timeline.timezone": "UTC",
            **properties,
        }

    def commit(self, instant=INSTANT, schema="own", operation=OperationType.INSERT, **extra):
        text = avro_schema_from_arrow(self.schema, "t") if schema == "own" else schema
        metadata = CommitMetadata(operation=operation, extra={"schema": text, **extra})
        self.store.create(f".hoodie/timeline/{instant}_{instant}.commit", encode_commit_metadata(metadata))

    def file(self, rows, partition="", number=0, instant=INSTANT, **options):
        name = f"f{number}-0_0-0-0_{instant}.parquet"
        self.partition(partition)
        batches = rows if isinstance(rows, list) else [rows]
        return write(self.store, batches, partition=partition, name=name, **options)

    def partition(self, partition):
        folder = f"{partition}/" if partition else ""
        self.store.put(f"{folder}.hoodie_partition_metadata", b"")

    def snapshot(self, statistics=None):
        config = parse_table_config(self.properties)
        timeline = load_timeline(self.store, config)
        return Snapshot.load(
            self.store, config, timeline, lister=StoreLister(self.store), statistics=statistics
        )


def rows(start, stop, schema=SCHEMA, day=dt.date(2026, 3, 1)):
    ids = np.arange(start, stop)
    columns = {"id": pa.array(ids), "v": pa.array(ids / 2), "day": pa.repeat(day, stop - start)}
    return pa.record_batch(
        [columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema
    )


@pytest.fixture(params=["local", "memory"])
def table(request, tmp_path):
    made = Table(str(tmp_path / "t") if request.param == "local" else f"memory://{tmp_path.name}")
    made.commit()
    return made


def test_scan_filters_exactly_and_projects(table):
    table.file([rows(0, 50), rows(50, 100)], number=1, settings=SMALL)
    table.file([rows(100, 150)], number=2)
    snapshot = table.snapshot()
    assert snapshot.schema.names == [*META_COLUMNS, *SCHEMA.names]
    assert snapshot.table_schema == SCHEMA
    found = snapshot.scan(["v", "id"], (pc.field("id") > 97) & (pc.field("v") < 51)).read_all()
    assert found.column_names == ["v", "id"]
    assert found["id"].to_pylist() == [98, 99, 100, 101]
    assert snapshot.scan().read_all().num_rows == 150


def test_predicate_on_columns_that_are_not_asked_for(table):
    table.file([rows(0, 10)])
    reader = table.snapshot().scan([], pc.field("id") >= 7)
    assert reader.schema.names == []
    assert sum(batch.num_rows for batch in reader) == 3
    found = table.snapshot().scan(["v"], pc.field("_hoodie_record_key") == "4").read_all()
    assert found.to_pydict() == {"v": [2.0]}


def test_positions_name_slice_and_row_under_row_group_pruning(table):
    table.file([rows(n * 10, n * 10 + 10) for n in range(6)], number=1, settings=SMALL)
    table.file([rows(100, 130)], number=2)
    snapshot = table.snapshot()
    slices = snapshot.slices()
    for predicate in (None, pc.field("id").isin([5, 33, 41, 129]), pc.field("v") > 20):
        found = snapshot.scan_positions(["id"], slices=slices, predicate=predicate).read_all()
        wanted = snapshot.scan(["id"], predicate).read_all()
        assert sorted(found["id"].to_pylist()) == sorted(wanted["id"].to_pylist())
        for identity, index, position in zip(
            *(found[name].to_pylist() for name in found.column_names), strict=True
        ):
            assert identity == (position if "f1" in slices[index].base_file.name else 100 + position)
    assert found.schema.field(SLICE_COLUMN).type == pa.int32()
    assert found.schema.field(POSITION_COLUMN).type == pa.int64()
    one = snapshot.scan_positions([], slices=slices[1:], predicate=pc.field("id") == 107).read_all()
    assert one.to_pydict() == {SLICE_COLUMN: [0], POSITION_COLUMN: [7]}


def test_files_of_an_older_schema_and_new_ones_in_one_scan(tmp_path):
    new = pa.schema(
        [
            ("id", pa.int64()),
            ("v", pa.float64()),
            ("day", pa.string()),
            ("xs", list_of(pa.string())),
            ("more", pa.int32()),
        ]
    )
    table = Table(str(tmp_path), new)
    table.commit()
    old_schema = pa.schema([("day", pa.date32()), ("v", pa.float32()), ("id", pa.int32())])
    old = rows(0, 10, old_schema)
    table.file([old], number=1)
    fresh = pa.RecordBatch.from_pylist(
        [{"id": 3000000000, "v": 1.5, "day": "x", "xs": ["a", None], "more": 1}], schema=new
    )
    table.file([fresh], number=2)
    snapshot = table.snapshot()
    found = snapshot.scan(new.names, pc.field("id") > 8).read_all()
    assert found.schema == new
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"id": 9, "v": 4.5, "day": "2026-03-01", "xs": None, "more": None},
        {"id": 3000000000, "v": 1.5, "day": "x", "xs": ["a", None], "more": 1},
    ]
    placed = snapshot.scan_positions(
        ["id"], slices=snapshot.slices(), predicate=pc.field("more").is_null()
    ).read_all()
    assert placed[POSITION_COLUMN].to_pylist() == list(range(10))


def test_file_that_is_narrower_than_the_table_allows_is_refused(tmp_path):
    table = Table(str(tmp_path), pa.schema([("id", pa.int32())]))
    table.commit()
    table.file([rows(0, 3, pa.schema([("id", pa.int64())]))])
    with pytest.raises(SchemaError, match="Column id"):
        table.snapshot().scan(["id"]).read_all()


HIVE = {"hoodie.table.partition.fields": "day", "hoodie.datasource.write.hive_style_partitioning": "true"}


def test_partitions_are_pruned_by_value(tmp_path):
    table = Table(str(tmp_path), **HIVE)
    table.commit()
    days = [dt.date(2026, 3, day) for day in (1, 2, 3)]
    for number, day in enumerate(days):
        table.file([rows(number * 10, number * 10 + 10, day=day)], f"day={day}", number)
    null = rows(90, 91).set_column(2, "day", pa.nulls(1, pa.date32()))
    table.file([null], "day=__HIVE_DEFAULT_PARTITION__", 7)
    snapshot = table.snapshot()

    def pruned(predicate):
        return [item.partition for item in snapshot.slices(predicate)]

    assert len(snapshot.slices()) == 4
    assert pruned(Compare(column="day", op=CompareOp.EQ, value=pa.scalar(days[1]))) == ["day=2026-03-02"]
    assert pruned(Compare(column="day", op=CompareOp.GE, value=pa.scalar(days[1]))) == [
        "day=2026-03-02",
        "day=2026-03-03",
    ]
    assert pruned(IsNull(column="day")) == ["day=__HIVE_DEFAULT_PARTITION__"]
    assert len(pruned(Compare(column="id", op=CompareOp.EQ, value=pa.scalar(5)))) == 4
    assert snapshot.scan(["id"], pc.field("day").is_null()).read_all()["id"].to_pylist() == [90]
    assert [item.partition for item in snapshot.slices_of_partition("day=2026-03-01")] == ["day=2026-03-01"]
    assert snapshot.slices_of_partition("day=1999-01-01") == ()
    assert snapshot.partition_values["day=2026-03-01"]["day"].as_py() == days[0]


class Ranges:
    """Statistics of `id` by file, as the metadata table would give them; remembers what it was asked."""

    def __init__(self, table, known):
        self.known = known
        self.asked = []

    def column_ranges(self, columns, partitions):
        self.asked.append((tuple(columns), None if partitions is None else tuple(partitions)))
        names = list(self.known)
        return pa.table(
            {
                "partition": [name.rpartition("/")[0] for name in names],
                "file_name": [name.rpartition("/")[2] for name in names],
                "num_values": pa.array([10] * len(names), pa.int64()),
                "min:id": pa.array([self.known[name][0] for name in names], pa.int64()),
                "max:id": pa.array([self.known[name][1] for name in names], pa.int64()),
                "nulls:id": pa.array([0] * len(names), pa.int64()),
            }
        )


def test_files_are_pruned_by_range_and_unknown_files_stay(tmp_path):
    table = Table(str(tmp_path), **HIVE)
    table.commit()
    known = {}
    for number in range(4):
        partition = f"day=2026-03-0{number % 2 + 1}"
        base, _ = table.file([rows(number * 10, number * 10 + 10)], partition, number)
        if number != 3:
            known[base.path] = (number * 10, number * 10 + 9)
    statistics = Ranges(table, known)
    snapshot = table.snapshot(statistics)
    by_id = Compare(column="id", op=CompareOp.EQ, value=pa.scalar(12))
    assert [item.file_id for item in snapshot.slices(by_id)] == ["f1-0", "f3-0"]
    assert statistics.asked == [(("id",), None)]
    by_day = Compare(column="day", op=CompareOp.EQ, value=pa.scalar(dt.date(2026, 3, 1)))
    assert snapshot.slices(And(parts=(by_id, by_day))) == ()
    assert statistics.asked[1] == (("day", "id"), ("day=2026-03-01",))


def test_columns_that_only_the_path_holds_are_filled_in(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("day", pa.date32())])
    table = Table(
        str(tmp_path),
        **HIVE,
        **{"hoodie.datasource.write.drop.partition.columns": "true"},
    )
    stated = schema.remove(2)
    table.properties["hoodie.table.create.schema"] = avro_schema_from_arrow(schema, "t")
    table.commit(schema=avro_schema_from_arrow(stated, "t"))
    table.file([rows(0, 3, stated)], "day=2026-03-01", 1)
    table.file([rows(5, 6, stated)], "day=__HIVE_DEFAULT_PARTITION__", 2)
    snapshot = table.snapshot()
    assert snapshot.table_schema == schema
    assert snapshot.file_schema.names == [*META_COLUMNS, "id", "v"]
    day = dt.date(2026, 3, 1)
    found = snapshot.scan(["day", "id"], pc.field("day") == pa.scalar(day)).read_all()
    assert found.to_pylist() == [{"day": day, "id": number} for number in range(3)]
    assert snapshot.scan(["id"], pc.field("day").is_null()).read_all()["id"].to_pylist() == [5]
    placed = snapshot.scan_positions(["day"], slices=snapshot.slices()).read_all()
    assert placed["day"].null_count == 1


def test_schema_is_that_of_the_newest_commit_that_states_one(table):
    wider = pa.schema([*SCHEMA, pa.field("more", pa.string())])
    table.commit("20240102000000000", avro_schema_from_arrow(wider, "t"))
    table.commit("20240103000000000", avro_schema_from_arrow(SCHEMA, "t"), OperationType.CLUSTER)
    table.commit("20240104000000000", "", OperationType.DELETE_PARTITION)
    snapshot = table.snapshot()
    assert snapshot.table_schema == wider
    assert snapshot.commit_schema_json == avro_schema_from_arrow(wider, "t")


def test_meta_columns_in_a_commit_schema_are_not_the_tables(tmp_path):
    table = Table(str(tmp_path))
    stated = avro_schema_from_arrow(
        pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *SCHEMA]), "t"
    )
    table.commit(schema=stated)
    snapshot = table.snapshot()
    assert snapshot.table_schema == SCHEMA
    assert snapshot.commit_schema_json == avro_schema_from_arrow(SCHEMA, "t")


def test_schema_as_created_then_of_a_data_file_then_none(tmp_path):
    table = Table(str(tmp_path))
    table.store.put(".hoodie/timeline/.keep", b"")
    with pytest.raises(SchemaError, match="no schema"):
        table.snapshot()
    table.properties["hoodie.table.create.schema"] = avro_schema_from_arrow(SCHEMA, "t")
    assert table.snapshot().table_schema == SCHEMA
    assert table.snapshot().scan().read_all().num_rows == 0
    del table.properties["hoodie.table.create.schema"]
    table.commit(schema="")
    table.file([rows(0, 2)])
    assert table.snapshot().table_schema == SCHEMA


def test_columns_that_go_by_ids_are_refused(tmp_path):
    table = Table(str(tmp_path))
    table.commit(latest_schema='{"max_column_id":1}')
    with pytest.raises(UnsupportedTableError) as caught:
        table.snapshot()
    assert caught.value.property == "hoodie.schema.on.read.enable"


def test_slices_with_logs_are_refused_when_read(table):
    table.file([rows(0, 2)])
    table.store.put(f".f0-0_{INSTANT}.log.1_0-0-0", b"x")
    snapshot = table.snapshot()
    assert len(snapshot.slices()) == 1
    for read in (snapshot.scan, lambda: snapshot.scan_positions(slices=snapshot.slices())):
        with pytest.raises(UnsupportedTableError) as caught:
            read()
        assert caught.value.value == "MERGE_ON_READ"


@pytest.mark.parametrize("has_footer", [True, False])
@pytest.mark.parametrize("prefix", ["", "id:"])
def test_complex_keys_of_one_field_follow_the_stored_ones(tmp_path, prefix, has_footer):
    table = Table(str(tmp_path), **{"hoodie.table.version": "8", "hoodie.table.keygenerator.type": "COMPLEX"})
    table.commit()
    batch = rows(7, 8)
    assert table.snapshot().key_generator.record_keys(batch).to_pylist() == ["id:7"]
    table.partition("")
    stored = with_meta(batch)
    stored = stored.set_column(2, META_COLUMNS[2], pa.array([f"{prefix}7"]))
    if has_footer:
        writer = BaseFileWriter(table.store, NAME, stored.schema, table_name="t")
        writer.write(stored)
        writer.close()
    else:
        write_foreign(table.store, pa.Table.from_batches([stored]))
    assert table.snapshot().key_generator.record_keys(batch).to_pylist() == [f"{prefix}7"]


def test_unknown_column_is_named(table):
    with pytest.raises(BindError, match="nowhere"):
        table.snapshot().scan(["id", "nowhere"])


def test_damaged_and_missing_files_have_typed_errors(table):
    base, _ = table.file([rows(0, 2)])
    snapshot = table.snapshot()
    slices = snapshot.slices()
    table.store.put(base.path, b"PAR1 and then nothing PAR1")
    with pytest.raises(CorruptTableError):
        snapshot.scan(["id"], slices=slices).read_all()
    table.store.delete(base.path)
    for reader in (snapshot.scan(["id"], slices=slices), snapshot.scan_positions(["id"], slices=slices)):
        with pytest.raises(ObjectNotFoundError):
            reader.read_all()


def test_foreign_file_without_meta_columns(table):
    table.partition("")
    plain = pa.Table.from_batches([rows(0, 2)])
    write_foreign(table.store, plain)
    found = table.snapshot().scan(["_hoodie_record_key", "id"]).read_all()
    assert found.to_pydict() == {"_hoodie_record_key": [None, None], "id": [0, 1]}


def test_relation_scans_any_number_of_times(table):
    table.file([rows(0, 20)], number=1)
    table.file([rows(20, 40)], number=2)
    snapshot = table.snapshot()
    whole = SnapshotRelation(snapshot)
    assert whole.schema == snapshot.schema
    for _ in range(2):
        assert whole.scan(["id"], pc.field("id") < 30).read_all().num_rows == 30
    one = SnapshotRelation(snapshot, snapshot.slices()[1:])
    assert one.scan(None, None).read_all().num_rows == 20


def test_many_files_are_scanned_in_portions(tmp_path):
    table = Table(f"memory://{tmp_path.name}", pa.schema([("id", pa.int64())]))
    table.commit()
    for number in range(70):
        table.file([rows(number, number + 1, table.schema)], number=number)
    snapshot = table.snapshot()
    assert sorted(snapshot.scan(["id"]).read_all()["id"].to_pylist()) == list(range(70))
    placed = snapshot.scan_positions(["id"], slices=snapshot.slices()).read_all()
    assert sorted(placed[SLICE_COLUMN].to_pylist()) == list(range(70))
