"""Ranges out of footers are those that Spark wrote into the metadata table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudi_sql.storage.base_file.reader import open_base_file
from hudi_sql.storage.base_file.statistics import footer_ranges
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.metadata.reader import MetadataTable
from hudi_sql.storage.properties.table_config import load_table_config
from hudi_sql.storage.read.snapshot import Snapshot
from hudi_sql.storage.timeline.timeline import load_timeline
from tests.golden_tables import TABLES, unpack

# The columns of these go by ids, or were of another type when the file was written: stored in the old one.
LEFT_OUT = {"v9_cow_schema_on_read", "v9_cow_widening"}
NAMES = sorted(path.stem for path in TABLES.glob("v9_cow*.zip") if path.stem not in LEFT_OUT)


@pytest.mark.parametrize("name", NAMES)
def test_footer_ranges_are_those_in_the_metadata_table(name: str, tmp_path: Path) -> None:
    store = open_store(str(unpack(name, tmp_path)))
    config = load_table_config(store)
    timeline = load_timeline(store, config)
    metadata = MetadataTable.open(store, config, timeline)
    if metadata is None or not metadata.has("column_stats"):
        pytest.skip("the table keeps no ranges")
    columns = metadata.indexed_columns()
    snapshot = Snapshot.load(store, config, timeline, lister=metadata)
    kept = metadata.column_ranges(columns, None)
    assert kept is not None
    rows = {(row["partition"], row["file_name"]): index for index, row in enumerate(kept.to_pylist())}
    num_compared = 0
    for piece in snapshot.slices():
        assert piece.base_file is not None
        row = rows.get((piece.partition, piece.base_file.name))
        if row is None:
            continue
        with open_base_file(store, piece.base_file) as reader:
            ranges = footer_ranges(reader.metadata, snapshot.schema, columns)
        for item in ranges:
            nulls = kept[f"nulls:{item.column}"][row].as_py()
            if nulls is None:
                continue
            assert item.num_nulls == nulls, item.column
            assert item.num_values == kept["num_values"][row].as_py()
            for side, mine in (("min", item.minimum), ("max", item.maximum)):
                theirs = kept[f"{side}:{item.column}"][row]
                if mine is None and pa.types.is_floating(item.type):
                    continue  # only NaN: Spark says 0.0, which is no bound of it
                assert (None if mine is None else mine.as_py()) == theirs.as_py(), item.column
                num_compared += 1
    assert num_compared or not snapshot.slices()
