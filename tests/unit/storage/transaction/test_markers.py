from __future__ import annotations

import uuid

import pytest

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.model.files import PartitionPath
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.transaction.markers import (
    Marker,
    MarkerKind,
    create_marker,
    delete_markers,
    marker_folder,
    read_markers,
)
from tests.golden_tables import unpack

INSTANT = InstantTime("20260101000000000")
OTHER = InstantTime("20260101000000001")
FOLDER = f".hoodie/.temp/{INSTANT}"


@pytest.fixture
def store():
    return MemoryStore(f"t{uuid.uuid4().hex}")


def marker(partition, name, kind=MarkerKind.CREATE):
    return Marker(partition=PartitionPath(partition), file_name=name, kind=kind)


def test_direct_markers_are_empty_files_named_after_the_data_file(store):
    made = [
        marker("city=sf", "b.parquet"),
        marker("", "a.parquet", MarkerKind.MERGE),
        marker("a=1/b=2", ".c_1.log.1_0-0-0", MarkerKind.APPEND),
    ]
    for item in made:
        create_marker(store, INSTANT, item)
    create_marker(store, INSTANT, made[0])  # a second attempt
    create_marker(store, OTHER, marker("", "other.parquet"))
    assert {info.path: info.size_bytes for info in store.walk(FOLDER)} == {
        f"{FOLDER}/city=sf/b.parquet.marker.CREATE": 0,
        f"{FOLDER}/a.parquet.marker.MERGE": 0,
        f"{FOLDER}/a=1/b=2/.c_1.log.1_0-0-0.marker.APPEND": 0,
    }
    assert set(read_markers(store, INSTANT)) == set(made)
    assert [item.path for item in read_markers(store, INSTANT)] == [
        "a.parquet",
        "a=1/b=2/.c_1.log.1_0-0-0",
        "city=sf/b.parquet",
    ]


def test_deleting_takes_the_markers_of_one_instant(store):
    create_marker(store, INSTANT, marker("p", "a.parquet"))
    create_marker(store, OTHER, marker("p", "a.parquet"))
    delete_markers(store, INSTANT)
    delete_markers(store, INSTANT)
    assert read_markers(store, INSTANT) == ()
    assert len(read_markers(store, OTHER)) == 1


def test_markers_of_sparks_timeline_server_are_read(store):
    store.put(f"{FOLDER}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    store.put(f"{FOLDER}/MARKERS0", b"city=sf/a.parquet.marker.CREATE\ncity=sf/b.parquet.marker.MERGE\n")
    store.put(f"{FOLDER}/MARKERS19", b"c.parquet.marker.CREATE\n\n")
    store.put(f"{FOLDER}/.MARKERS0.crc", b"\x00d.parquet.marker.CREATE\n")
    assert read_markers(store, INSTANT) == (
        marker("", "c.parquet"),
        marker("city=sf", "a.parquet"),
        marker("city=sf", "b.parquet", MarkerKind.MERGE),
    )


def test_the_type_may_be_stated_for_direct_markers(store):
    store.put(f"{FOLDER}/MARKERS.type", b"DIRECT\n")
    create_marker(store, INSTANT, marker("p", "a.parquet"))
    assert read_markers(store, INSTANT) == (marker("p", "a.parquet"),)


def test_sidecars_and_foreign_files_are_no_markers(store):
    for name in (
        "p/.a.parquet.marker.CREATE.crc",
        "p/a.parquet",
        "p/a.parquet.marker.",
        "p/a.parquet.marker.DELETE",
        "p/a.parquet.marker.create",
    ):
        store.put(f"{FOLDER}/{name}", b"")
    assert read_markers(store, INSTANT) == ()


def test_an_unknown_type_is_refused(store):
    store.put(f"{FOLDER}/MARKERS.type", b"NEW_KIND")
    with pytest.raises(CorruptTableError, match="NEW_KIND") as caught:
        read_markers(store, INSTANT)
    assert caught.value.path == f"{FOLDER}/MARKERS.type"


def test_a_name_may_hold_the_suffix_twice(store):
    create_marker(store, INSTANT, marker("a.marker.CREATE", "b.parquet"))
    assert read_markers(store, INSTANT) == (marker("a.marker.CREATE", "b.parquet"),)


def test_markers_that_spark_left(tmp_path):
    store = LocalStore(str(unpack("v9_cow_inflight", tmp_path)))
    instant = InstantTime("20261201033917914")
    assert marker_folder(instant) == f".hoodie/.temp/{instant}"
    (found,) = read_markers(store, instant)
    assert found == marker("city=sf", f"bc9287ad-5d94-4b56-8b62-9da3daf9f033-0_0-1785-2860_{instant}.parquet")
    assert store.exists(found.path)
