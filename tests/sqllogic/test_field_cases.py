"""Small inputs that went wrong for people with readers and writers like ours, in both engines."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_sql
from hudi_sql.errors import (
    BindError,
    CardinalityError,
    ConstraintError,
    HudiSqlError,
    NullKeyError,
    SchemaError,
    UnsupportedTableError,
)
from hudi_sql.storage.fs.local import LocalStore
from tests.conftest import engines
from tests.table_writes import check_consistent

Make = Callable[..., hudi_sql.Session]

pytestmark = engines
ITEM = "id INT, name VARCHAR, price DOUBLE, ts BIGINT"
ITEM_ROWS = "(1, 'a', 1.0, 10), (2, 'b', 2.0, 10), (3, 'c', 3.0, 10)"


@pytest.fixture
def make(engine: str, tmp_path: Path) -> Iterator[Make]:
    """Makes a table `t` with rows in a new session, and looks at it after the test."""
    sessions = []

    def new(
        columns: str = ITEM,
        rows: str | None = ITEM_ROWS,
        *,
        key: str = "id",
        ordering: str = "",
        by: str = "",
        more: str = "",
        dialect: str | None = None,
    ) -> hudi_sql.Session:
        session = hudi_sql.connect(engine, **({} if dialect is None else {"dialect": dialect}))
        sessions.append(session)
        properties = [f"primaryKey = '{key}'"] if key else []
        properties += [f"orderingFields = '{ordering}'"] if ordering else []
        properties += [more] if more else []
        listed = f"TBLPROPERTIES ({', '.join(properties)})" if properties else ""
        partitioned = f"PARTITIONED BY ({by})" if by else ""
        session.sql(f"CREATE TABLE t ({columns}) USING hudi {listed} {partitioned} LOCATION '{tmp_path}/t'")
        if rows is not None:
            session.sql(f"INSERT INTO t VALUES {rows}")
        return session

    yield new
    first = None
    for session in sessions:
        if (tmp_path / "t" / ".hoodie").exists():
            names = session.sql("SELECT * FROM t").to_arrow_table().column_names
            first = next(name for name in names if not name.startswith("_hoodie"))
        session.close()
    if first is not None:
        check_consistent(LocalStore(str(tmp_path / "t")), column=first)


def rows(session: hudi_sql.Session, what: str = "*", where: str = "") -> list[tuple[Any, ...]]:
    if what == "*":
        what = ", ".join(
            f'"{name}"'
            for name in session.sql("SELECT * FROM t").to_arrow_table().column_names
            if not name.startswith("_hoodie")
        )
    found = session.sql(f"SELECT {what} FROM t {where}").fetchall()
    return sorted(found, key=repr)


def partitions(folder: Path) -> set[str]:
    return {
        str(path.parent.relative_to(folder / "t"))
        for path in (folder / "t").rglob("*.parquet")
        if ".hoodie" not in path.parts
    }


def test_letter_case_does_not_matter(make: Make) -> None:
    session = make('Id INT, "Name" VARCHAR', "(1, 'a')", key="Id")
    session.sql(
        "MERGE INTO t USING (SELECT 1 AS ID, 'z' AS name) s ON t.ID = s.id WHEN MATCHED THEN UPDATE SET NAME = s.name"
    )
    assert rows(session, "id, NAME") == [(1, "z")]
    stored = session.sql("SELECT * FROM t").to_arrow_table().column_names
    assert stored[-2:] == ["Id", "Name"] or stored[-2:] == ["id", "Name"]


def test_keys_of_other_types_match_by_value(make: Make) -> None:
    session = make("id BIGINT, v INT", "(1, 10)")
    for kind in ("INT", "SMALLINT", "DECIMAL(10, 0)"):
        session.sql(
            f"MERGE INTO t USING (SELECT CAST(1 AS {kind}) AS id, 11 AS v) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
    assert rows(session, "id, v, _hoodie_record_key") == [(1, 11, "1")]


def test_a_key_part_that_is_null_matches_itself(make: Make) -> None:
    session = make("k1 INT, k2 VARCHAR, v VARCHAR, n INT", "(1, NULL, 'a', 1)", key="k1,k2")
    for number, on in enumerate(("t.k2 = s.k2", "t.k2 = s.k2", "t.k2 IS NOT DISTINCT FROM s.k2"), start=2):
        session.sql(
            f"MERGE INTO t USING (SELECT 1 AS k1, CAST(NULL AS VARCHAR) AS k2, 'b' AS v, {number} AS n) s "
            f"ON t.k1 = s.k1 AND {on} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        assert rows(session, "k1, k2, v, n, _hoodie_record_key") == [
            (1, None, "b", number, "k1:1,k2:__null__")
        ]


def test_not_null_is_checked_on_what_is_written(make: Make) -> None:
    values = ", ".join(f"({number}, {number}, 'n')" for number in range(1, 101))
    session = make("id INT NOT NULL, v INT, note VARCHAR", values)
    session.sql(
        "MERGE INTO t USING (SELECT * FROM (VALUES (1, 0, 'x'), (101, 0, 'x')) AS q(id, v, note)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(session, "count(*), min(v)") == [(101, 0)]
    with pytest.raises((NullKeyError, ConstraintError), match="id"):
        session.sql(
            "MERGE INTO t USING (SELECT CAST(NULL AS INT) AS id, 1 AS v, 'x' AS note) s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT *"
        )


def test_several_matches_of_an_update_count_once_or_fail(make: Make) -> None:
    session = make()
    with pytest.raises(CardinalityError):
        session.sql(
            "UPDATE t SET price = t.price + s.d FROM (VALUES (1, 1.0), (1, 2.0)) AS s(id, d) WHERE t.id = s.id"
        )
    assert rows(session, "price", "WHERE id = 1") == [(1.0,)]


def test_a_write_of_no_rows_changes_nothing(make: Make) -> None:
    session = make()
    before = rows(session)
    assert session.sql("INSERT INTO t SELECT * FROM t WHERE false").write.instant is None
    assert rows(session) == before
    session.sql("INSERT INTO t VALUES (9, 'i', 9.0, 9)")
    assert len(rows(session)) == 4


def test_a_timestamp_in_the_key(make: Make) -> None:
    session = make(
        "id INT, at TIMESTAMP, v VARCHAR", "(1, TIMESTAMP '2026-03-01 10:00:00.5', 'a')", key="id,at"
    )
    session.sql(
        "MERGE INTO t USING (SELECT 1 AS id, TIMESTAMP '2026-03-01 10:00:00.5' AS at, 'b' AS v) s "
        "ON t.id = s.id AND t.at = s.at WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(session, "v, _hoodie_record_key") == [("b", "id:1,at:1772359200500000")]


def test_empty_and_null_key_parts_are_keys_of_their_own(make: Make) -> None:
    session = make("a VARCHAR, b VARCHAR", "('1', NULL), ('1', ''), (NULL, '1')", key="a,b")
    assert rows(session, "_hoodie_record_key") == [
        ("a:1,b:__empty__",),
        ("a:1,b:__null__",),
        ("a:__null__,b:1",),
    ]
    with pytest.raises(NullKeyError):
        session.sql("INSERT INTO t VALUES (NULL, NULL)")


def test_rows_without_keys_are_changed_where_they_are(make: Make) -> None:
    session = make("s VARCHAR, n INT", "('x', 1), ('x', 1)", key="")
    session.sql("UPDATE t SET n = 2 WHERE s = 'x'")
    assert rows(session) == [("x", 2), ("x", 2)]
    session.sql("MERGE INTO t USING (SELECT 'x' AS s) q ON t.s = q.s WHEN MATCHED THEN UPDATE SET n = 3")
    assert rows(session) == [("x", 3), ("x", 3)]
    session.sql("DELETE FROM t WHERE s = 'x'")
    assert rows(session) == []


def test_key_ranges_are_text(make: Make) -> None:
    session = make("id BIGINT, v INT", "(9, 0), (10, 0)", more="'hoodie.parquet.small.file.limit' = '0'")
    session.sql(f"INSERT INTO t VALUES {', '.join(f'({number}, 0)' for number in range(100, 111))}")
    session.sql(
        "MERGE INTO t USING (SELECT * FROM (VALUES (10, 1), (105, 1)) AS q(id, v)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(session, "count(*), sum(v)") == [(13, 2)]


@pytest.mark.parametrize("hive", ["true", "false"])
@pytest.mark.parametrize("encoded", ["true", "false"])
def test_special_characters_in_partition_values(make: Make, hive: str, encoded: str) -> None:
    values = ["a b", "a-b", "a=", "a%", "é", "a#b", "a?b", "a+b"]
    if encoded == "true":
        values += ["a/b", "a/", "a:b", "x%20y"]
    session = make(
        "id INT, p VARCHAR",
        ", ".join(f"({number}, '{value}')" for number, value in enumerate(values)),
        by="p",
        more=f"'hoodie.datasource.write.hive_style_partitioning' = '{hive}', "
        f"'hoodie.datasource.write.partitionpath.urlencode' = '{encoded}'",
    )
    assert {value for (value,) in rows(session, "p")} == set(values)
    for number, value in enumerate(values):
        assert rows(session, "id", f"WHERE p = '{value}'") == [(number,)]
    assert rows(session, "id", f"WHERE p IN ('{values[2]}', '{values[3]}', 'other')") == [(2,), (3,)]
    session.sql(f"DELETE FROM t WHERE p = '{values[-1]}'")
    assert rows(session, "count(*)") == [(len(values) - 1,)]
    for value in values[:-1]:
        assert rows(session, "p", f"WHERE p = '{value}'") == [(value,)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("DATE", "DATE '2026-03-01'"),
        ("INT", "5"),
        ("BOOLEAN", "true"),
        ("DECIMAL(10, 5)", "10.50000"),
        ("VARCHAR", "'x'"),
        ("TIMESTAMP", "TIMESTAMP '2026-03-01 10:00:00'"),
    ],
)
def test_null_in_a_partition_column(make: Make, tmp_path: Path, kind: str, value: str) -> None:
    session = make(f"id INT, p {kind}", f"(1, {value}), (2, NULL)", by="p")
    assert rows(session, "id", "WHERE p IS NULL") == [(2,)]
    assert rows(session, "id", f"WHERE p = {value}") == [(1,)]
    assert rows(session, "id", "WHERE p IS NOT NULL") == [(1,)]
    assert "p=__HIVE_DEFAULT_PARTITION__" in partitions(tmp_path)


def test_partition_fields_in_another_order_than_columns(make: Make, tmp_path: Path) -> None:
    session = make(
        "id INT, os VARCHAR, device VARCHAR, country VARCHAR",
        "(1, 'android', 'd1', 'us'), (2, 'ios', 'd1', 'us'), (3, 'android', 'd2', 'de')",
        by="country, device, os",
    )
    assert "country=us/device=d1/os=android" in partitions(tmp_path)
    assert rows(session, "id", "WHERE country = 'us' AND os = 'android'") == [(1,)]
    assert rows(session, "id, os, device, country", "WHERE id = 3") == [(3, "android", "d2", "de")]


def test_literals_of_another_type_than_the_partition(make: Make) -> None:
    session = make(
        "id INT, day DATE, yr INT", "(1, DATE '2026-03-01', 2026), (2, DATE '2026-02-28', 2025)", by="day, yr"
    )
    for condition in ("day = '2026-03-01'", "yr = 2026.0", "day > TIMESTAMP '2026-02-28 12:00:00'"):
        assert rows(session, "id", f"WHERE {condition}") == [(1,)]


def test_decimal_partitions(make: Make, tmp_path: Path) -> None:
    session = make("id INT, p DECIMAL(10, 2)", "(1, 10.50), (2, 10.00), (3, -0.10)", by="p")
    session.sql("INSERT INTO t VALUES (4, 10.5)")
    assert partitions(tmp_path) == {"p=10.50", "p=10.00", "p=-0.10"}
    assert rows(session, "p", "WHERE p = 10.5") == [(Decimal("10.50"),), (Decimal("10.50"),)]


def test_wider_decimals_are_rounded_or_refused(make: Make) -> None:
    session = make("id INT, v DECIMAL(10, 2)", "(1, 111.11)")
    session.sql("UPDATE t SET v = CAST(1.239 AS DECIMAL(10, 3))")
    assert rows(session, "v") == [(Decimal("1.24"),)]
    with pytest.raises(HudiSqlError):
        session.sql("UPDATE t SET v = CAST(123456789012.5 AS DECIMAL(20, 2))")
    assert rows(session, "v") == [(Decimal("1.24"),)]


def test_arrays_with_null_elements(make: Make, tmp_path: Path) -> None:
    session = make("id INT, xs VARCHAR[]", None)
    values = pa.table(
        {"id": pa.array([1, 2, 3, 4], pa.int32()), "xs": [["a", None], [], None, ["b"]]},
        schema=pa.schema([("id", pa.int32()), pa.field("xs", pa.list_(pa.field("l", pa.string())))]),
    )
    session.register("source", values)
    session.sql("INSERT INTO t SELECT * FROM source")
    session.sql("UPDATE t SET xs = xs WHERE id < 3")
    assert rows(session) == [(1, ["a", None]), (2, []), (3, None), (4, ["b"])]
    for path in (tmp_path / "t").glob("*.parquet"):
        names = {pq.ParquetFile(path).schema.column(n).path for n in range(7)}
        assert "xs.list.element" in names or "xs.array" in names


def test_not_a_number_hides_no_rows(make: Make) -> None:
    session = make("id INT, d DOUBLE, name VARCHAR", None, more="'hoodie.parquet.small.file.limit' = '0'")
    for part in range(4):
        ids = list(range(part * 100 + 1, part * 100 + 101))
        numbers = [float(number) for number in ids]
        if part == 2:
            numbers[50] = float("nan")
        session.register(
            "source", pa.table({"id": ids, "d": numbers, "name": [f"n{number}" for number in ids]})
        )
        session.sql("INSERT INTO t SELECT * FROM source")
    assert rows(session, "count(*)", "WHERE d > 250 AND d <= 400") == [(149,)]
    assert rows(session, "count(*)", "WHERE d < 0") == [(0,)]
    assert rows(session, "id", "WHERE name = 'n251'") == [(251,)]


def test_filters_over_columns_with_and_without_statistics(make: Make) -> None:
    columns = ", ".join(f"c{number} INT" for number in range(1, 41))
    values = ", ".join(["10"] * 39 + ["7"])
    session = make(f"id INT, {columns}", f"(1, {values})")
    for condition in ("c1 > 5 AND c40 = 7", "c1 > 50 OR c40 = 7", "c40 IS NOT NULL", "c40 > c39 OR c1 = 10"):
        assert rows(session, "id", f"WHERE {condition}") == [(1,)]
    assert rows(session, "id", "WHERE c40 IS NULL") == []


def test_a_partition_that_was_emptied_and_filled_again(make: Make) -> None:
    session = make("id INT, n INT, p VARCHAR", "(1, 1, 'p1'), (2, 9, 'p1'), (3, 5, 'p2')", by="p")
    session.sql("DELETE FROM t WHERE p = 'p1'")
    assert rows(session, "id") == [(3,)]
    session.sql("INSERT INTO t VALUES (4, 100, 'p1'), (5, 109, 'p1')")
    assert rows(session, "id", "WHERE n > 50") == [(4,), (5,)]
    assert rows(session, "id", "WHERE n < 50") == [(3,)]


def test_many_small_inserts_stay_in_one_file_group(make: Make, tmp_path: Path) -> None:
    session = make("id INT, p VARCHAR", None, by="p")
    for turn in range(12):
        session.sql(
            "INSERT INTO t VALUES "
            + ", ".join(f"({turn * 10 + number}, 'p{number % 4}')" for number in range(10))
        )
    assert rows(session, "count(*)") == [(120,)]
    groups = {path.name.split("_")[0] for path in (tmp_path / "t").rglob("*.parquet")}
    assert len(groups) == 4


def test_sums_are_stored_where_they_fit(make: Make, engine: str) -> None:
    session = make("id INT, n BIGINT", "(1, 5), (2, 6)")
    session.sql("INSERT INTO t SELECT 3, sum(n) FROM t")
    assert rows(session, "n", "WHERE id = 3") == [(11,)]
    if engine == "duckdb":
        with pytest.raises(HudiSqlError):
            session.sql("INSERT INTO t SELECT 4, 170141183460469231731687303715884105727::HUGEINT")


def test_types_that_hudi_does_not_have(make: Make, engine: str) -> None:
    session = make("id INT, s VARCHAR, d DATE, at TIMESTAMP", None)
    if engine == "duckdb":
        session.sql("INSERT INTO t SELECT 1, 'eeccb8c5-9943-b2bb-bb5e-222f4e14b687'::UUID, NULL, NULL")
        assert rows(session, "s") == [("eeccb8c5-9943-b2bb-bb5e-222f4e14b687",)]
        for value in (
            "NULL, 'infinity'::DATE, NULL",
            "NULL, NULL, 'infinity'::TIMESTAMP",
            "NULL, '20000-01-01'::DATE, NULL",
        ):
            with pytest.raises(ConstraintError, match="years 1 to 9999"):
                session.sql(f"INSERT INTO t SELECT 2, {value}")
    for kind in ("TIME", "INTERVAL"):
        with pytest.raises((SchemaError, HudiSqlError)):
            session.sql(f"CREATE TABLE bad (id INT, x {kind}) USING hudi")


def test_far_times_survive(make: Make) -> None:
    far = "TIMESTAMP '9999-12-31 23:59:59.999999'"
    session = make("id INT, at TIMESTAMP, v INT", f"(1, {far}, 0), (2, TIMESTAMP '1600-01-01 00:00:00', 0)")
    session.sql("UPDATE t SET v = 1 WHERE at > TIMESTAMP '9000-01-01 00:00:00'")
    session.sql(
        f"MERGE INTO t USING (SELECT 3 AS id, {far} AS at, 1 AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    end = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
    assert rows(session, "id, v", f"WHERE at = {far}") == [(1, 1), (3, 1)]
    assert {value for (value,) in rows(session, "at")} == {end, dt.datetime(1600, 1, 1)}


def test_batches_that_differ_in_what_is_not_data(make: Make) -> None:
    session = make("id INT, v VARCHAR", "(1, 'a')")
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False), ("v", pa.string())], metadata={"k": "v"})
    batches = [
        pa.record_batch({"id": pa.array([], pa.int32()), "v": pa.array([], pa.string())}, schema=schema),
        pa.record_batch({"id": pa.array([1, 2], pa.int32()), "v": ["x", "y"]}, schema=schema),
    ]
    session.register("source", pa.RecordBatchReader.from_batches(schema, batches))
    session.sql(
        "MERGE INTO t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert rows(session) == [(1, "x"), (2, "y")]


def test_short_and_star_forms_of_merge(make: Make) -> None:
    session = make()
    source = "(SELECT 1 AS id, 9.0 AS price, 20 AS ts, 'x' AS extra, 'n' AS name)"
    session.sql(
        f"MERGE INTO t USING {source} s USING (id) WHEN MATCHED THEN UPDATE SET price = s.price, ts = s.ts"
    )
    assert rows(session, "*", "WHERE id = 1") == [(1, "a", 9.0, 20)]
    session.sql(f"MERGE INTO t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    assert rows(session, "*", "WHERE id = 1") == [(1, "n", 9.0, 20)]
    with pytest.raises(BindError, match="name"):
        session.sql("MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *")
    values = "(SELECT * FROM (VALUES (1, 'p', 7.0, 30), (8, 'q', 8.0, 30)) AS v(a, b, c, d))"
    session.sql(
        f"MERGE INTO t USING {values} s ON t.id = s.a WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT"
    )
    assert rows(session, "*", "WHERE ts = 30") == [(1, "p", 7.0, 30), (8, "q", 8.0, 30)]
    with pytest.raises(BindError, match="columns"):
        session.sql(f"MERGE INTO t USING {source} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT")


def test_columns_renamed_by_an_alias_prune_nothing_wrong(make: Make) -> None:
    session = make("id INT, n INT, p VARCHAR", "(1, 5, 'x'), (2, 6, 'y')", by="p")
    found = session.sql("SELECT a FROM t AS q(m1, m2, m3, m4, m5, a, id, b) WHERE id = 6").fetchall()
    assert found == [(2,)]


def test_names_that_only_one_side_has_a_row_for(make: Make) -> None:
    session = make()
    session.sql(
        "MERGE INTO t USING (SELECT 7 AS id, 'q' AS name, 7.0 AS price, 20 AS ts) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, name, price, ts) VALUES (id, name, price, ts) "
        "WHEN NOT MATCHED BY SOURCE AND ts < 15 THEN DELETE"
    )
    assert rows(session) == [(7, "q", 7.0, 20)]
    with pytest.raises(BindError, match="target"):
        session.sql(
            "MERGE INTO t USING (SELECT 8 AS id, 'q' AS name) s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, t.name)"
        )


def test_times_of_the_past_in_every_notation(make: Make) -> None:
    session = make()
    first = session.sql("UPDATE t SET price = 5.0 WHERE id = 1").write.instant
    session.sql("UPDATE t SET price = 6.0 WHERE id = 1")
    assert first is not None

    def price(as_of: str) -> list[tuple[Any, ...]]:
        return session.sql(f"SELECT price FROM t TIMESTAMP AS OF '{as_of}' WHERE id = 1").fetchall()

    moment = dt.datetime.strptime(first[:14], "%Y%m%d%H%M%S")
    assert price(first) == [(5.0,)]
    assert price(f"{moment:%Y-%m-%d %H:%M:%S}.{first[14:]}") == [(5.0,)]
    assert price("29990101000000000") == [(6.0,)]
    assert price("20000101000000000") == []


def test_floating_point_keys_are_refused(make: Make) -> None:
    with pytest.raises((UnsupportedTableError, SchemaError), match="floating"):
        make("id DOUBLE, v INT", "(0.0, 1)")
