"""What must hold of a table after every write, by whomever."""

from __future__ import annotations

from pathlib import Path

import hudi as hudi_rs
import pyarrow as pa

import hudi_sql
from tests.spark.client import Spark, problems
from tests.spark.data import differences

META = [
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
]


def assert_same_everywhere(
    spark: Spark,
    session: hudi_sql.Session,
    name: str,
    path: Path,
    scratch: Path,
    expected: pa.Table,
    *,
    second_reader: bool = False,
    validate: bool = True,
) -> None:
    """Our rows, Spark's rows (metadata table on and off) and, where it can, hudi-rs's are the expected ones."""
    columns = expected.column_names
    ours = session.sql(f"SELECT * FROM {name}").to_arrow_table()
    assert differences(ours, expected, columns) == [], "our rows"
    for metadata in (True, False):
        theirs = spark.table(path, scratch, metadata=metadata)
        assert differences(ours, theirs, META + columns) == [], f"Spark with the metadata table {metadata}"
    if validate:
        report = spark.validate(path)
        assert problems(report) == []
        assert any(check["result"] == "ok" for check in report["checks"]), "nothing was validated"
    if second_reader:
        batches = hudi_rs.HudiTable(str(path)).read()
        assert differences(ours, pa.Table.from_batches(batches), META + columns) == [], "hudi-rs"


def pending(path: Path) -> list[str]:
    """Instants that have no completed file."""
    timeline = path / ".hoodie" / "timeline"
    names = [entry.name for entry in timeline.iterdir() if entry.is_file() and not entry.name.startswith(".")]
    done = {name.split("_")[0] for name in names if "_" in name}
    return sorted({name.split(".")[0] for name in names if "_" not in name} - done)
