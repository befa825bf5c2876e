from __future__ import annotations

import uuid

import pyarrow.parquet as pq
import pytest

from hudi_sql.storage.file_system_view import FileSystemView, StoreLister, load_replaced_groups
from hudi_sql.storage.fs.base import FileInfo
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.model.files import BaseFile, LogFile, PartitionPath, parse_file
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.properties.table_config import load_table_config, parse_table_config
from hudi_sql.storage.timeline.timeline import load_timeline, timeline_of_files
from tests.golden_tables import TABLES, expected, unpack

CONFIG = parse_table_config({"hoodie.table.name": "t"})
COW_TABLES = sorted(path.stem for path in TABLES.glob("v[89]_cow*.zip"))


def time(number):
    return InstantTime(f"202601010000{number:02}000")


def timeline(*names):
    files = [FileInfo(path=name, size_bytes=0, modified_ms=0, is_folder=False) for name in names]
    return timeline_of_files(files, CONFIG)


def commit(number, completed=None, action="commit"):
    return f"{time(number)}_{time(completed or number + 1)}.{action}"


def base(file_id, number, token="0-0-0"):
    return f"{file_id}_{token}_{time(number)}.parquet"


def log(file_id, number, version=1, cdc=""):
    return f".{file_id}_{time(number)}.log.{version}_0-0-0{cdc}"


class ListerOf:
    """Files by partition, as a metadata table would list them."""

    def __init__(self, **names):
        self.files = {
            PartitionPath(partition): tuple(parse_file(PartitionPath(partition), name, 1) for name in listed)
            for partition, listed in names.items()
        }

    def list_partitions(self):
        return tuple(sorted(self.files))

    def list_files(self, partitions):
        return {partition: self.files.get(partition, ()) for partition in partitions}


def view(lister, instants, *, version=9, replaced=()):
    return FileSystemView(lister, instants, table_version=version, replaced=frozenset(replaced))


def shape(slices):
    return [
        (s.file_id, s.instant, s.base_file and s.base_file.name, [file.name for file in s.log_files])
        for s in slices
    ]


def test_the_newest_committed_base_file_of_each_group_shows():
    lister = ListerOf(p=[base("b", 1), base("a", 1), base("a", 3), base("a", 5), base("c", 5)])
    found = view(lister, timeline(commit(1), commit(3), f"{time(5)}.inflight"))
    assert shape(found.latest_slices()) == [
        ("a", time(3), base("a", 3), []),
        ("b", time(1), base("b", 1), []),
    ]
    assert [s.instant for s in found.all_slices()] == [time(1), time(3), time(1)]
    assert [file.name for file in found.latest_base_files()] == [base("a", 3), base("b", 1)]


def test_files_of_archived_instants_show_and_of_lost_ones_do_not():
    lister = ListerOf(p=[base("a", 1), base("b", 5)])
    found = view(lister, timeline(commit(4), commit(6)))
    assert [s.file_id for s in found.latest_slices()] == ["a"]


def test_only_asked_partitions_are_listed():
    lister = ListerOf(p=[base("a", 1)], q=[base("b", 1)], r=[])
    found = view(lister, timeline(commit(1)))
    assert [s.file_id for s in found.latest_slices(["q", "r", "none", "q"])] == ["b"]
    assert found.latest_slices([]) == ()
    assert [s.partition for s in found.latest_slices()] == ["p", "q"]


def test_replaced_groups_are_out_of_sight_in_their_partition_only():
    lister = ListerOf(p=[base("a", 1)], q=[base("a", 1)])
    found = view(lister, timeline(commit(1)), replaced={("p", "a")})
    assert [(s.partition, s.file_id) for s in found.latest_slices()] == [("q", "a")]
    assert [(s.partition, s.file_id) for s in found.all_slices()] == [("q", "a")]


