"""Ours and Spark's writes on one table, in turns; after each of them all readers see the same rows.

Each table has three partitions; the wide ones have every column type, several row groups in a file and three or more
file groups in a partition, and are loaded from more than 131,072 source rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_sql
from tests.conftest import engines
from tests.spark.checks import assert_same_everywhere, pending
from tests.spark.client import Spark
from tests.spark.data import NARROW_DDL, WIDE_DDL, Model, narrow_rows, wide_rows

WIDE = 140_000
NARROW = 3_000
SMALL_FILES = {
    "hoodie.parquet.max.file.size": str(2_500_000),
    "hoodie.parquet.small.file.limit": str(200_000),
    "hoodie.parquet.block.size": str(1_000_000),
    "hoodie.copyonwrite.record.size.estimate": "180",
}


@pytest.fixture
def session(engine: str) -> Iterator[hudi_sql.Session]:
    with hudi_sql.connect(engine=engine, dialect="spark") as session:
        yield session


def small_files(session: hudi_sql.Session) -> None:
    for key, value in SMALL_FILES.items():
        session.sql(f"SET {key}={value}")


def every_verb(session: hudi_sql.Session, model: Model, rows, *, ts: int, fresh: int, check) -> None:
    """UPDATE, DELETE, INSERT and MERGE over the table `t`, each followed by `check`.

    The metadata table is validated after the last one. `fresh` is the first of the ids that are not in the table yet; the model is kept in step.
    """
    ids = np.sort(model.rows["id"].to_numpy())
    update = ids[ids % 10 == 3]
    session.sql(f"UPDATE t SET name = 'updated', ts = {ts} WHERE id % 10 = 3")
    model.set(update, name=pa.scalar("updated"), ts=pa.scalar(ts))
    check(validate=False)

    gone = ids[ids % 10 == 4]
    session.sql("DELETE FROM t WHERE id % 10 = 4")
    model.delete(gone)
    check(validate=False)

    added = rows(np.arange(fresh, fresh + 90), ts)
    session.register("added", added)
    session.sql("INSERT INTO t SELECT * FROM added")
    model.upsert(added)
    check(validate=False)

    kept = np.setdiff1d(ids, gone)
    source = rows(np.concatenate([kept[::7], np.arange(fresh + 100, fresh + 200)]), ts + 1)
    dead = kept[::7][::5]
    flagged = source.append_column("gone", pc.is_in(source["id"], pa.array(dead)))
    session.register("changes", flagged)
    counts = session.sql(
        "MERGE INTO t USING changes s ON t.id = s.id AND t.part = s.part "
        "WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ).fetchone()
    model.upsert(source)
    model.delete(dead)
    assert counts[1:5] == (100, len(kept[::7]) - len(dead), len(dead), 0)
    check()


def spark_goes_on(
    spark: Spark, path: Path, scratch: Path, model: Model, rows, *, ts: int, fresh: int
) -> None:
    """Spark upserts by DataFrame and SQL, clusters and cleans."""
    ids = np.sort(model.rows["id"].to_numpy())
    source = rows(np.concatenate([ids[::11], np.arange(fresh, fresh + 50)]), ts)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.metadata.enable": "true",
    }
    spark.write(path, source, scratch, options)
    model.upsert(source)
    spark.sql(
        f"update t set name = 'spark', ts = {ts} where id = {ids[0]}",
        "call run_clustering(table => 't', op => 'scheduleAndExecute')",
        "call run_clean(table => 't', retain_commits => 1)",
        tables={"t": path},
    )
    model.set(ids[:1], name=pa.scalar("spark"), ts=pa.scalar(ts))


def file_groups(path: Path) -> dict[str, int]:
    """Distinct file ids in each partition folder."""
    return {
        folder.name: len({file.name.split("_")[0] for file in folder.glob("*.parquet")})
        for folder in path.iterdir()
        if folder.is_dir() and not folder.name.startswith(".")
    }


@engines
def test_ours_creates_a_wide_table_and_spark_goes_on(
    spark: Spark, session: hudi_sql.Session, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    small_files(session)
    session.sql(
        f"create table t ({WIDE_DDL}) using hudi tblproperties (type='cow', primaryKey='id', preCombineField='ts') "
        f"partitioned by (part) location '{path}'"
    )
    rows = wide_rows(np.arange(WIDE), 10)
    session.register("source", rows)
    assert session.sql("insert into t select * from source").fetchone()[1] == WIDE
    assert min(file_groups(path).values()) >= 3
    assert max(pq.read_metadata(file).num_row_groups for file in path.rglob("part=*/*.parquet")) > 1
    model = Model(rows)

    def check(*, validate: bool = True) -> None:
        assert_same_everywhere(spark, session, "t", path, tmp_path, model.rows, validate=validate)
        assert pending(path) == []

    check()
    every_verb(session, model, wide_rows, ts=20, fresh=WIDE, check=check)
    spark_goes_on(spark, path, tmp_path, model, wide_rows, ts=30, fresh=WIDE + 1000)
    check()
    every_verb(session, model, wide_rows, ts=40, fresh=WIDE + 2000, check=lambda **_: None)
    check()


@engines
def test_ours_creates_a_narrow_table_and_hudi_rs_reads_every_step(
    spark: Spark, session: hudi_sql.Session, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    session.sql(
        f"create table t ({NARROW_DDL}) using hudi tblproperties (type='cow', primaryKey='id', preCombineField='ts') "
        f"partitioned by (part) location '{path}'"
    )
    rows = narrow_rows(np.arange(NARROW), 10)
    session.register("source", rows)
    session.sql("insert into t select * from source")
    model = Model(rows)

    def check(*, validate: bool = True) -> None:
        assert_same_everywhere(
            spark, session, "t", path, tmp_path, model.rows, second_reader=True, validate=validate
        )

    check()
    every_verb(session, model, narrow_rows, ts=20, fresh=NARROW, check=check)
    spark_goes_on(spark, path, tmp_path, model, narrow_rows, ts=30, fresh=NARROW + 1000)
    check()
    every_verb(session, model, narrow_rows, ts=40, fresh=NARROW + 2000, check=check)


@engines
def test_spark_creates_a_wide_table_and_we_apply_every_verb(
    spark: Spark, session: hudi_sql.Session, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    rows = wide_rows(np.arange(WIDE), 10)
    pq.write_table(rows, tmp_path / "source.parquet")
    spark.sql(
        f"create table t ({WIDE_DDL}) using hudi tblproperties (type='cow', primaryKey='id', preCombineField='ts') "
        f"partitioned by (part) location '{path}'",
        f"insert into t select * from parquet.`{tmp_path}/source.parquet`",
        conf=SMALL_FILES,
    )
    small_files(session)
    session.sql(f"create table t using hudi location '{path}'")
    model = Model(rows)

    def check(*, validate: bool = True) -> None:
        assert_same_everywhere(spark, session, "t", path, tmp_path, model.rows, validate=validate)

    check()
    every_verb(session, model, wide_rows, ts=20, fresh=WIDE, check=check)
    spark_goes_on(spark, path, tmp_path, model, wide_rows, ts=30, fresh=WIDE + 1000)
    check()
    every_verb(session, model, wide_rows, ts=40, fresh=WIDE + 2000, check=lambda **_: None)
    check()


@engines
def test_spark_creates_a_narrow_table_and_hudi_rs_reads_every_step(
    spark: Spark, session: hudi_sql.Session, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    rows = narrow_rows(np.arange(NARROW), 10)
    pq.write_table(rows, tmp_path / "source.parquet")
    spark.sql(
        f"create table t ({NARROW_DDL}) using hudi tblproperties (type='cow', primaryKey='id', preCombineField='ts') "
        f"partitioned by (part) location '{path}'",
        f"insert into t select * from parquet.`{tmp_path}/source.parquet`",
    )
    session.sql(f"create table t using hudi location '{path}'")
    model = Model(rows)

    def check(*, validate: bool = True) -> None:
        assert_same_everywhere(
            spark, session, "t", path, tmp_path, model.rows, second_reader=True, validate=validate
        )

    check()
    every_verb(session, model, narrow_rows, ts=20, fresh=NARROW, check=check)
    spark_goes_on(spark, path, tmp_path, model, narrow_rows, ts=30, fresh=NARROW + 1000)
    check()
    every_verb(session, model, narrow_rows, ts=40, fresh=NARROW + 2000, check=check)


RECORD_INDEX = {"hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}


@engines
@pytest.mark.parametrize("dropped", [False, True], ids=["kept", "dropped-by-spark"])
def test_a_table_with_a_record_index(
    spark: Spark, session: hudi_sql.Session, tmp_path: Path, *, dropped: bool
) -> None:
    """We keep the index where the table has it, and go on without it where a default Spark writer dropped it."""
    path = tmp_path / "t"
    rows = narrow_rows(np.arange(NARROW), 10)
    pq.write_table(rows, tmp_path / "source.parquet")
    spark.sql(
        f"create table t ({NARROW_DDL}) using hudi tblproperties (type='cow', primaryKey='id', preCombineField='ts') "
        f"partitioned by (part) location '{path}'",
        f"insert into t select * from parquet.`{tmp_path}/source.parquet`",
        conf=RECORD_INDEX,
    )
    session.sql(f"create table t using hudi location '{path}'")
    model = Model(rows)

    def has_index() -> bool:
        properties = (path / ".hoodie" / "hoodie.properties").read_text()
        return any(
            "record_index" in line
            for line in properties.splitlines()
            if line.startswith("hoodie.table.metadata.partitions=")
        )

    def check(*, validate: bool = True) -> None:
        assert_same_everywhere(
            spark, session, "t", path, tmp_path, model.rows, second_reader=True, validate=validate
        )

    assert has_index()
    every_verb(session, model, narrow_rows, ts=20, fresh=NARROW, check=check)
    assert has_index(), "a write leaves the metadata partitions as it found them"
    if dropped:
        spark.sql("update t set name = 'plain', ts = 25 where id = 1", tables={"t": path})
        model.set(np.array([1]), name=pa.scalar("plain"), ts=pa.scalar(25))
        assert not has_index()
    else:
        # Spark must find our keys through our index: an upsert of them all makes no second row.
        again = narrow_rows(np.sort(model.rows["id"].to_numpy()), 25)
        options = {
            **RECORD_INDEX,
            "hoodie.table.name": "t",
            "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "part",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
        }
        spark.write(path, again, tmp_path, options)
        model.upsert(again)
    check()
    every_verb(session, model, narrow_rows, ts=40, fresh=NARROW + 2000, check=check)


@engines
@pytest.mark.parametrize(
    ("properties", "partitioned"),
    [
        ("primaryKey='id'", False),
        ("primaryKey='id,name'", True),
        ("type='cow'", False),
        ("primaryKey='id', preCombineField='ts', 'hoodie.metadata.enable'='false'", True),
        ("primaryKey='id', 'hoodie.datasource.write.hive_style_partitioning'='false'", True),
        ("primaryKey='id', 'hoodie.datasource.write.partitionpath.urlencode'='true'", True),
    ],
    ids=[
        "no-partitions",
        "composite-key",
        "no-key",
        "no-metadata-table",
        "bare-partitions",
        "encoded-partitions",
    ],
)
def test_kinds_of_tables(
    spark: Spark, session: hudi_sql.Session, tmp_path: Path, properties: str, *, partitioned: bool
) -> None:
    """Key generators, merge modes and partition styles: ours, then Spark's statement, then ours again."""
    path = tmp_path / "t"
    by = "partitioned by (part)" if partitioned else ""
    session.sql(
        f"create table t ({NARROW_DDL}) using hudi tblproperties ({properties}) {by} location '{path}'"
    )
    rows = narrow_rows(np.arange(300), 10)
    rows = rows.set_column(1, "name", pa.array([f"n{i}" for i in range(300)]))
    # Hadoop takes a colon for the end of a scheme, unless it is escaped; Spark takes what is before = for a name.
    suffix = " a=b%:é" if "urlencode" in properties else " ab%é" if "hive_style" in properties else " a=b%é"
    odd = pc.binary_join_element_wise(rows["part"], pa.scalar(suffix), "")
    rows = rows.set_column(5, "part", odd)
    session.register("source", rows)
    session.sql("insert into t select * from source")
    model = Model(rows)
    metadata = "hoodie.metadata.enable" not in properties

    def check(*, validate: bool = True) -> None:
        assert_same_everywhere(
            spark,
            session,
            "t",
            path,
            tmp_path,
            model.rows,
            second_reader=True,
            validate=metadata and validate,
        )

    check()
    session.sql("update t set price = 1.0, ts = 20 where id < 50")
    model.set(np.arange(50), price=pa.scalar(1.0), ts=pa.scalar(20))
    check()
    spark.sql(
        "update t set price = 2.0, ts = 30 where id between 25 and 75",
        tables={"t": path},
        conf={"hoodie.metadata.enable": str(metadata).lower()},
    )
    model.set(np.arange(25, 76), price=pa.scalar(2.0), ts=pa.scalar(30))
    check()
    session.sql(
        "merge into t using (select id, 3.0D as price, 40L as ts from t where id >= 60 and id < 90) s on t.id = s.id "
        "when matched and s.id < 70 then delete when matched then update set price = s.price, ts = s.ts"
    )
    model.delete(np.arange(60, 70))
    model.set(np.arange(70, 90), price=pa.scalar(3.0), ts=pa.scalar(40))
    check()
    spark.sql(
        "delete from t where id < 10",
        tables={"t": path},
        conf={"hoodie.metadata.enable": str(metadata).lower()},
    )
    model.delete(np.arange(10))
    check()
