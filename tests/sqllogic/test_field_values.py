"""Small inputs that went wrong for users of lake tables: values and their types. The FC numbers are those cases."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_sql.errors import ConstraintError, EngineFailureError, HudiSqlError, SchemaError, SqlSyntaxError
from tests.conftest import engines

if TYPE_CHECKING:
    from tests.sqllogic.conftest import Lake

pytestmark = pytest.mark.slow

BOTH = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


@engines
def test_values_that_do_not_fit_are_refused(lake: Lake) -> None:
    # FC-031, FC-032, FC-076, FC-079: columns keep their type, and no infinity or NaN becomes an integer
    lake.create("t", "id INT, v INT, n BIGINT, f DOUBLE, d DECIMAL(10, 2)", rows="(1, 1, 1, 1.5, 111.11)")
    kinds = (ConstraintError, EngineFailureError)
    for value in (
        "v = 3000000000",
        "v = 'x'",
        "v = 1 / 0",
        "v = CAST('nan' AS DOUBLE)",
        "n = CAST(1e30 AS DOUBLE)",
        "n = 9223372036854775808",
        "d = CAST('1e30' AS DECIMAL(38, 2))",
        "d = 100000000",
    ):
        lake.fails(kinds, f"UPDATE t SET {value}")
    big = pa.table({"id": [2], "v": [3_000_000_000], "n": [1], "f": [1.0], "d": [Decimal("1.00")]})
    lake.session.register("big", big)
    lake.fails(kinds, "INSERT INTO t SELECT * FROM big")
    lake.fails(kinds, f"MERGE INTO t USING big s ON t.id = s.id {BOTH}")
    assert lake.rows("SELECT id, v, n, f, d FROM t") == [(1, 1, 1, 1.5, Decimal("111.11"))]


@engines
def test_decimals_are_rounded_half_up(lake: Lake) -> None:
    # FC-032
    lake.create("t", "id INT, d DECIMAL(10, 2)", rows="(1, 111.11)")
    source = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "d": pa.array([Decimal("1.2390"), Decimal("1.2350"), Decimal("-1.2350")], pa.decimal128(20, 4)),
        }
    )
    lake.session.register("source", source)
    lake.run(f"MERGE INTO t USING source s ON t.id = s.id {BOTH}")
    found = lake.rows("SELECT d FROM t ORDER BY id")
    assert found == [(Decimal("1.24"),), (Decimal("1.24"),), (Decimal("-1.24"),)]


@engines
def test_the_engines_own_rules_of_division_and_casts(lake: Lake) -> None:
    # FC-079
    lake.create("t", "id INT, n INT, f DOUBLE, d DECIMAL(10, 2)", rows="(1, 0, 0, 0)")
    is_duckdb = lake.engine == "duckdb"
    lake.run("UPDATE t SET n = CAST(2.5 AS INT), f = 7 / 2, d = 7 / 2.0")
    wanted = (3, 3.5, Decimal("3.50")) if is_duckdb else (2, 3.0, Decimal("3.50"))
    assert lake.rows("SELECT n, f, d FROM t") == [wanted]


@engines
def test_sums_are_stored_when_they_fit(lake: Lake) -> None:
    # FC-076
    lake.create("t", "id INT, n BIGINT", rows="(1, 4000000000), (2, 4000000000)")
    lake.run("INSERT INTO t SELECT 3, sum(n) FROM t")
    assert lake.rows("SELECT n FROM t WHERE id = 3") == [(8_000_000_000,)]
    lake.run("UPDATE t SET n = 9223372036854775807 WHERE id < 3")
    if lake.engine == "duckdb":
        lake.fails(EngineFailureError, "INSERT INTO t SELECT 4, sum(n) FROM t")


@engines
def test_types_are_those_of_the_dialect(lake: Lake) -> None:
    # FC-077: FLOAT has 32 bits in both engines, DECIMAL alone what the engine says
    lake.create("t", "id INT, f FLOAT, r REAL, g DOUBLE, d DECIMAL, s VARCHAR(3), b SMALLINT")
    plain = pa.decimal128(18, 3) if lake.engine == "duckdb" else pa.decimal128(38, 10)
    kinds = lake.session.table("t").schema.types
    assert kinds == [pa.int32(), pa.float32(), pa.float32(), pa.float64(), plain, pa.string(), pa.int32()]
    lake.run("INSERT INTO t VALUES (1, 0.1, 0.1, 0.1, 1.5, 'abcd', 7)")
    assert lake.rows("SELECT count(*) FROM t WHERE f = CAST(0.1 AS FLOAT) AND CAST(g AS FLOAT) = f") == [(1,)]


@engines
def test_types_that_hudi_does_not_have_are_refused(lake: Lake) -> None:
    # FC-077
    for kind in ("TIME", "TIMETZ", "INTERVAL", "BIT", "UNION(a INT, b VARCHAR)"):
        with pytest.raises((SchemaError, SqlSyntaxError)):
            lake.create("t", f"id INT, x {kind}")
    assert lake.files() == []


@engines
def test_values_of_foreign_types_are_refused_before_anything_is_written(lake: Lake) -> None:
    # FC-077: infinity is no time, and an interval no number
    lake.create("t", "id INT, at TIMESTAMP, n BIGINT, s VARCHAR, xs INT[]", rows=None)
    lake.fails(HudiSqlError, "INSERT INTO t (id, n) VALUES (1, INTERVAL '1 day')")
    lake.fails(HudiSqlError, "INSERT INTO t (id, xs) VALUES (1, 'x')")
    if lake.engine == "duckdb":
        lake.fails(ConstraintError, "INSERT INTO t (id, at) VALUES (1, 'infinity')", "at")
        lake.run("INSERT INTO t (id, s) VALUES (1, '5f3759df-0000-0000-0000-000000000000'::UUID)")
        lake.run("INSERT INTO t (id, xs) VALUES (2, [1, NULL]::INT[2])")
        assert lake.rows("SELECT s, xs FROM t ORDER BY id") == [
            ("5f3759df-0000-0000-0000-000000000000", None),
            (None, [1, None]),
        ]


@engines
def test_times_far_away_and_with_nanoseconds(lake: Lake) -> None:
    # FC-077, FC-078: years 1 to 9999 pass through both engines, and more than microseconds are cut off
    lake.create("t", "id INT, at TIMESTAMP, az TIMESTAMPTZ, d DATE")
    moments = [
        dt.datetime(3000, 1, 1, 1, 2, 3, 456),
        dt.datetime(1, 1, 1),
        dt.datetime(1969, 12, 31, 23, 59, 59),
    ]
    source = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int32()),
            "at": pa.array(moments, pa.timestamp("us")),
            "az": pa.array(moments, pa.timestamp("us", "UTC")),
            "d": [moment.date() for moment in moments],
        }
    )
    lake.session.register("source", source)
    lake.run("INSERT INTO t SELECT * FROM source WHERE id = 1")
    assert lake.run(f"MERGE INTO t USING source s ON t.id = s.id {BOTH}") == (2, 1, 0, 0)
    lake.run("UPDATE t SET at = at, az = az")
    stored = lake.session.table("t").snapshot().scan(["id", "at", "az", "d"]).read_all().sort_by("id")
    assert stored.cast(source.schema).equals(source)
    lake.run("UPDATE t SET at = now(), d = '9999-12-31' WHERE id = 1")
    lake.run("UPDATE t SET at = '2026-01-01 00:00:00.123456789' WHERE id = 2")
    assert lake.rows("SELECT at FROM t WHERE id = 2") == [(dt.datetime(2026, 1, 1, 0, 0, 0, 123456),)]


@engines
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_instants_do_not_depend_on_the_zone_of_the_session(lake: Lake, zone: str) -> None:
    # FC-078
    location = lake.create("t", "id INT, at TIMESTAMPTZ, d DATE", partition="d")
    setting = "TimeZone" if lake.engine == "duckdb" else "datafusion.execution.time_zone"
    lake.session.sql(f"SET {setting} = '{zone}'")
    lake.run("INSERT INTO t VALUES (1, TIMESTAMPTZ '2026-03-01 23:30:00+00', DATE '2026-03-01')")
    lake.run("INSERT INTO t VALUES (2, '2026-03-01 23:30:00+05', DATE '2026-03-01')")
    lake.run("UPDATE t SET at = at")
    stored = lake.session.table("t").snapshot().scan(["id", "at"]).read_all().sort_by("id")["at"]
    assert [str(value) for value in stored.to_pylist()] == [
        "2026-03-01 23:30:00+00:00",
        "2026-03-01 18:30:00+00:00",
    ]
    at = "TIMESTAMPTZ '2026-03-01 23:30:00+00'"
    assert lake.rows(f"SELECT id FROM t WHERE at >= {at}") == [(1,)]
    assert [path.name for path in location.glob("d=*")] == ["d=2026-03-01"]


@engines
def test_metadata_and_nullability_of_batches_do_not_matter(lake: Lake) -> None:
    # FC-080
    location = lake.item(rows=None)
    fields = [("id", pa.int32()), ("name", pa.string()), ("price", pa.float64()), ("ts", pa.int64())]
    loose = pa.schema(fields, metadata={"pandas": "{}", "secret": "x"})
    strict = pa.schema(
        [pa.field(n, k, nullable=False, metadata={"PARQUET:field_id": "7"}) for n, k in fields]
    )
    rows = [[5], ["e"], [5.0], [1]]
    batches = [loose.empty_table().to_batches(), pa.table(rows, schema=strict).to_batches()]
    for name, (schema, given) in {"a": (loose, batches[0]), "b": (strict, batches[1])}.items():
        lake.session.register(name, pa.RecordBatchReader.from_batches(schema, given))
    lake.run("INSERT INTO item SELECT * FROM a")
    assert lake.run("INSERT INTO item SELECT * FROM b") == (1, 0, 0, 0)
    lake.session.register("frame", pa.table(rows, names=loose.names).to_pandas())
    assert lake.run(f"MERGE INTO item t USING frame s ON t.id = s.id {BOTH}") == (0, 1, 0, 0)
    file = pq.ParquetFile(max(location.glob("*.parquet")))
    assert b"secret" not in file.metadata.metadata
    assert b"pandas" not in file.metadata.metadata
    assert file.schema_arrow.field("id").nullable
