from __future__ import annotations

import uuid

import pytest

import hudi_sql
from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import ConflictError
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.metadata.slices import METADATA_FOLDER
from hudi_sql.storage.properties.kinds import TimelineZone
from hudi_sql.storage.properties.table_config import load_table_config
from tests.conftest import engines
from tests.table_writes import change, check_consistent, insert, make_table, open_table, rows_of, values_of

WITHOUT = WriteConfig(metadata_enable=False)
ALL = {"files", "column_stats", "partition_stats"}


@pytest.fixture(params=["memory", "local"])
def store(request, tmp_path):
    if request.param == "memory":
        return MemoryStore(f"t{uuid.uuid4().hex}")
    return LocalStore(str(tmp_path / "t"))


def test_the_first_write_makes_it(store):
    make_table(store, settings=WITHOUT)
    assert not load_table_config(store).metadata_partitions
    insert(open_table(store), rows_of(range(4)))
    assert load_table_config(store).metadata_partitions == ALL
    check_consistent(store)
    change(open_table(store), updated=[1], deleted=[2], inserts=rows_of([9]))
    check_consistent(store)
    assert values_of(open_table(store)) == {0: "v0", 1: "u1", 3: "v3", 9: "v9"}


def test_a_table_that_was_written_without_stays_without(store):
    make_table(store, settings=WITHOUT)
    insert(open_table(store), rows_of(range(4)), settings=WITHOUT)
    insert(open_table(store), rows_of([9]))
    assert not load_table_config(store).metadata_partitions
    assert not store.exists(f"{METADATA_FOLDER}/hoodie.properties")
    check_consistent(store)


def test_what_writes_nothing_makes_nothing(store):
    make_table(store, settings=WITHOUT)
    insert(open_table(store), rows_of([]))
    assert not load_table_config(store).metadata_partitions


def test_two_first_writers(store):
    make_table(store, settings=WITHOUT)
    first, second = open_table(store), open_table(store)
    snapshot = second.snapshot()
    assert not snapshot.slices()
    insert(first, rows_of([1]))
    with pytest.raises(ConflictError, match="properties"):
        change(second, inserts=rows_of([2]), snapshot=snapshot)
    insert(second, rows_of([2]))
    check_consistent(store)
    assert values_of(open_table(store)) == {1: "v1", 2: "v2"}


@engines
def test_a_table_of_the_spark_dialect_is_what_spark_would_make(engine, tmp_path):
    with hudi_sql.connect(engine, dialect="spark") as session:
        session.sql(
            f"CREATE TABLE t (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey='id') LOCATION '{tmp_path}/t'"
        )
        store = LocalStore(str(tmp_path / "t"))
        config = load_table_config(store)
        assert "hoodie.table.timeline.timezone" not in config.raw
        assert config.timeline_zone is TimelineZone.LOCAL
        assert not config.metadata_partitions
        session.sql("INSERT INTO t VALUES (1, 'a')")
        assert load_table_config(store).metadata_partitions == {"files", "column_stats"}
        assert session.sql("SELECT id, v FROM t").fetchall() == [(1, "a")]
    check_consistent(store)