def test_time_travel_shows_the_older_slice():
    lister = ListerOf(p=[base("a", 1), base("a", 3), base("b", 3)])
    full = timeline(commit(1), commit(3))
    assert shape(view(lister, full.until(time(2))).latest_slices()) == [("a", time(1), base("a", 1), [])]
    assert len(view(lister, full.until(time(3))).latest_slices()) == 2
    assert view(lister, full.until(time(0))).latest_slices() == ()


def test_logs_join_the_newest_base_file_at_their_completion():
    lister = ListerOf(p=[base("a", 1), base("a", 5), log("a", 3), log("a", 4), log("a", 7), log("a", 9)])
    instants = timeline(
        commit(1),
        commit(3, 4, "deltacommit"),
        commit(4, 8, "deltacommit"),  # completed after the compaction of 5 was requested
        commit(5, 6),
        commit(7, 8, "deltacommit"),
        f"{time(9)}.deltacommit.inflight",
    )
    assert shape(view(lister, instants).all_slices()) == [
        ("a", time(1), base("a", 1), [log("a", 3)]),
        ("a", time(5), base("a", 5), [log("a", 4), log("a", 7)]),
    ]


def test_the_base_file_of_a_pending_compaction_is_ignored_and_its_logs_are_merged_below():
    lister = ListerOf(p=[base("a", 1), log("a", 2), base("a", 4), log("a", 5)])
    instants = timeline(
        commit(1), commit(2, 3, "deltacommit"), f"{time(4)}.compaction.inflight", commit(5, 6, "deltacommit")
    )
    assert shape(view(lister, instants).latest_slices()) == [
        ("a", time(1), base("a", 1), [log("a", 2), log("a", 5)])
    ]


def test_logs_are_in_merge_order_and_cdc_files_are_left_out():
    lister = ListerOf(p=[log("a", 3, 2), log("a", 3, 1), log("a", 1), log("a", 1, cdc=".cdc"), base("a", 1)])
    instants = timeline(commit(1), commit(3, action="deltacommit"))
    assert shape(view(lister, instants).latest_slices()) == [
        ("a", time(1), base("a", 1), [log("a", 1), log("a", 3, 1), log("a", 3, 2)])
    ]


def test_a_group_of_logs_has_no_base_file():
    lister = ListerOf(p=[log("a", 2), log("a", 4)])
    found = view(lister, timeline(commit(2, action="deltacommit"), commit(4, action="deltacommit")))
    assert shape(found.latest_slices()) == [("a", time(2), None, [log("a", 2), log("a", 4)])]
    assert found.latest_base_files() == ()


def test_logs_of_version_6_are_named_after_their_base_file():
    lister = ListerOf(p=[base("a", 1), log("a", 1), log("a", 1, 2), base("a", 5), log("a", 5), log("a", 7)])
    instants = timeline(commit(1), commit(5), f"{time(7)}.compaction.requested")
    assert shape(view(lister, instants, version=6).all_slices()) == [
        ("a", time(1), base("a", 1), [log("a", 1), log("a", 1, 2)]),
        ("a", time(5), base("a", 5), [log("a", 5), log("a", 7)]),
    ]


@pytest.mark.parametrize("turn", [1, -1])
def test_two_files_of_one_instant_are_told_apart_the_same_way_in_any_order(turn):
    lister = ListerOf(p=[base("a", 1, "0-1-1"), base("a", 1, "0-2-2")][::turn])
    assert [f.name for f in view(lister, timeline(commit(1))).latest_base_files()] == [base("a", 1, "0-2-2")]


