"""Sessions: names, sources, results, settings, refusals."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import hudi_sql
from hudi_sql.errors import (
    BindError,
    ConfigError,
    ConstraintError,
    DuplicateKeyError,
    EngineFailureError,
    HudiSqlError,
    NullKeyError,
    SchemaError,
    SqlSyntaxError,
    StorageError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedStatementError,
)
from hudi_sql.storage.table import HudiTable
from tests.conftest import engines

ROWS = [(1, "a", 1.0, 10), (2, "b", 2.0, 10), (3, "c", 3.0, 10)]
SOURCE = pa.table(
    {
        "id": pa.array([1, 7], pa.int32()),
        "name": ["z", "q"],
        "price": [5.0, 7.0],
        "ts": pa.array([20, 20], pa.int64()),
    }
)
MERGE = "MERGE INTO item t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
MERGED = [(1, "z", 5.0, 20), (2, "b", 2.0, 10), (3, "c", 3.0, 10), (7, "q", 7.0, 20)]


@pytest.fixture
def session(engine: str, tmp_path: Path) -> Iterator[hudi_sql.Session]:
    with hudi_sql.connect(engine) as session:
        make_item(session, tmp_path)
        yield session


def make_item(session: hudi_sql.Session, folder: Path) -> None:
    session.sql(
        "CREATE TABLE item (id INT, name VARCHAR, price DOUBLE, ts BIGINT) USING hudi "
        f"TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{folder}/item'"
    )
    session.sql("INSERT INTO item VALUES (1,'a',1.0,10),(2,'b',2.0,10),(3,'c',3.0,10)")


def rows(session: hudi_sql.Session, name: str = "item") -> list[tuple[object, ...]]:
    return session.sql(f"SELECT id, name, price, ts FROM {name} ORDER BY id").fetchall()


@engines
def test_every_verb_gives_its_counts_and_instant(session: hudi_sql.Session) -> None:
    session.register("source", SOURCE)
    counts = [
        session.sql("UPDATE item SET price = price + 1 WHERE id < 3"),
        session.sql("DELETE FROM item WHERE id = 3"),
        session.sql(MERGE.format(source="source")),
        session.sql("INSERT INTO item VALUES (9, 'n', 9.0, 1)"),
    ]
    found = [result.fetchone() for result in counts]
    assert [row[:5] for row in found if row] == [
        (2, 0, 2, 0, 0),
        (1, 0, 0, 1, 0),
        (2, 1, 1, 0, 0),
        (1, 1, 0, 0, 0),
    ]
    instants = [row[5] for row in found if row]
    assert instants == sorted(set(instants))
    assert rows(session) == [(1, "z", 5.0, 20), (2, "b", 3.0, 10), (7, "q", 7.0, 20), (9, "n", 9.0, 1)]
    write = counts[2].write
    assert write is not None
    assert (write.num_affected_rows, write.num_files, write.num_attempts) == (2, 1, 1)
    assert write.num_bytes > 0
    nothing = session.sql("DELETE FROM item WHERE id = 99").fetchone()
    assert nothing == (0, 0, 0, 0, 0, None)


@engines
def test_meta_columns_come_first_and_are_dropped_from_sources(session: hudi_sql.Session) -> None:
    found = session.sql("SELECT * FROM item ORDER BY id")
    assert found.columns[:5] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    ]
    assert [row[2] for row in found.fetchall()] == ["1", "2", "3"]
    session.sql("DELETE FROM item WHERE id = 1")
    with pytest.raises(DuplicateKeyError):
        session.sql("INSERT INTO item SELECT * FROM item")


@engines
@pytest.mark.parametrize("kind", ["table", "reader", "dataset", "pandas", "polars", "batch"])
def test_registered_objects_are_sources(session: hudi_sql.Session, kind: str) -> None:
    made = {
        "table": lambda: SOURCE,
        "reader": SOURCE.to_reader,
        "dataset": lambda: ds.dataset(SOURCE),
        "pandas": SOURCE.to_pandas,
        "polars": lambda: pl.from_arrow(SOURCE),
        "batch": lambda: SOURCE.to_batches()[0],
    }
    session.register("source", made[kind]())
    session.sql(MERGE.format(source="source"))
    assert rows(session) == MERGED
    session.unregister("source")
    with pytest.raises(HudiSqlError):
        session.sql("SELECT * FROM source").fetchall()


@engines
def test_engine_objects_files_and_subqueries_are_sources(session: hudi_sql.Session, tmp_path: Path) -> None:
    pq.write_table(SOURCE, tmp_path / "source.parquet")
    session.register("arrow_source", SOURCE)
    session.sql("CREATE TABLE own AS SELECT * FROM arrow_source")
    session.sql("CREATE VIEW seen AS SELECT * FROM own WHERE id = 7")
    for source in ("own", "(SELECT * FROM own)", "(WITH c AS (SELECT * FROM seen) SELECT * FROM c)"):
        session.sql(MERGE.format(source=source))
        assert rows(session) == MERGED
    session.sql("DELETE FROM item WHERE id IN (SELECT id FROM seen)")
    assert rows(session) == MERGED[:3]


@pytest.mark.duckdb
def test_duckdb_reads_files_macros_and_python_variables(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    pq.write_table(SOURCE, tmp_path / "source.parquet")
    with hudi_sql.connect("duckdb") as session:
        make_item(session, tmp_path)
        session.sql(MERGE.format(source=f"read_parquet('{tmp_path}/source.parquet')"))
        assert rows(session) == MERGED
        local = SOURCE.set_column(3, "ts", pa.array([30, 30], pa.int64()))
        assert session.sql(MERGE.format(source="local")).fetchone()[1:3] == (0, 2)
        frame = pd.DataFrame({"id": [2]})
        session.sql("DELETE FROM item WHERE id IN (SELECT id FROM frame)")
        reader = local.slice(0, 1).to_reader()  # noqa: F841  # found by its name
        session.sql("DELETE FROM item USING reader WHERE item.id = reader.id")
        assert [row[0] for row in rows(session)] == [3, 7]
        assert frame.shape == (1, 1)
        assert session.sql("SELECT count(*) FROM local").fetchone() == (2,)
        with pytest.raises(BindError):
            session.sql("SELECT * FROM no_such_thing").fetchall()


@engines
def test_two_hudi_tables_join_and_feed_each_other(session: hudi_sql.Session, tmp_path: Path) -> None:
    session.sql(
        "CREATE TABLE other (id INT, name VARCHAR) USING hudi "
        f"TBLPROPERTIES (primaryKey = 'id') LOCATION '{tmp_path}/other'"
    )
    session.sql("INSERT INTO other SELECT id, upper(name) FROM item WHERE id > 1")
    joined = session.sql("SELECT i.id, o.name FROM item i JOIN other o ON i.id = o.id ORDER BY 1").fetchall()
    assert joined == [(2, "B"), (3, "C")]
    session.sql("UPDATE item SET name = (SELECT max(o.name) FROM other o WHERE o.id = item.id) WHERE id = 2")
    assert rows(session)[1] == (2, "B", 2.0, 10)
    session.sql("MERGE INTO item USING other ON item.id = other.id WHEN MATCHED THEN DELETE")
    assert [row[0] for row in rows(session)] == [1]


@engines
def test_time_travel_reads_what_was(session: hudi_sql.Session) -> None:
    first = session.sql("DELETE FROM item WHERE id = 99").fetchone()
    assert first is not None
    before = session.table("item").snapshot().timeline.completed_writes[-1].requested.value
    session.sql("DELETE FROM item")
    found = session.sql(f"SELECT count(*) FROM item TIMESTAMP AS OF '{before}'").fetchone()
    assert found == (3,)
    session.sql(
        f"INSERT INTO item SELECT id, name, price, ts FROM item TIMESTAMP AS OF '{before}' WHERE id = 2"
    )
    assert rows(session) == [ROWS[1]]


@engines
def test_a_location_needs_no_create(session: hudi_sql.Session, tmp_path: Path) -> None:
    named = f'hudi."{tmp_path}/item"'
    assert session.sql(f"SELECT count(*) FROM {named}").fetchone() == (3,)
    assert session.sql(f"SELECT count(*) FROM hudi_table('{tmp_path}/item')").fetchone() == (3,)
    session.sql(f"DELETE FROM {named} WHERE id = 1")
    assert len(rows(session)) == 2


@engines
def test_names_match_in_any_case_and_are_stored_as_written(session: hudi_sql.Session, tmp_path: Path) -> None:
    session.sql(
        f"CREATE TABLE Mixed (Id INT, \"Name\" VARCHAR) USING hudi TBLPROPERTIES (primaryKey = 'Id') "
        f"LOCATION '{tmp_path}/mixed'"
    )
    session.sql("INSERT INTO mixed VALUES (1, 'a')")
    session.register("source", pa.table({"ID": pa.array([1], pa.int32()), "name": ["b"]}))
    session.sql("MERGE INTO MIXED t USING source s ON t.ID = s.id WHEN MATCHED THEN UPDATE SET NAME = s.name")
    found = session.sql("SELECT id, name FROM mixed WHERE ID = 1")
    assert found.fetchall() == [(1, "b")]
    assert session.table("mixed").schema.names == ["Id", "Name"]


@engines
def test_parameters_are_values(session: hudi_sql.Session) -> None:
    assert session.sql("SELECT id FROM item WHERE name = ? OR id = ? ORDER BY id", ["a", 3]).fetchall() == [
        (1,),
        (3,),
    ]
    session.sql(
        "UPDATE item SET name = $who, price = $price WHERE id = $id", {"id": 2, "who": "o'x", "price": -1.5}
    )
    assert rows(session)[1] == (2, "o'x", -1.5, 10)
    with pytest.raises(BindError, match="parameter"):
        session.sql("SELECT id FROM item WHERE id = ?", [])
    with pytest.raises(BindError, match="parameter"):
        session.sql("SELECT id FROM item WHERE id = ?", [1, 2])
    with pytest.raises(BindError, match="list"):
        session.sql("SELECT id FROM item WHERE id = ?", [[1]])


@engines
def test_several_statements_give_the_last_result(session: hudi_sql.Session) -> None:
    result = session.sql(
        "DELETE FROM item WHERE id = 1; DELETE FROM item WHERE id = 2; SELECT count(*) AS n FROM item;"
    )
    assert result.fetchall() == [(1,)]


@engines
def test_a_result_that_was_not_read_does_not_stand_in_the_way(session: hudi_sql.Session) -> None:
    first = session.sql("SELECT id FROM item ORDER BY id")
    second = session.sql("SELECT id FROM item ORDER BY id DESC")
    assert first.fetchall() == [(1,), (2,), (3,)]
    assert second.fetchall() == [(3,), (2,), (1,)]


@engines
def test_statements_of_the_engine_pass_through(session: hudi_sql.Session) -> None:
    session.sql("CREATE TABLE own (a INT)")
    session.sql("INSERT INTO own VALUES (1), (2)")
    assert session.sql("SELECT sum(a) FROM own").fetchone() == (3,)
    assert session.sql(
        "SELECT own.a, item.name FROM own JOIN item ON own.a = item.id ORDER BY 1"
    ).fetchall() == [
        (1, "a"),
        (2, "b"),
    ]
    session.sql("DROP TABLE own")


@engines
@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELEC 1", SqlSyntaxError),
        ("SELECT nope FROM item", BindError),
        ("SELECT * FROM no_such_table", BindError),
        ("UPDATE no_such_table SET a = 1", TableNotFoundError),
        ("INSERT INTO no_such_table VALUES (1)", TableNotFoundError),
        ("INSERT INTO no_such_table SELECT * FROM item", TableNotFoundError),
        (
            "MERGE INTO no_such_table n USING item s ON n.id = s.id WHEN MATCHED THEN DELETE",
            TableNotFoundError,
        ),
        ("DELETE FROM no_such_table", TableNotFoundError),
        ("SELECT 'abc", SqlSyntaxError),
        ("SELECT * FROM item WHERE (", SqlSyntaxError),
        ("SELECT FROM WHERE", SqlSyntaxError),
        ("SELEC", SqlSyntaxError),
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, SqlSyntaxError),
        ("DELETE FROM item WHERE " + " OR ".join(["id = 9"] * 3000), UnsupportedStatementError),
        ("SELECT item.nope FROM item", BindError),
        ("SELECT no_such_function(id) FROM item", BindError),
        ("SELECT ? FROM item", BindError),
        ("SELECT ?; SELECT 1", BindError),
        ("INSERT INTO item VALUES (1, 'x', 1.0, 1), (2)", BindError),
        ("INSERT INTO item SELECT CAST(name AS INT) AS id, name, price, ts FROM item", EngineFailureError),
        ("INSERT INTO item VALUES ('x', 'x', 1.0, 1)", EngineFailureError),
        ("UPDATE item SET price = (SELECT price FROM item)", EngineFailureError),
        ("UPDATE item SET price = sum(price)", BindError),
        ("DELETE FROM item WHERE max(id) = 1", BindError),
        ("UPDATE item AS x SET item.price = 1", BindError),
        ("DELETE FROM item AS x WHERE item.id = 1", BindError),
        ("MERGE INTO item t USING item s WHEN MATCHED THEN DELETE", BindError),
        ("CREATE TABLE bad (a INT) USING hudi LOCATION ''", BindError),
        ("CREATE TABLE bad (a INT) USING delta", UnsupportedStatementError),
        ("CREATE TABLE bad (a INT) USING hudi LOCATION '/dev/null/x'", StorageError),
        ("VACUUM item", HudiSqlError),
        ("UPDATE item SET nope = 1", BindError),
        ("UPDATE item SET name = 'x', name = 'y'", BindError),
        ("UPDATE item SET _hoodie_record_key = 'x'", BindError),
        ("DELETE FROM item WHERE nope = 1", BindError),
        ("INSERT INTO item VALUES (1)", BindError),
        ("INSERT INTO item VALUES (NULL, 'x', 1.0, 1)", NullKeyError),
        ("INSERT INTO item VALUES (8, 'x', 1.0, NULL)", ConstraintError),
        ("MERGE INTO item t USING item2 s ON t.id = s.id WHEN MATCHED THEN DELETE", BindError),
        (
            "MERGE INTO item t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
            BindError,
        ),
        ("DROP TABLE no_such_table", TableNotFoundError),
        ("CREATE TABLE item (id INT) USING hudi", TableExistsError),
        ('CREATE TABLE bad ("a-b" INT) USING hudi', SchemaError),
        ("CREATE TABLE bad (a INTERVAL) USING hudi", SchemaError),
        ("CREATE TABLE bad (a INT) USING hudi TBLPROPERTIES ('hoodie.tabel.name' = 'x')", ConfigError),
        ("CREATE TABLE bad (a INT) USING hudi TBLPROPERTIES (primaryKey = 'b')", HudiSqlError),
        ("CALL show_commits(table => 'item')", UnsupportedStatementError),
    ],
)
def test_refusals_are_typed_and_change_nothing(
    session: hudi_sql.Session, tmp_path: Path, sql: str, kind: type[HudiSqlError]
) -> None:
    def files() -> set[str]:
        return {str(path) for path in tmp_path.rglob("*")}

    before = files()
    with pytest.raises(kind) as raised:
        session.sql(sql).fetchall()
    assert raised.value.hint
    assert not any(
        part in str(raised.value) for part in ("\n", "LINE 1", "^", "hudi_sql_", "sqlglot", "Token")
    )
    assert files() == before
    assert rows(session) == ROWS


@engines
def test_a_failing_query_is_the_engines_failure(session: hudi_sql.Session) -> None:
    with pytest.raises(EngineFailureError) as raised:
        session.sql("UPDATE item SET price = CAST(name AS DOUBLE)")
    assert raised.value.__cause__ is not None
    assert rows(session) == ROWS


def test_unknown_engines_dialects_and_settings_propose_near_ones() -> None:
    with pytest.raises(ConfigError) as raised:
        hudi_sql.connect("dukdb")
    assert "duckdb" in str(raised.value)
    with pytest.raises(ConfigError):
        hudi_sql.attach(object())


@engines
def test_settings(engine: str) -> None:
    with pytest.raises(ConfigError) as raised:
        hudi_sql.connect(engine, dialect="sparc")
    assert "spark" in str(raised.value)
    with pytest.raises(ConfigError) as raised:
        hudi_sql.connect(engine, config={"hoodie.parquet.max.file.sizes": "1"})
    assert "hoodie.parquet.max.file.size" in str(raised.value)
    with pytest.raises(ConfigError):
        hudi_sql.connect(engine, config={"hudi_sql.warehous": "x"})
    with hudi_sql.connect(engine) as session:
        with pytest.raises(ConfigError):
            session.sql("SET hoodie.parquet.max.file.size = 'many'")
        session.sql("SET hoodie.parquet.max.file.size = 1000000")


@engines
def test_tables_without_location_lie_in_the_warehouse_and_are_dropped(engine: str, tmp_path: Path) -> None:
    with hudi_sql.connect(engine, config={"hudi_sql.warehouse": str(tmp_path)}) as session:
        session.sql("CREATE TABLE managed (id INT) USING hudi")
        session.sql("INSERT INTO managed VALUES (1)")
        assert (tmp_path / "managed" / ".hoodie").is_dir()
        session.sql("DROP TABLE managed")
        assert not (tmp_path / "managed").exists()
        session.sql(f"CREATE TABLE kept (id INT) USING hudi LOCATION '{tmp_path}/kept'")
        session.sql("DROP TABLE kept")
        assert (tmp_path / "kept" / ".hoodie").is_dir()
        session.sql(f"CREATE TABLE kept USING hudi LOCATION '{tmp_path}/kept'")
        session.sql("DROP TABLE kept PURGE")
        assert not (tmp_path / "kept" / ".hoodie").exists()
        session.sql("DROP TABLE IF EXISTS kept")
        with pytest.raises(TableNotFoundError):
            session.table("kept")


@engines
def test_an_existing_table_is_named_only_by_what_it_is(session: hudi_sql.Session, tmp_path: Path) -> None:
    where = f"LOCATION '{tmp_path}/item'"
    session.sql(f"CREATE TABLE again USING hudi {where}")
    assert rows(session, "again") == ROWS
    session.sql(
        f"CREATE TABLE same (id INT, name VARCHAR, price DOUBLE, ts BIGINT) USING hudi "
        f"TBLPROPERTIES (primaryKey = 'id') {where}"
    )
    for columns, properties, kind in (
        ("(id INT, name VARCHAR, price DOUBLE, ts BIGINT)", "primaryKey = 'name'", ConfigError),
        ("(id INT, name VARCHAR, price DOUBLE, ts BIGINT)", "type = 'mor'", ConfigError),
        ("(id INT, foo VARCHAR)", "primaryKey = 'id'", BindError),
    ):
        with pytest.raises(kind):
            session.sql(f"CREATE TABLE other {columns} USING hudi TBLPROPERTIES ({properties}) {where}")
    with pytest.raises(TableNotFoundError):
        session.sql(f"CREATE TABLE other USING hudi LOCATION '{tmp_path}/nothing'")
    assert not (tmp_path / "nothing").exists()


@engines
def test_rows_come_back_where_asked_for(session: hudi_sql.Session) -> None:
    found = session.sql("DELETE FROM item WHERE id < 3 RETURNING id, name")
    assert sorted(found.fetchall()) == [(1, "a"), (2, "b")]
    assert found.write is not None
    assert found.write.num_deleted_rows == 2
    merged = session.sql(
        "MERGE INTO item t USING (SELECT 3 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE "
        "RETURNING merge_action, t.id, s.id"
    )
    assert merged.columns == ["merge_action", "id", "id_1"]
    assert merged.fetchall() == [("DELETE", 3, 3)]
    assert session.sql("DELETE FROM item RETURNING id").columns == ["id"]


@engines
def test_a_source_that_another_writer_disturbs_is_evaluated_again(
    session: hudi_sql.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = hudi_sql.connect(session._engine.name)
    other.sql(f"CREATE TABLE item USING hudi LOCATION '{tmp_path}/item'")
    commit = HudiTable.commit
    calls = []

    def disturbed(self: HudiTable, *arguments: object, **options: object) -> object:
        calls.append(self)
        if len(calls) == 1:
            other.sql("UPDATE item SET price = 100.0 WHERE id = 2")
        return commit(self, *arguments, **options)

    monkeypatch.setattr(HudiTable, "commit", disturbed)
    result = session.sql("UPDATE item SET price = price + 1 WHERE id = 2")
    assert rows(session)[1] == (2, "b", 101.0, 10)
    assert result.write is not None
    assert result.write.num_attempts == 2
    other.close()


@engines
def test_wide_integer_sums_fit_or_are_refused(session: hudi_sql.Session, tmp_path: Path) -> None:
    session.sql(
        f"CREATE TABLE sums (n BIGINT, d DECIMAL(10,2), day DATE) USING hudi LOCATION '{tmp_path}/sums'"
    )
    session.sql("INSERT INTO sums (n) SELECT sum(ts) FROM item")
    session.sql("INSERT INTO sums (d, day) VALUES (1.25, DATE '2026-01-01')")
    found = session.sql("SELECT n, d, day FROM sums ORDER BY n NULLS LAST").fetchall()
    assert found == [(30, None, None), (None, Decimal("1.25"), dt.date(2026, 1, 1))]
    with pytest.raises(HudiSqlError):
        session.sql("INSERT INTO sums (n) VALUES (99999999999999999999)")


@pytest.mark.duckdb
def test_an_attached_connection_keeps_its_own_state(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE mine AS SELECT 7 AS id, 'q' AS name, 7.0::DOUBLE AS price, 20::BIGINT AS ts"
    )
    connection.execute("CREATE TEMP MACRO twice(x) AS x * 2")
    with hudi_sql.attach(connection) as session:
        make_item(session, tmp_path)
        connection.execute("BEGIN")
        connection.execute("INSERT INTO mine VALUES (8, 'r', 8.0, 20)")
        session.sql(MERGE.format(source="(SELECT id, name, twice(price) AS price, ts FROM mine)"))
        assert rows(session)[3:] == [(7, "q", 14.0, 20), (8, "r", 16.0, 20)]
        with pytest.raises(HudiSqlError):
            session.sql("UPDATE item SET nope = 1")
        connection.execute("ROLLBACK")
        names = connection.execute(
            "SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
        assert names == [("mine",)]
    assert connection.execute("SELECT count(*) FROM mine").fetchone() == (1,)


@pytest.mark.datafusion
def test_an_attached_context_lends_its_tables(tmp_path: Path) -> None:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.from_arrow(SOURCE, name="mine")
    with hudi_sql.attach(context) as session:
        make_item(session, tmp_path)
        session.sql(MERGE.format(source="mine"))
        assert rows(session) == MERGED
    assert context.table("mine").count() == 2


@pytest.mark.duckdb
def test_the_users_transaction_lives_on_whatever_is_looked_up_by_name(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE mine AS SELECT 1 AS id")
    connection.execute("CREATE MACRO five() AS TABLE SELECT 5 AS id, 'm' AS name, 1.0 AS price, 9 AS ts")
    session = hudi_sql.attach(connection)
    make_item(session, tmp_path)
    connection.execute("BEGIN")
    connection.execute("INSERT INTO mine VALUES (2)")
    mine_too = SOURCE  # noqa: F841  # found by its name
    session.sql(MERGE.format(source="mine_too"))
    session.sql("INSERT INTO item SELECT * FROM five()")
    assert [row[0] for row in rows(session)] == [1, 2, 3, 5, 7]
    assert connection.execute("SELECT count(*) FROM mine").fetchall() == [(2,)]
    # A cast that fails ends the transaction, as it does without us; what was lent goes with it.
    with pytest.raises(EngineFailureError):
        session.sql("UPDATE item SET price = CAST(name AS DOUBLE)")
    with pytest.raises(EngineFailureError, match="ROLLBACK"):
        session.sql("SELECT * FROM item").fetchall()
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall() == []
    assert len(rows(session)) == 5
    reader = session.sql("SELECT id FROM item").to_arrow_reader()
    connection.close()
    assert reader.read_all().num_rows == 5
    with pytest.raises(EngineFailureError, match="closed"):
        session.sql("SELECT 1")
    session.close()


@engines
def test_a_closed_session_says_so(session: hudi_sql.Session) -> None:
    reader = session.sql("SELECT id FROM item").to_arrow_reader()
    session.close()
    session.close()
    for call in (
        lambda: session.sql("SELECT 1"),
        lambda: session.register("more", SOURCE),
        lambda: session.unregister("more"),
        lambda: session.table("item"),
    ):
        with pytest.raises(EngineFailureError, match="closed"):
            call()
    del reader


@engines
def test_a_session_serves_one_thread(session: hudi_sql.Session) -> None:
    answers: list[object] = []

    def batches() -> Iterator[pa.RecordBatch]:
        def other() -> None:
            try:
                answers.append(session.sql("SELECT * FROM item").fetchall())
            except HudiSqlError as error:
                answers.append(type(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join(timeout=60)
        yield SOURCE.to_batches()[0]

    reader = pa.RecordBatchReader.from_batches(SOURCE.schema, batches())
    if session._engine.name == "datafusion":  # it reads a one-shot source when it is registered
        session.register("slow", reader)
    else:
        session.register("slow", reader)
        session.sql(MERGE.format(source="slow"))
    assert answers == [EngineFailureError]
    assert session.sql("SELECT count(*) FROM item").fetchone() is not None


@engines
@pytest.mark.parametrize(
    "call",
    [
        lambda session: session.sql(None),
        lambda session: session.sql(b"SELECT 1"),
        lambda session: session.sql("SELECT ?", 5),
        lambda session: session.sql("SELECT ?", "x"),
        lambda session: session.sql("SELECT 1", [1]),
        lambda session: session.register("", SOURCE),
        lambda session: session.register(5, SOURCE),
        lambda session: session.register("x", 5),
        lambda session: session.register("item", SOURCE),
        lambda session: session.unregister(None),
        lambda session: session.table(5),
        lambda session: session.table("nope"),
        lambda session: hudi_sql.connect(None),
        lambda session: hudi_sql.connect(session.dialect, config="x"),
        lambda session: hudi_sql.connect(session.dialect, config={5: 5}),
        lambda session: hudi_sql.connect(session.dialect, storage_options=["x"]),
        hudi_sql.attach,
    ],
)
def test_wrong_arguments_are_typed_errors(
    session: hudi_sql.Session, call: Callable[[hudi_sql.Session], object]
) -> None:
    with pytest.raises(HudiSqlError) as raised:
        call(session)
    assert raised.value.hint
    assert rows(session) == ROWS


@engines
@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_parameters_reach_statements_of_the_engine_too(
    session: hudi_sql.Session, kind: Callable[[list[object]], Iterable[object]]
) -> None:
    assert session.sql("SELECT ? AS a, ? AS b", kind([7, "x"])).fetchall() == [(7, "x")]


@engines
def test_a_hudi_table_hides_no_table_of_the_engine(session: hudi_sql.Session, tmp_path: Path) -> None:
    session.register("taken", SOURCE)
    with pytest.raises(TableExistsError, match="taken"):
        session.sql(f"CREATE TABLE taken (id INT) USING hudi LOCATION '{tmp_path}/taken'")
    assert not (tmp_path / "taken").exists()
    assert session.sql("SELECT count(*) FROM taken").fetchone() == (2,)


@engines
def test_a_location_can_be_written_to_without_a_name(session: hudi_sql.Session, tmp_path: Path) -> None:
    session.sql(f"INSERT INTO hudi_table('{tmp_path}/item') VALUES (4, 'd', 4.0, 10)")
    assert rows(session) == [*ROWS, (4, "d", 4.0, 10)]
    with pytest.raises(TableNotFoundError):
        session.sql(f"INSERT INTO hudi_table('{tmp_path}/nothing') VALUES (4, 'd', 4.0, 10)")


@engines
def test_fields_of_structs_are_found_by_name_and_none_is_lost(engine: str, tmp_path: Path) -> None:
    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    schema = pa.schema([("id", pa.int64()), ("v", kind), ("l", pa.list_(kind))])
    HudiTable.create(f"{tmp_path}/s", schema=schema, name="s", record_key_fields=["id"])
    with hudi_sql.connect(engine) as session:
        session.sql(f"CREATE TABLE s USING hudi LOCATION '{tmp_path}/s'")
        for id_, value in enumerate([{"b": "x", "a": 1}, {"A": 2, "B": "y"}, {"a": 3}, {"c0": 4, "c1": "z"}]):
            session.register("given", pa.table({"id": [id_], "v": [value], "l": [[value, None]]}))
            session.sql("INSERT INTO s SELECT id, v, l FROM given")
        before = session.sql("SELECT id, v, l FROM s ORDER BY id").fetchall()
        assert [row[1] for row in before] == [
            {"a": 1, "b": "x"},
            {"a": 2, "b": "y"},
            {"a": 3, "b": None},
            {"a": 4, "b": "z"},
        ]
        assert all(row[2] == [row[1], None] for row in before)
        for value in ({"a": 1, "b": "x", "c": 2}, {"x": 1, "y": "q"}):
            session.register("given", pa.table({"id": [9], "v": [value], "l": [[value]]}))
            for statement in (
                "INSERT INTO s (id, v) SELECT id, v FROM given",
                "INSERT INTO s (id, l) SELECT id, l FROM given",
                "UPDATE s SET v = given.v FROM given",
            ):
                with pytest.raises(SchemaError, match="no field"):
                    session.sql(statement)
        assert session.sql("SELECT id, v, l FROM s ORDER BY id").fetchall() == before


@engines
@pytest.mark.parametrize("kind", ["lazy", "scanner"])
def test_lazy_objects_are_sources_for_each_engine(session: hudi_sql.Session, kind: str) -> None:
    source = pl.DataFrame(SOURCE).lazy() if kind == "lazy" else ds.dataset(SOURCE).scanner()
    session.register("updates", source)
    session.sql(MERGE.format(source="updates"))
    assert rows(session) == MERGED


@engines
def test_rows_with_nan_can_be_deleted(session: hudi_sql.Session) -> None:
    session.sql("UPDATE item SET price = CAST('NaN' AS DOUBLE) WHERE id = 2")
    assert session.sql("DELETE FROM item WHERE isnan(price)").fetchone()[3] == 1  # type: ignore[index]
    assert [row[0] for row in rows(session)] == [1, 3]


@pytest.mark.duckdb
def test_a_name_that_an_alias_hides_is_told_with_the_alias(tmp_path: Path) -> None:
    with hudi_sql.connect("duckdb") as session:
        make_item(session, tmp_path)
        for statement in (
            "UPDATE item AS x SET item.price = 1",
            "DELETE FROM item AS x WHERE item.price = 1",
        ):
            with pytest.raises(BindError, match=r"item is called x .*Write x\.price"):
                session.sql(statement)
