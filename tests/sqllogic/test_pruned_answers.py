"""What files and partitions are left out changes no answer: each condition over a table of many files and over the same
rows in memory."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_sql
from tests.conftest import engines

ROWS = pa.table(
    {
        "id": pa.array(range(60), pa.int32()),
        "n": pa.array(
            [None if number % 7 == 0 or number > 40 else number % 10 for number in range(60)], pa.int64()
        ),
        "name": [None if number < 20 else f"n{number % 12}" for number in range(60)],
        "price": [None if number % 5 == 0 else number / 4 for number in range(60)],
        "amount": [Decimal(number % 9).scaleb(-1) if number % 4 else None for number in range(60)],
        "day": [dt.date(2026, 1, 1 + number // 4) if number % 6 else None for number in range(60)],
        "stamp": pa.array(
            [dt.datetime(2026, 1, 1 + number // 4, number % 24, tzinfo=dt.UTC) for number in range(60)],
            pa.timestamp("us", "UTC"),
        ),
        "ok": [None if number % 8 == 0 else number % 3 == 0 for number in range(60)],
        "p": [None if number % 10 == 9 else f"p{number % 3}" for number in range(60)],
        "q": pa.array([None if number % 11 == 0 else number // 20 for number in range(60)], pa.int32()),
    }
).cast(
    pa.schema(
        [
            ("id", pa.int32()),
            ("n", pa.int64()),
            ("name", pa.string()),
            ("price", pa.float64()),
            ("amount", pa.decimal128(10, 2)),
            ("day", pa.date32()),
            ("stamp", pa.timestamp("us", "UTC")),
            ("ok", pa.bool_()),
            ("p", pa.string()),
            ("q", pa.int32()),
        ]
    )
)

CONDITIONS = [
    "{c} IS NULL",
    "{c} IS NOT NULL",
    "NOT ({c} IS NULL)",
    "NOT ({c} IS NOT NULL)",
    "{c} = {v}",
    "{c} <> {v}",
    "NOT ({c} = {v})",
    "{c} < {v}",
    "{c} >= {v}",
    "{v} < {c}",
    "{c} IS DISTINCT FROM {v}",
    "{c} IS NOT DISTINCT FROM {v}",
    "{c} IS NOT DISTINCT FROM NULL",
    "{c} IN ({v}, {w})",
    "{c} NOT IN ({v}, {w})",
    "{c} IN ({v}, NULL)",
    "{c} BETWEEN {v} AND {w}",
    "{c} NOT BETWEEN {v} AND {w}",
    "{c} BETWEEN {w} AND {v}",
    "{c} IS NULL OR {c} = {v}",
    "{c} IS NOT NULL AND {c} <> {v}",
    "({c} IS NOT NULL OR id = 5) AND q = 1",
    "coalesce({c}, {v}) = {v}",
    "CASE WHEN {c} IS NULL THEN true ELSE {c} = {v} END",
    "({c} = {v}) IS NOT TRUE",
    "({c} = {v}) IS TRUE",
    "({c} = {v}) IS NULL",
    "nullif({c}, {v}) IS NULL",
]
VALUES = {
    "id": ("7", "30"),
    "n": ("3", "8"),
    "name": ("'n3'", "'n7'"),
    "price": ("4.25", "9.0"),
    "amount": ("0.3", "0.70"),
    "day": ("DATE '2026-01-05'", "DATE '2026-01-11'"),
    "stamp": ("TIMESTAMP '2026-01-05 00:00:00'", "TIMESTAMP '2026-01-09 17:00:00'"),
    "ok": ("true", "false"),
    "p": ("'p1'", "'p2'"),
    "q": ("1", "2"),
}
OF_ENGINE = {
    "duckdb": ["CAST('n3xyz' AS VARCHAR(2)) <= name", "name = 'N3' COLLATE NOCASE", "n::VARCHAR = '3'"],
    "datafusion": ["CAST('n3xyz' AS VARCHAR(2)) <= name", "n::VARCHAR = '3'"],
    "spark": ["name <=> NULL", "n <=> 3", "NOT n <=> 3", "name RLIKE '3$'"],
}


@pytest.fixture(params=["own", "spark"])
def session(
    request: pytest.FixtureRequest, engine: str, tmp_path: Path
) -> Iterator[tuple[hudi_sql.Session, str]]:
    dialect = engine if request.param == "own" else "spark"
    with hudi_sql.connect(engine, dialect=dialect) as made:
        timestamp = "TIMESTAMP" if dialect == "spark" else "TIMESTAMPTZ"
        made.sql(
            f"CREATE TABLE t (id INT, n BIGINT, name STRING, price DOUBLE, amount DECIMAL(10, 2), day DATE, "
            f"stamp {timestamp}, ok BOOLEAN, p STRING, q INT) USING hudi TBLPROPERTIES (primaryKey = 'id', "
            f"'hoodie.parquet.small.file.limit' = '0') PARTITIONED BY (p, q) LOCATION '{tmp_path}/t'"
        )
        for start in range(0, 60, 20):
            made.register("part", ROWS.slice(start, 20))
            made.sql("INSERT INTO t SELECT * FROM part")
        made.register("memory", ROWS)
        yield made, dialect


@engines
def test_conditions(session: tuple[hudi_sql.Session, str]) -> None:
    made, dialect = session
    # All forms for some types; every type and dialect for the plain ones.
    is_long = dialect != "spark"
    conditions = [
        form.format(c=column, v=value, w=other)
        for column, (value, other) in VALUES.items()
        for form in (CONDITIONS if is_long and column in ("name", "n", "p", "q") else CONDITIONS[:12])
    ]
    wrong = []
    for condition in [*conditions, *OF_ENGINE[dialect]]:
        found = made.sql(f"SELECT id FROM t WHERE {condition}").to_arrow_table()["id"].to_pylist()
        want = made.sql(f"SELECT id FROM memory WHERE {condition}").to_arrow_table()["id"].to_pylist()
        if sorted(found) != sorted(want):
            wrong.append((condition, sorted(found), sorted(want)))
    assert wrong == []


@engines
@pytest.mark.parametrize("condition", ["p IS NOT NULL", "name IS NOT NULL AND n = 3", "q IS NOT NULL AND ok"])
def test_conditions_of_changes(session: tuple[hudi_sql.Session, str], condition: str) -> None:
    made, _ = session
    want = made.sql(f"SELECT count(*) FROM memory WHERE {condition}").fetchone()
    assert want is not None
    assert made.sql(f"UPDATE t SET price = -1.0 WHERE {condition}").write.num_updated_rows == want[0]
    assert made.sql(f"DELETE FROM t WHERE {condition}").write.num_deleted_rows == want[0]