def test_ten_thousand_files_are_grouped():
    names = [base(f"{number % 2500:08}-0", number // 2500 + 1) for number in range(10_000)]
    lister = ListerOf(p=names)
    instants = timeline(*(commit(number) for number in range(1, 5)))
    slices = view(lister, instants).latest_slices()
    assert len(slices) == 2500
    assert {s.instant for s in slices} == {time(4)}


@pytest.fixture
def store():
    return MemoryStore(f"t{uuid.uuid4().hex}")


def test_only_folders_with_the_metadata_file_are_partitions(store):
    for path in (
        "p=1/.hoodie_partition_metadata",
        "p=1/nested/.hoodie_partition_metadata",
        "p=2/.hoodie_partition_metadata.parquet",
        "p=3/" + base("a", 1),
        "p=4/.hoodie_partition_metadata.7f9c24e8-3b12-4fef-91d0-5d3f1a2b3c4d",
        ".hoodie/metadata/files/.hoodie_partition_metadata",
    ):
        store.put(path, b"")
    assert StoreLister(store).list_partitions() == ("p=1", "p=1/nested", "p=2")


def test_a_table_without_partitions_is_one_partition(store):
    store.put(".hoodie_partition_metadata", b"")
    store.put(base("a", 1), b"12345")
    lister = StoreLister(store)
    assert lister.list_partitions() == ("",)
    (file,) = lister.list_files([PartitionPath("")])[PartitionPath("")]
    assert (file.path, file.size_bytes) == (base("a", 1), 5)


def test_listing_takes_data_files_only(store):
    for name in (
        base("a", 1),
        log("a", 1),
        ".hoodie_partition_metadata",
        f".{base('a', 1)}.crc",
        "_SUCCESS",
        "x.parquet",
    ):
        store.put(f"p/{name}", b"")
    store.put(f"p/{base('b', 1)}/x", b"")  # a folder of that name
    files = StoreLister(store).list_files([PartitionPath("p"), PartitionPath("none")])
    assert {type(file) for file in files[PartitionPath("p")]} == {BaseFile, LogFile}
    assert sorted(file.name for file in files[PartitionPath("p")]) == [log("a", 1), base("a", 1)]
    assert files[PartitionPath("none")] == ()


def table_at(folder):
    store = LocalStore(str(folder))
    config = load_table_config(store)
    return store, config, load_timeline(store, config)


def num_rows(store, found):
    return sum(pq.read_metadata(store.open_input(file.path)).num_rows for file in found.latest_base_files())


@pytest.mark.parametrize("name", COW_TABLES)
def test_golden_tables_have_the_rows_that_spark_saw(name, tmp_path):
    want = expected(name)
    store, config, instants = table_at(unpack(name, tmp_path))
    lister = StoreLister(store)
    found = FileSystemView.load(lister, instants, store=store, config=config)
    assert num_rows(store, found) == want["snapshot"]["count"]
    for query in want["time_travel"] or []:
        if "count" not in query:
            continue  # Spark failed there
        past = FileSystemView.load(lister, instants.as_of(query["as_of"]), store=store, config=config)
        assert num_rows(store, past) == query["count"], query["as_of"]


def test_replacecommits_of_golden_tables_are_read(tmp_path):
    store, config, instants = table_at(unpack("v9_cow_overwrite_table", tmp_path))
    replaced = load_replaced_groups(store, config, instants)
    on_disk = {
        (file.partition, file.file_id)
        for files in StoreLister(store).list_files(StoreLister(store).list_partitions()).values()
        for file in files
    }
    assert replaced
    assert replaced < on_disk
    first = instants.instants[0].requested
    assert load_replaced_groups(store, config, instants.until(first)) == frozenset()


def test_an_empty_completed_commit_does_not_stop_reads(tmp_path):
    folder = unpack("v9_cow_hive", tmp_path)
    store, config, instants = table_at(folder)
    before = num_rows(store, FileSystemView.load(StoreLister(store), instants, store=store, config=config))
    (folder / ".hoodie/timeline/20301201000000000_20301201000001000.replacecommit").write_bytes(b"")
    (folder / ".hoodie/timeline/20301202000000000_20301202000001000.commit").write_bytes(b"")
    instants = load_timeline(store, config)
    assert instants.latest_completed_write.requested == InstantTime("20301202000000000")
    found = FileSystemView.load(StoreLister(store), instants, store=store, config=config)
    assert num_rows(store, found) == before
