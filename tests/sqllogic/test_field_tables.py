"""Small inputs that went wrong for users of lake tables: filters, indexes, tables of others. FC numbers are those cases."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_sql.errors import HudiSqlError
from tests.conftest import engines
from tests.golden_tables import unpack

if TYPE_CHECKING:
    from tests.sqllogic.conftest import Lake

pytestmark = pytest.mark.slow

CONDITIONS = {
    "d": "d = 0.0 | d = -0.0 | d IN (0.0) | d IN (-0.0, 7.0) | d > 2.5 | d <= 0 | NOT (d > 2.5) | d IS NOT NULL",
    None: """n IN (NULL) | n NOT IN (NULL) | NOT (n IN (NULL)) | n IN (1, NULL) | s IN (NULL) | n = NULL | NULL | d > 2.5
m = 1.50 | m > 1.5 | m >= 1.50 | m IN (1.5, 12345678.90) | m > 12345678.90 | m < 1.50 | m = 2 | m < 12345678.90
s = '' | s > 'Z' | s IN ('a', NULL) | s LIKE 'a%' | gone IS NOT NULL | gone = 1 | NOT (gone = 1) | gone IN (NULL)""",
}


@engines
@pytest.mark.parametrize("partition", CONDITIONS)
def test_pruning_gives_the_rows_of_a_full_read(lake: Lake, partition: str | None) -> None:
    # FC-027, FC-030, FC-045: the same conditions as values, which nothing prunes, say which rows are right
    names = "id INT, n INT, m DECIMAL(10, 2), s VARCHAR, gone INT, d DOUBLE"
    lake.create("t", names, partition=partition)
    lake.session.sql("SET hoodie.parquet.small.file.limit=0")
    doubles = [0.0, -0.0, float("nan"), 7.0, None, 2.5]
    texts = ["a", "b", "", "😀", "\ue000", None]
    decimals = [Decimal("1.50"), Decimal("12345678.90"), None, Decimal("2.00")]
    for start in (0, 8, 16):
        ids = range(start, start + 8)
        rows = {
            "id": pa.array(ids, pa.int32()),
            "n": pa.array([None if start == 16 else i % 7 for i in ids], pa.int32()),
            "m": pa.array([decimals[i // 2 % 4] for i in ids], pa.decimal128(10, 2)),
            "s": [texts[i // 3 % 6] for i in ids],
            "gone": pa.nulls(8, pa.int32()),
            "d": [doubles[i // 2 % 6] for i in ids],
        }
        lake.session.register("part", pa.table(rows))
        lake.run("INSERT INTO t SELECT * FROM part")
        lake.session.unregister("part")
    conditions = [text.strip() for text in CONDITIONS[partition].replace("\n", "|").split("|")]
    flags = ", ".join(f"({text}) AS c{number}" for number, text in enumerate(conditions))
    whole = lake.session.sql(f"SELECT id, {flags} FROM t").to_arrow_table().to_pydict()
    for number, text in enumerate(conditions):
        wanted = sorted(i for i, flag in zip(whole["id"], whole[f"c{number}"], strict=True) if flag)
        assert sorted(row[0] for row in lake.rows(f"SELECT id FROM t WHERE {text}")) == wanted, text
    for text in ("n IN (NULL)", "NOT (s IN (NULL))", "d IN (0.0)"):
        [(count,)] = lake.rows(f"SELECT count(*) FROM t WHERE {text}")
        assert lake.run(f"DELETE FROM t WHERE {text}") == (0, 0, count, 0), text


@engines
@pytest.mark.parametrize("keeps_property", [True, False])
def test_a_metadata_table_that_was_deleted_hides_no_rows(lake: Lake, keeps_property: bool) -> None:
    # FC-048: absent means that folders are listed; listed in the properties and absent is said aloud
    location = lake.visit()
    lake.run("INSERT INTO visit VALUES (4,DATE '2026-01-01',8,10,'p3')")
    shutil.rmtree(location / ".hoodie" / "metadata")
    query = "SELECT id FROM visit WHERE n > 0 ORDER BY id"
    if keeps_property:
        try:
            assert lake.rows(query) == [(1,), (2,), (3,), (4,)]
        except HudiSqlError:
            lake.names.remove("visit")
            lake.fails(HudiSqlError, "DELETE FROM visit WHERE id = 1")
        return
    properties = location / ".hoodie" / "hoodie.properties"
    gone = ("hoodie.table.metadata.partitions", "hoodie.table.checksum")
    lines = [line for line in properties.read_text().splitlines() if not line.startswith(gone)]
    properties.write_text("\n".join(lines) + "\n")
    assert lake.rows(query) == [(1,), (2,), (3,), (4,)]
    lake.run("INSERT INTO visit VALUES (5,DATE '2026-01-01',9,10,'p1')")
    assert lake.rows(query) == [(1,), (2,), (3,), (4,), (5,)]


@engines
def test_a_file_that_no_commit_made_is_no_row(lake: Lake) -> None:
    # FC-051, FC-061
    location = lake.item()
    [base] = location.glob("*.parquet")
    shutil.copy(base, location / "part-00000-abc.snappy.parquet")
    shutil.copy(base, location / f"{base.name.split('_')[0]}_9-9-9_20990101000000000.parquet")
    for _ in range(2):
        assert lake.rows("SELECT count(*) FROM item") == [(3,)]
        assert lake.run("UPDATE item SET name = 'x' WHERE id = 1") == (0, 1, 0, 0)
    # The check after the test counts every file of the folder.
    lake.names.remove("item")


@engines
def test_timestamps_of_96_bits_keep_their_instants(lake: Lake) -> None:
    # FC-068
    lake.session.sql("SET hoodie.metadata.enable=false")
    location = lake.create("t", "id INT, v INT, at TIMESTAMPTZ")
    moments = [
        dt.datetime(1900, 1, 1),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        dt.datetime(2026, 3, 1, 10),
    ]
    numbers = pa.array([1, 2, 3], pa.int32())
    source = pa.table({"id": numbers, "v": numbers, "at": pa.array(moments, pa.timestamp("us", "UTC"))})
    lake.session.register("source", source)
    lake.run("INSERT INTO t SELECT * FROM source")
    [base] = location.glob("*.parquet")
    file = pq.ParquetFile(base)
    footer = {key: value for key, value in file.metadata.metadata.items() if key != b"ARROW:schema"}
    table = file.read().replace_schema_metadata(footer)
    file.close()
    pq.write_table(table, base, use_deprecated_int96_timestamps=True, store_schema=False)
    assert pq.ParquetFile(base).schema.column(7).physical_type == "INT96"
    assert lake.rows("SELECT count(*) FROM t WHERE at < TIMESTAMPTZ '1950-01-01 00:00:00+00'") == [(1,)]
    merge = (
        "MERGE INTO t USING (SELECT 3 AS id, 5 AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    )
    assert lake.run(merge) == (0, 1, 0, 0)
    newest = max(location.glob("*.parquet"), key=lambda path: path.name.split("_")[-1])
    assert pq.ParquetFile(newest).schema.column(7).physical_type == "INT64"
    stored = lake.session.table("t").snapshot().scan(["at"]).read_all()["at"].to_pylist()
    assert sorted(str(value) for value in stored) == sorted(f"{moment}+00:00" for moment in moments)


@engines
@pytest.mark.parametrize(
    "name", ["v9_cow_complex_key", "v9_cow_complex_key_no_partition", "v9_cow_upper_names"]
)
def test_keys_of_sparks_tables_are_found_and_kept(lake: Lake, name: str, tmp_path: Path) -> None:
    # FC-016, FC-018, FC-006: a MERGE of a table into itself updates every row and inserts none
    root = unpack(name, tmp_path)
    lake.session.sql(f"CREATE TABLE golden USING hudi LOCATION '{root}'")
    query = "SELECT _hoodie_record_key, _hoodie_partition_path FROM golden ORDER BY 1, 2"
    keys = lake.rows(query)
    config = lake.session.table("golden").config
    on = " AND ".join(
        f"t.{field} = s.{field}" for field in (*config.record_key_fields, *config.partition_fields)
    )
    merge = f"MERGE INTO golden t USING golden s ON {on} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    assert lake.run(merge) == (0, len(keys), 0, 0)
    assert lake.rows(query) == keys
