"""The adapter suite on both engines, and what is special about each."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from engine_adapters import loader
from engine_adapters.protocol import EngineQueryError, EngineSettings
from engine_adapters.testing.suite import ALL_TYPES, CHECKS, TableRelation
from tests.conftest import engines


@engines
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_adapter(engine, check) -> None:
    session = loader.connect(engine)
    check(session)
    session.close()


@engines
def test_settings_of_our_own_engine_are_taken(engine, tmp_path) -> None:
    settings = EngineSettings(threads=1, memory_limit_bytes=500_000_000, temp_folder=str(tmp_path))
    session = loader.connect(engine, settings)
    assert session.query("SELECT 1 AS one", relations={}).read_all().num_rows == 1


@pytest.mark.duckdb
def test_the_users_connection_is_left_as_it_was() -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE mine (id BIGINT); CREATE TEMP MACRO twice(x) AS x * 2; SET VARIABLE v = 5"
    )
    connection.execute("BEGIN; INSERT INTO mine VALUES (1), (2)")
    views = "SELECT view_name FROM duckdb_views() WHERE NOT internal"
    session = loader.attach(connection)
    query = "SELECT twice(m.id) + getvariable('v') AS x FROM mine m JOIN lent USING (id) ORDER BY 1"
    got = session.query(query, relations={"lent": TableRelation(ALL_TYPES)}).read_all()
    assert got.column(0).to_pylist() == [7, 9]
    with pytest.raises(EngineQueryError):
        session.query("SELECT nope FROM lent", relations={"lent": TableRelation(ALL_TYPES)})
    assert connection.execute(views).fetchall() == []
    session.close()
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)


@pytest.mark.datafusion
def test_the_users_context_is_left_as_it_was() -> None:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.from_pydict({"id": [1, 2]}, name="mine")
    session = loader.attach(context)
    got = session.query(
        "SELECT * FROM mine JOIN lent USING (id)", relations={"lent": TableRelation(ALL_TYPES)}
    )
    assert got.read_all().num_rows == 2
    session.close()
    assert context.catalog().schema("public").table_names() == {"mine"}


def test_something_else_cannot_be_attached() -> None:
    with pytest.raises(TypeError, match="no engine session"):
        loader.attach(object())


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_an_engine_that_is_not_installed_is_an_import_error(engine) -> None:
    code = (
        f"import sys; sys.modules[{engine!r}] = None\n"
        "from engine_adapters import loader\n"
        f"try:\n    loader.connect({engine!r})\nexcept ImportError:\n    print('no engine')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "no engine"


SPARK = {
    "cast(2.7 as int)": 2,
    "cast(-2.5D as int)": -2,
    "cast('7' as int)": 7,
    "cast('x' as int)": None,
    "cast(1.239 as decimal(10,2))": pa.scalar("1.24").as_py(),
    "concat('a', null)": None,
    "nvl(null, 1)": 1,
    "if(true, 1, 2)": 1,
    "datediff(date'2024-01-03', date'2024-01-01')": 2,
    "array(1, 2)[0]": 1,
    "named_struct('a', 1, 'b', 'x')": {"a": 1, "b": "x"},
    "map('a', 1)": [("a", 1)],
    "named_struct('a', 1).a": 1,
    "size(array(1, 2))": 2,
    "upper('a') || '_'": "A_",
    "1 <=> null": False,
    "7 / 2": 3.5,
    "7 div 2": 3,
    "-7 div 2": -3,
    "greatest(1, null, 3)": 3,
    "20L": 20,
    "x'ff'": b"\xff",
    "element_at(array(1, 2), 1)": 1,
    "array_contains(array(1, 2), 1)": True,
    "date_add(date'2024-01-01', 1)": "2024-01-02",
}


@engines
@pytest.mark.parametrize("text", SPARK)
def test_spark_expressions_keep_their_meaning(engine, text) -> None:
    sqlglot = pytest.importorskip("sqlglot")
    session = loader.connect(engine)
    sql = session.render(sqlglot.parse_one(f"select {text} as v", dialect="spark"), "spark")
    value = session.query(sql, relations={}).read_all().column(0)[0].as_py()
    wanted = SPARK[text]
    assert (str(value) if isinstance(wanted, str) and not isinstance(value, str) else value) == wanted


@engines
def test_spark_functions_with_other_values_here_are_refused(engine) -> None:
    sqlglot = pytest.importorskip("sqlglot")
    with pytest.raises(EngineQueryError, match="monotonically_increasing_id"):
        loader.connect(engine).render(
            sqlglot.parse_one("select monotonically_increasing_id()", dialect="spark"), "spark"
        )
