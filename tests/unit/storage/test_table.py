from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import (
    ConflictError,
    ConstraintError,
    NullKeyError,
    TableExistsError,
    TableNotFoundError,
    TransientStorageError,
)
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.properties.kinds import TableType
from hudi_sql.storage.table import HudiTable
from hudi_sql.storage.timeline.read import read_commit
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.write.changes import Changes
from tests.faulty_store import FaultyStore
from tests.table_writes import (
    SCHEMA,
    change,
    check_consistent,
    insert,
    make_table,
    open_table,
    rows_of,
    values_by_listing,
    values_of,
)

SMALL_GROUPS = WriteConfig(auto_split=False, split_rows=4, small_file_limit_bytes=0, block_size_bytes=400)


@pytest.fixture
def local(tmp_path):
    return LocalStore(str(tmp_path / "t"))


@pytest.fixture
def memory():
    return MemoryStore(f"t{uuid.uuid4().hex}")


@pytest.fixture(params=["local", "memory"])
def store(request):
    return request.getfixturevalue(request.param)


def expected(ids, value="v"):
    return {number: f"{value}{number}" for number in ids}


def test_a_new_table_is_empty_and_can_be_opened(store):
    table = make_table(store)
    assert values_of(table) == {}
    assert table.schema.names == ["id", "v", "p"]
    assert open_table(store).config.name == "t"
    check_consistent(store)


def test_creating_twice_and_opening_nothing(tmp_path):
    location = str(tmp_path / "t")
    with pytest.raises(TableNotFoundError):
        HudiTable.open(location)
    HudiTable.create(location, schema=SCHEMA, name="t", record_key_fields=["id"])
    with pytest.raises(TableExistsError):
        HudiTable.create(location, schema=SCHEMA, name="t")
    assert HudiTable.open(location).schema == HudiTable.open(f"file:{location}").schema


@pytest.mark.parametrize("partitioned", [True, False])
@pytest.mark.parametrize("metadata", [True, False])
def test_insert_update_and_delete_round_trip(store, partitioned, metadata):
    settings = WriteConfig(metadata_enable=metadata)
    table = make_table(store, partitioned=partitioned, settings=settings)
    first = insert(table, rows_of(range(10)), settings=settings)
    assert (first.num_inserted, first.num_updated, first.num_deleted) == (10, 0, 0)
    second = change(table, updated=[1, 2], deleted=[3, 4], inserts=rows_of([20, 21], value="n"))
    assert (second.num_inserted, second.num_updated, second.num_deleted) == (2, 2, 2)
    want = expected(range(10)) | expected([1, 2], "u") | expected([20, 21], "n")
    del want[3], want[4]
    fresh = open_table(store)
    assert values_of(table) == values_of(fresh) == values_by_listing(store) == want
    assert values_of(fresh.snapshot(first.instant.value)) == expected(range(10))
    check_consistent(store)
    assert fresh.config.metadata_partitions == table.config.metadata_partitions
    assert bool(fresh.config.metadata_partitions) is metadata


def test_meta_columns_say_who_wrote_a_row(memory):
    table = make_table(memory)
    first = insert(table, rows_of(range(4)))
    second = change(table, updated=[0], inserts=rows_of([8]))
    rows = table.snapshot().scan().read_all()
    found = {row["id"]: row for row in rows.to_pylist()}
    assert found[0]["_hoodie_commit_time"] == found[8]["_hoodie_commit_time"] == str(second.instant)
    assert found[2]["_hoodie_commit_time"] == found[1]["_hoodie_commit_time"] == str(first.instant)
    assert {row["_hoodie_record_key"] for row in found.values()} == {"0", "1", "2", "3", "8"}
    assert {row["_hoodie_partition_path"] for row in found.values()} == {"p=p0", "p=p1"}
    assert len({row["_hoodie_commit_seqno"] for row in found.values()}) == len(found)
    for row in found.values():
        path = f"{row['_hoodie_partition_path']}/{row['_hoodie_file_name']}"
        assert memory.exists(path)
    assert {found[0]["_hoodie_file_name"]} == {found[2]["_hoodie_file_name"]}
    assert str(second.instant) in found[2]["_hoodie_file_name"]


def test_many_groups_and_row_groups(memory):
    table = make_table(memory)
    insert(table, rows_of(range(40), num_partitions=3), settings=SMALL_GROUPS)
    slices = table.snapshot().slices()
    assert len(slices) == 12
    result = change(table, updated=range(0, 40, 3), deleted=range(1, 40, 7), settings=SMALL_GROUPS)
    want = expected(range(40)) | expected(range(0, 40, 3), "u")
    for number in range(1, 40, 7):
        want.pop(number, None)
    assert values_of(table) == want
    assert result.num_deleted == len(range(1, 40, 7))
    check_consistent(memory)


def test_more_rows_than_a_batch(local):
    """Updates, deletes and inserts beyond 131,072 rows, in several batches and row groups."""
    table = make_table(local, partitioned=False)
    count = 300_000
    ids = np.arange(count)
    big = pa.table(
        {"id": ids, "v": pc.cast(pa.array(ids), pa.string()), "p": pa.repeat(pa.scalar("x"), count)},
        schema=SCHEMA,
    )
    reader = pa.RecordBatchReader.from_batches(SCHEMA, big.to_batches(max_chunksize=50_000))
    changes = Changes(operation=OperationType.INSERT, inserts=reader, reads_nothing=True)
    result = table.commit(table.snapshot(), changes)
    assert result.num_inserted == count
    updated = list(range(0, count, 1000))
    deleted = list(range(500, count, 1000))
    change(table, updated=updated, deleted=deleted)
    rows = table.snapshot().scan(["id", "v"]).read_all().sort_by("id")
    want = np.delete(ids, deleted)
    assert rows["id"].to_numpy().tolist() == want.tolist()
    texts = np.where(want % 1000 == 0, np.char.add("u", want.astype(str)), want.astype(str))
    assert rows["v"].to_pylist() == texts.tolist()
    check_consistent(local)


