"""The checks of this folder can fail: each kind of fault, put into a sound table by hand, is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hudi_sql
from hudi_sql.storage.base_file.statistics import footer_ranges
from hudi_sql.storage.metadata.slices import MetadataFiles
from hudi_sql.storage.metadata.writer import MetadataChanges, write_metadata
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.timeline.clock import InstantClock
from hudi_sql.storage.timeline.timeline import load_timeline
from tests.spark.client import Spark, problems
from tests.spark.data import NARROW_DDL, differences, narrow_rows

RECORD_INDEX = {"hoodie.metadata.enable": "true", "hoodie.metadata.global.record.level.index.enable": "true"}


@pytest.fixture
def table(spark: Spark, tmp_path: Path):
    """A sound table with every metadata partition that we keep, changed once by us."""
    path = tmp_path / "t"
    pq.write_table(narrow_rows(np.arange(60), 10), tmp_path / "source.parquet")
    spark.sql(
        f"create table t ({NARROW_DDL}) using hudi tblproperties (type='cow', primaryKey='id', preCombineField='ts') "
        f"partitioned by (part) location '{path}'",
        f"insert into t select * from parquet.`{tmp_path}/source.parquet`",
        conf=RECORD_INDEX,
    )
    session = hudi_sql.connect(engine="duckdb", dialect="spark")
    session.sql(f"create table t using hudi location '{path}'")
    session.sql("update t set price = 0.5, ts = 20 where id < 30")
    assert problems(spark.validate(path)) == []
    return session.table("t")


def write_fault(table: hudi_sql.storage.table.HudiTable, **fault: object) -> None:
    """Write a deltacommit to the metadata table that says what is not so."""
    timeline = load_timeline(table.store, table.config)
    files = MetadataFiles.open(table.store, timeline)
    clock = InstantClock(table.config.timeline_zone)
    clock.observe(timeline.newest_time, files.timeline.newest_time)
    empty = pa.table({name: pa.array([], pa.string()) for name in ("key", "partition", "file_id")})
    changes = MetadataChanges(
        files={}, ranges={}, partition_ranges={}, indexed=empty, unindexed=pa.array([], pa.string())
    )
    instant: InstantTime = clock.next_instant()
    write_metadata(
        files,
        replace(changes, **fault),
        instant,
        partitions=table.config.metadata_partitions,
        zone=table.config.timeline_zone,
    )


def test_a_wrong_size_is_found(spark: Spark, table) -> None:
    base = table.snapshot().slices()[0].base_file
    write_fault(table, files={base.partition: {base.name: base.size_bytes + 1}})
    assert any(
        "bytes" in problem for problem in problems(spark.validate(table.location.removeprefix("file:")))
    )


def test_a_file_that_is_not_there_is_found(spark: Spark, table) -> None:
    base = table.snapshot().slices()[0].base_file
    other = ("1" if base.name[0] == "0" else "0") + base.name[1:]
    write_fault(table, files={base.partition: {other: 77}})
    assert any(
        "not on disk" in problem for problem in problems(spark.validate(table.location.removeprefix("file:")))
    )


def test_a_stale_statistic_is_found(spark: Spark, table) -> None:
    base = table.snapshot().slices()[0].base_file
    footer = pq.read_metadata(Path(table.location.removeprefix("file:")) / base.path)
    (price,) = footer_ranges(footer, table.snapshot().schema, ["price"])
    wrong = replace(price, maximum=pa.scalar(price.maximum.as_py() - 1, pa.float64()))
    write_fault(table, ranges={(base.partition, base.name): [wrong]})
    assert any(
        "column price" in problem
        for problem in problems(spark.validate(table.location.removeprefix("file:")))
    )


def test_a_stale_range_of_a_partition_is_found(spark: Spark, table) -> None:
    base = table.snapshot().slices()[0].base_file
    footer = pq.read_metadata(Path(table.location.removeprefix("file:")) / base.path)
    (price,) = footer_ranges(footer, table.snapshot().schema, ["price"])
    wrong = replace(price, minimum=pa.scalar(price.minimum.as_py() + 0.25, pa.float64()))
    write_fault(table, partition_ranges={base.partition: [wrong]})
    found = problems(spark.validate(table.location.removeprefix("file:")))
    assert any(problem.startswith("partition_stats") for problem in found)


def test_a_missing_key_of_the_index_is_found(spark: Spark, table) -> None:
    write_fault(table, unindexed=pa.array(["17"]))
    found = problems(spark.validate(table.location.removeprefix("file:")))
    assert any("record" in problem and "17" in problem for problem in found)


def test_a_lost_row_and_a_changed_value_are_found(spark: Spark, table, tmp_path) -> None:
    path = Path(table.location.removeprefix("file:"))
    expected = table.snapshot().scan().read_all()
    base = table.snapshot().slices()[0].base_file
    kept = pq.read_table(path / base.path)
    pq.write_table(kept.slice(1), path / base.path)
    theirs = spark.table(path, tmp_path, metadata=False)
    assert differences(expected, theirs, expected.column_names) == ["60 rows against 59"]
    index = kept.column_names.index("price")
    changed = kept.set_column(index, kept.schema.field("price"), pc.add(kept["price"], 1.0))
    pq.write_table(changed, path / base.path)
    theirs = spark.table(path, tmp_path, metadata=False)
    assert any(
        line.startswith("price of id") for line in differences(expected, theirs, expected.column_names)
    )
