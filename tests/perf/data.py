"""The table that benchmarks change: 16 columns, most of them numbers, four of text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import hudi_sql

NUM_FILE_GROUPS = 8
DDL = (
    "id BIGINT, "
    + ", ".join(f"i{n} BIGINT" for n in range(5))
    + ", "
    + ", ".join(f"d{n} DOUBLE" for n in range(5))
    + ", "
    + ", ".join(f"s{n} VARCHAR" for n in range(4))
    + ", ts BIGINT"
)


def rows(ids: np.ndarray, ts: int, seed: int) -> pa.Table:
    """Rows of random values."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {"id": pa.array(ids)}
    columns |= {f"i{n}": pa.array(rng.integers(0, 1 << 40, len(ids))) for n in range(5)}
    columns |= {f"d{n}": pa.array(rng.random(len(ids))) for n in range(5)}
    columns |= {
        f"s{n}": pa.array(np.char.add("value-", rng.integers(0, 100_000, len(ids)).astype(str)))
        for n in range(4)
    }
    columns["ts"] = pa.array(np.full(len(ids), ts))
    return pa.table(columns)


def create(session: hudi_sql.Session, path: Path, num_rows: int) -> None:
    """A table of eight file groups in one partition."""
    # What a row takes in a file, so that inserts are cut into eight files.
    session.sql("SET hoodie.copyonwrite.record.size.estimate = 128")
    session.sql(f"SET hoodie.parquet.max.file.size = {num_rows * 128 // NUM_FILE_GROUPS}")
    session.sql(
        f"CREATE TABLE t ({DDL}) USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts') LOCATION '{path}'"
    )
    session.register("source", rows(np.arange(num_rows), 10, 1))
    session.sql("INSERT INTO t SELECT * FROM source")
    session.unregister("source")


MERGE = (
    "MERGE INTO t USING changes s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


def files(session: hudi_sql.Session, path: Path) -> list[str]:
    """Base files of the latest snapshot."""
    return [
        str(path / piece.base_file.path)
        for piece in session.table("t").snapshot().slices()
        if piece.base_file
    ]