def test_rows_may_all_go_and_come_again(memory):
    table = make_table(memory)
    insert(table, rows_of(range(4)))
    change(table, deleted=range(4))
    assert values_of(table) == {}
    insert(table, rows_of(range(4), value="w"))
    assert values_of(table) == expected(range(4), "w")
    check_consistent(memory)


def test_nothing_to_do_makes_no_instant(memory):
    table = make_table(memory)
    result = insert(table, rows_of([]))
    assert result.instant is None
    assert load_timeline(memory, table.config).instants == ()


def test_nulls_go_through_updates(memory):
    table = make_table(memory)
    rows = pa.table({"id": [0, 2], "v": [None, "x"], "p": ["p0", "p0"]}, schema=SCHEMA)
    insert(table, rows)
    change(table, updated=[2], value="y")
    assert values_of(table) == {0: None, 2: "y2"}


def test_a_failing_source_leaves_no_trace(store):
    table = make_table(store)
    insert(table, rows_of(range(4)))
    before = values_of(table)

    def batches():
        yield rows_of(range(10, 14)).to_batches()[0]
        raise ZeroDivisionError

    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    changes = Changes(operation=OperationType.INSERT, inserts=reader, reads_nothing=True)
    with pytest.raises(ZeroDivisionError):
        table.commit(table.snapshot(), changes)
    assert values_of(open_table(store)) == before
    check_consistent(store)


@pytest.mark.parametrize(("ids", "error"), [([10, None], (NullKeyError, ConstraintError))])
def test_rows_that_break_a_rule_leave_no_trace(store, ids, error):
    table = make_table(store)
    insert(table, rows_of(range(4)))
    bad = pa.table({"id": ids, "v": ["a", "b"], "p": ["p0", "p1"]}, schema=SCHEMA)
    with pytest.raises(error):
        insert(table, bad)
    assert values_of(open_table(store)) == expected(range(4))
    check_consistent(store)


def test_a_stale_snapshot_is_a_conflict_and_the_retry_succeeds(store):
    one, two = make_table(store), open_table(store)
    insert(one, rows_of(range(6)))
    two.refresh()
    stale = two.snapshot()
    change(one, updated=[0], value="a")
    with pytest.raises(ConflictError):
        change(two, updated=[1], value="b", snapshot=stale)
    check_consistent(store)
    change(two, updated=[1], value="b")
    assert values_of(open_table(store)) == expected(range(6)) | {0: "a0", 1: "b1"}


def test_keys_that_another_writer_inserted_too_are_a_conflict(memory):
    one = make_table(memory)
    two = open_table(memory)
    stale = two.snapshot()
    insert(one, rows_of([1, 2]), keys_are_new=True)
    with pytest.raises(ConflictError):
        change(two, inserts=rows_of([1]), snapshot=stale)
    assert values_of(open_table(memory)) == expected([1, 2])


def test_small_files_are_filled_up(memory):
    table = make_table(memory)
    insert(table, rows_of(range(4)))
    groups = {item.file_id for item in table.snapshot().slices()}
    insert(table, rows_of(range(4, 8)))
    assert {item.file_id for item in table.snapshot().slices()} == groups
    insert(table, rows_of(range(8, 12)), settings=WriteConfig(small_file_limit_bytes=0))
    assert len(table.snapshot().slices()) == 4
    assert values_of(table) == expected(range(12))
    check_consistent(memory)


def test_commit_metadata_counts_what_was_done(memory):
    table = make_table(memory)
    insert(table, rows_of(range(6)))
    change(table, updated=[0], deleted=[2], inserts=rows_of([10]))
    newest = load_timeline(memory, table.config).latest_completed_write
    metadata = read_commit(memory, table.config, newest)
    (stat,) = metadata.write_stats
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (3, 1, 1, 1)
    assert stat.file_size_bytes == memory.info(stat.path).size_bytes
    assert stat.previous_base_file is not None
    assert metadata.operation is OperationType.UPSERT
    assert '"name":"id"' in metadata.schema_json.replace(" ", "")


def test_a_commit_stands_although_the_table_cannot_be_read_again_at_once(memory):
    make_table(memory)
    faulty = FaultyStore(memory)
    table = open_table(faulty)
    done = {"committed": False}

    def note(operation, path):
        done["committed"] |= (
            operation == "create" and path.startswith(".hoodie/timeline") and path.endswith(".commit")
        )

    def refuse(operation, path):
        if done["committed"] and path.endswith("hoodie.properties"):
            raise TransientStorageError("properties cannot be read")

    faulty.after = note
    faulty.check = refuse
    try:
        result = insert(table, rows_of(range(2)))
    finally:
        faulty.check = lambda operation, path: None
    assert result.instant is not None
    assert values_of(open_table(memory)) == expected(range(2))


def test_merge_on_read_tables_are_made_and_not_written(memory):
    table = make_table(memory, table_type=TableType.MERGE_ON_READ)
    with pytest.raises(Exception, match="Copy-on-Write"):
        insert(table, rows_of([1]))
    assert load_timeline(memory, table.config).instants == ()


def test_another_reader_sees_the_same_rows(local):
    hudi = pytest.importorskip("hudi")
    table = make_table(local)
    insert(table, rows_of(range(10), num_partitions=3))
    change(table, updated=[1, 2], deleted=[3], inserts=rows_of([30], num_partitions=3))
    batches = hudi.HudiTableBuilder.from_base_uri(local.root).build().read()
    rows = pa.Table.from_batches(batches)
    assert dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True)) == values_of(table)
