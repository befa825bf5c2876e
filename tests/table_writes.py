"""Writes on a small table through `HudiTable`, and looks at it that trust nothing: for tests of whole commits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudi_sql.storage.file_system_view import StoreLister
from hudi_sql.storage.metadata.reader import MetadataTable
from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.model.files import BaseFile
from hudi_sql.storage.properties.table_config import load_table_config
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN
from hudi_sql.storage.read.snapshot import Snapshot
from hudi_sql.storage.table import HudiTable
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.write.changes import Changes, SliceChanges
from hudi_sql.storage.write.create import create_table

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.string())])


def make_table(store, *, settings=None, partitioned=True, schema=SCHEMA, **options):
    """A new table with key `id`, partitioned by `p`."""
    config = create_table(
        store,
        schema=schema,
        name="t",
        record_key_fields=["id"],
        partition_fields=["p"] if partitioned else [],
        settings=settings,
        **options,
    )
    return HudiTable(store, config)


def open_table(store):
    return HudiTable(store, load_table_config(store))


def rows_of(ids, *, num_partitions=2, value="v"):
    ids = list(ids)
    return pa.table(
        {
            "id": ids,
            "v": [f"{value}{number}" for number in ids],
            "p": [f"p{number % num_partitions}" for number in ids],
        },
        schema=SCHEMA,
    )


def insert(table, rows, *, settings=None, keys_are_new=False):
    changes = Changes(
        operation=OperationType.INSERT,
        inserts=rows.to_reader(),
        reads_nothing=not keys_are_new,
        read_partitions=() if keys_are_new else None,
        keys_are_new=keys_are_new,
    )
    return table.commit(table.snapshot(), changes, config=settings)


def change(table, *, updated=(), deleted=(), value="u", inserts=None, settings=None, snapshot=None):
    """Set `v` of some ids, delete others, and add rows: one commit."""
    snapshot = snapshot or table.snapshot()
    slices = snapshot.slices()
    found = snapshot.scan_positions(["id"], slices=slices).read_all()
    pieces = []
    for number, piece in enumerate(slices):
        here = found.filter(pc.equal(found[SLICE_COLUMN], number)).sort_by(POSITION_COLUMN)

        def positions(ids, here=here):
            wanted = pc.is_in(here["id"], pa.array(list(ids), pa.int64()))
            return here.filter(wanted)

        up, gone = positions(updated), positions(deleted)
        if up.num_rows or gone.num_rows:
            values = pa.table(
                {"v": pa.array([f"{value}{item}" for item in up["id"].to_pylist()], pa.string())}
            )
            pieces.append(
                SliceChanges(
                    slice=piece,
                    deleted=gone[POSITION_COLUMN].to_numpy().astype(np.int64),
                    updated=up[POSITION_COLUMN].to_numpy().astype(np.int64),
                    values=values,
                )
            )
    changes = Changes(
        operation=OperationType.UPSERT,
        slices=tuple(pieces),
        inserts=None if inserts is None else inserts.to_reader(),
        read_partitions=None,
        keys_are_new=inserts is not None,
    )
    return table.commit(snapshot, changes, config=settings)


def values_of(table_or_snapshot):
    """`{id: v}`; fails on a key that is there twice."""
    snapshot = table_or_snapshot if isinstance(table_or_snapshot, Snapshot) else table_or_snapshot.snapshot()
    found = snapshot.scan(["id", "v"]).read_all().to_pydict()
    assert len(set(found["id"])) == len(found["id"]), "a key is there twice"
    return dict(zip(found["id"], found["v"], strict=True))


def values_by_listing(store):
    """The same without the metadata table: files are found by listing."""
    config = load_table_config(store)
    timeline = load_timeline(store, config)
    return values_of(Snapshot.load(store, config, timeline, lister=StoreLister(store)))


def check_consistent(store, *, after_crash=False, column="id"):
    """Nothing pending, no file of a dead commit, and the metadata table says what the disk says.

    A dead writer may leave a heartbeat or markers of an instant that is over: they say nothing to anybody.
    """
    config = load_table_config(store)
    timeline = load_timeline(store, config)
    assert timeline.pending == ()
    lister = StoreLister(store)
    partitions = lister.list_partitions()
    listed = {name: files for name, files in lister.list_files(partitions).items() if files}
    for files in listed.values():
        for file in files:
            assert timeline.is_committed(file.instant), f"{file.path} is of no commit"
    leftovers = [
        info.path
        for info in store.walk(".hoodie")
        if info.path.startswith((".hoodie/.heartbeat/", ".hoodie/.temp/"))
    ]
    assert after_crash or leftovers == []
    metadata = MetadataTable.open(store, config, timeline)
    if metadata is None:
        return
    known = metadata.list_partitions()
    assert set(listed) <= set(known) <= set(partitions)
    told = {name: files for name, files in metadata.list_files(known).items() if files}
    assert {name: {(file.name, file.size_bytes) for file in files} for name, files in told.items()} == {
        name: {(file.name, file.size_bytes) for file in files} for name, files in listed.items()
    }
    if column is not None:
        _check_ranges(store, metadata, [file for files in listed.values() for file in files], column)


def _check_ranges(store, metadata, files, column):
    ranges = metadata.column_ranges([column], None)
    if ranges is None:
        return
    found = {
        (row["partition"], row["file_name"]): (row[f"min:{column}"], row[f"max:{column}"], row["num_values"])
        for row in ranges.to_pylist()
    }
    for file in files:
        assert isinstance(file, BaseFile)
        with store.open_input(file.path) as source:
            values = pq.read_table(source, columns=[column], partitioning=None)[column]
        if not len(values):
            continue
        expected = (pc.min(values).as_py(), pc.max(values).as_py(), len(values))
        assert found[file.partition, file.name] == expected
