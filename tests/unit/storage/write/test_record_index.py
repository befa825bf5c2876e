from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.metadata.reader import MetadataTable
from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.properties.table_config import load_table_config
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN
from hudi_sql.storage.table import HudiTable
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.write.changes import Changes, SliceChanges
from tests.golden_tables import unpack
from tests.table_writes import check_consistent

KEY = "_hoodie_record_key"


@pytest.fixture(params=["v9_cow_record_index", "v9_cow_global_move"])
def table(request, tmp_path):
    store = LocalStore(str(unpack(request.param, tmp_path)))
    return HudiTable(store, load_table_config(store))


def places(table):
    """Where each key really is."""
    snapshot = table.snapshot()
    slices = snapshot.slices()
    found = snapshot.scan_positions([KEY], slices=slices).read_all().to_pylist()
    return {row[KEY]: (slices[row[SLICE_COLUMN]], row[POSITION_COLUMN]) for row in found}


def check_index(table, gone=()):
    """The index says of each key where it is, and nothing of those that are gone."""
    actual = places(table)
    config = load_table_config(table.store)
    metadata = MetadataTable.open(table.store, config, load_timeline(table.store, config))
    keys = [*actual, *gone, "never there"]
    told = metadata.record_locations(pa.array(keys, pa.string())).to_pylist()
    assert {row["key"]: (row["partition"], row["file_id"]) for row in told} == {
        key: (piece.partition, piece.file_id) for key, (piece, _) in actual.items()
    }
    assert not set(gone) & set(actual)
    check_consistent(table.store, after_crash=True, column=None)


def commit(table, *, deleted=(), inserts=None):
    snapshot = table.snapshot()
    where = places(table)
    by_slice = {}
    for key in deleted:
        piece, position = where[key]
        by_slice.setdefault(piece, []).append(position)
    slices = tuple(
        SliceChanges(
            slice=piece,
            deleted=np.array(sorted(positions), np.int64),
            updated=np.array([], np.int64),
            values=pa.table({}),
        )
        for piece, positions in by_slice.items()
    )
    changes = Changes(
        operation=OperationType.UPSERT,
        slices=slices,
        inserts=None if inserts is None else inserts.to_reader(),
        keys_are_new=inserts is not None,
    )
    return table.commit(snapshot, changes)


def rows_like(table, key, **values):
    """The row of a key, with other values."""
    found = table.snapshot().scan([KEY, *table.schema.names]).read_all()
    row = next(item for item in found.to_pylist() if item[KEY] == key)
    del row[KEY]
    return pa.Table.from_pylist([{**row, **values}], schema=table.schema)


def test_the_index_of_spark_is_right_to_begin_with(table):
    check_index(table)


def test_deleted_and_new_keys(table):
    first, second = sorted(places(table))[:2]
    saved = rows_like(table, first)
    new = rows_like(table, second, id=4711)
    commit(table, deleted=[first])
    check_index(table, gone=[first])
    commit(table, inserts=new)
    assert "4711" in places(table)
    check_index(table, gone=[first])
    commit(table, inserts=saved)
    check_index(table)


def test_a_key_that_moves_to_another_partition_and_back(table):
    key = min(places(table))
    (column,) = table.config.partition_fields
    home = places(table)[key][0].partition
    saved = rows_like(table, key)
    commit(table, deleted=[key], inserts=rows_like(table, key, **{column: "elsewhere"}))
    assert places(table)[key][0].partition != home
    check_index(table)
    commit(table, deleted=[key], inserts=saved)
    assert places(table)[key][0].partition == home
    check_index(table)
