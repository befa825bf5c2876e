"""The same statements from several processes, as users run them."""

from __future__ import annotations

import pyarrow as pa

import hudi_sql
from tests.concurrency.processes import run_processes
from tests.conftest import engines

MERGE = """
MERGE INTO t USING updates u ON t.id = u.id
WHEN MATCHED THEN UPDATE SET v = u.v
WHEN NOT MATCHED THEN INSERT *
"""


def open_session(engine, root):
    session = hudi_sql.connect(engine=engine)
    session.sql(f"CREATE TABLE t USING hudi LOCATION '{root}'")
    return session


def merge(root, number, barrier, results, engine):
    session = open_session(engine, root)
    ids = list(range(100))
    session.register("updates", pa.table({"id": ids, "v": [f"w{number}-{item}" for item in ids]}))
    barrier.wait(60)
    row = session.sql(MERGE).to_arrow_table().to_pylist()[0]
    results.put((number, (row["num_inserted_rows"], row["num_updated_rows"], str(row["instant"]))))


def add_up(root, number, barrier, results, engine):
    session = open_session(engine, root)
    barrier.wait(60)
    done = 0
    while done < 5:
        try:
            session.sql("UPDATE t SET n = n + 1 WHERE id = 1")
        except hudi_sql.HudiSqlError as error:
            assert error.retryable, error  # noqa: PT017  # anything else would fail the process
            continue
        done += 1
    results.put((number, done))


@engines
def test_the_same_merge_at_once_inserts_its_keys_once(engine, tmp_path):
    root = str(tmp_path / "t")
    session = hudi_sql.connect(engine=engine)
    session.sql(
        f"CREATE TABLE t (id BIGINT, v VARCHAR) USING hudi LOCATION '{root}' TBLPROPERTIES (primaryKey = 'id')"
    )
    results = run_processes(merge, root, engine)
    counts = sorted(item[:2] for item in results.values())
    assert counts == [(0, 100), (100, 0)]
    last = max(results, key=lambda number: results[number][2])
    rows = open_session(engine, root).sql("SELECT id, v FROM t ORDER BY id").fetchall()
    assert rows == [(item, f"w{last}-{item}") for item in range(100)]


@engines
def test_no_update_is_lost(engine, tmp_path):
    root = str(tmp_path / "t")
    session = hudi_sql.connect(engine=engine)
    session.sql(
        f"CREATE TABLE t (id BIGINT, n BIGINT) USING hudi LOCATION '{root}' TBLPROPERTIES (primaryKey = 'id')"
    )
    session.sql("INSERT INTO t VALUES (1, 0), (2, 0)")
    run_processes(add_up, root, engine)
    rows = open_session(engine, root).sql("SELECT id, n FROM t ORDER BY id").fetchall()
    assert rows == [(1, 10), (2, 0)]
