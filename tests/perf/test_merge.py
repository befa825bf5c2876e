"""MERGE against the cheapest way to do the same without Hudi: reading and rewriting the same files."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import hudi_sql
from tests.perf.data import MERGE, create, files, rows

pytestmark = [pytest.mark.perf, pytest.mark.timeout(1800)]

FULL = os.environ.get("HUDI_SQL_PERF") == "full"
SLACK = 1.0 if FULL else 1.5
NUM_ROWS = 1_000_000 if FULL else 300_000
RUNS = 5 if FULL else 3
RECORDS = Path(os.environ.get("HUDI_SQL_PERF_RECORDS", ".benchmarks"))


def record(name: str, **figures: object) -> None:
    """Keep the raw figures of a run."""
    RECORDS.mkdir(parents=True, exist_ok=True)
    (RECORDS / f"{name}.json").write_text(json.dumps(figures, indent=1))
    print(f"\n{name}: {json.dumps(figures)}")


def timed(work: Callable[..., object], *arguments: object) -> float:
    started = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - started


def rewrite_with_duckdb(paths: list[str], target: Path) -> None:
    connection = duckdb.connect()
    connection.execute(
        f"COPY (SELECT * FROM read_parquet({paths!r})) TO '{target}' (FORMAT parquet, COMPRESSION zstd)"
    )


def rewrite_with_pyarrow(paths: list[str], target: Path) -> None:
    for number, path in enumerate(paths):
        pq.write_table(pq.read_table(path), target / f"{number}.parquet", compression="zstd")


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_merge_of_one_percent_random_keys_costs_at_most_two_rewrites(engine, tmp_path) -> None:
    session = hudi_sql.connect(engine=engine, dialect="duckdb" if engine == "duckdb" else "datafusion")
    create(session, tmp_path / "t", NUM_ROWS)
    rng = np.random.default_rng(2)
    figures: dict[str, list[float]] = {"merge": [], "duckdb": [], "pyarrow": []}
    target = tmp_path / "copies"
    target.mkdir()
    for run in range(RUNS):
        keys = rng.choice(NUM_ROWS, NUM_ROWS // 100, replace=False)
        session.register("changes", rows(keys, 20 + run, run))
        current = files(session, tmp_path / "t")
        figures["duckdb"].append(timed(rewrite_with_duckdb, current, target / "one.parquet"))
        figures["pyarrow"].append(timed(rewrite_with_pyarrow, current, target))
        figures["merge"].append(timed(session.sql, MERGE))
        assert session.sql("SELECT count(*) FROM t").fetchone() == (NUM_ROWS,)
    median = {name: statistics.median(values) for name, values in figures.items()}
    ratio = median["merge"] / min(median["duckdb"], median["pyarrow"])
    record(f"merge_random_{engine}", rows=NUM_ROWS, seconds=figures, median=median, ratio=ratio)
    assert ratio <= 2.0 * SLACK


FIRST_MERGE = """
import sys, time
import hudi_sql
session = hudi_sql.connect(engine=sys.argv[1])
session.sql(f"CREATE TABLE t USING hudi LOCATION '{sys.argv[2]}'")
session.sql("MERGE INTO t USING (VALUES (1, 99), (2, 99), (3, 99)) s (id, ts) ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET ts = s.ts").fetchone()
"""
IMPORTS = "import sys, {engine}, pyarrow, pyarrow.parquet, pyarrow.dataset, pyarrow.compute, numpy, sqlglot, fastavro, xxhash"


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_the_first_merge_of_a_process_costs_little_more_than_its_imports(engine, tmp_path) -> None:
    session = hudi_sql.connect(engine=engine)
    create(session, tmp_path / "t", 1000)
    session.close()

    def run(code: str, *arguments: str) -> None:
        subprocess.run([sys.executable, "-c", code, *arguments], check=True)

    bare, merge = [], []
    for _ in range(RUNS):
        bare.append(timed(run, IMPORTS.format(engine=engine)))
        merge.append(timed(run, FIRST_MERGE, engine, str(tmp_path / "t")))
    ratio = statistics.median(merge) / statistics.median(bare)
    record(f"first_merge_{engine}", imports=bare, merge=merge, ratio=ratio)
    assert ratio <= 4.0 * SLACK


PEAK = """
import sys
from pathlib import Path
import numpy as np
import hudi_sql
from tests.perf.data import MERGE, rows
session = hudi_sql.connect(engine=sys.argv[1])
session.sql(f"CREATE TABLE t USING hudi LOCATION '{sys.argv[2]}'")
num_rows = int(sys.argv[3])
session.register("changes", rows(np.random.default_rng(3).choice(num_rows, num_rows // 100, replace=False), 50, 4))

def peak_kib():
    # Not getrusage: a child that was made by vfork begins with its parent's maximum.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

before = peak_kib()
session.sql(MERGE)
print(before, peak_kib())
"""


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_peak_memory_of_a_merge_is_bounded(engine, tmp_path) -> None:
    session = hudi_sql.connect(engine=engine)
    create(session, tmp_path / "t", NUM_ROWS)
    data_mb = NUM_ROWS * 16 * 9 / 1e6
    session.close()
    done = subprocess.run(
        [sys.executable, "-c", PEAK, engine, str(tmp_path / "t"), str(NUM_ROWS)],
        check=True,
        capture_output=True,
        text=True,
    )
    before, peak = (int(part) / 1024 for part in done.stdout.split())
    record(f"peak_memory_{engine}", rows=NUM_ROWS, before_mb=before, peak_mb=peak, data_mb=data_mb)
    assert peak - before <= 600 + 3 * data_mb
