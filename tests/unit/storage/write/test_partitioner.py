from __future__ import annotations

import itertools

from hudi_sql.config.write import WriteConfig
from hudi_sql.storage.model.commit import CommitMetadata, OperationType, WriteStat
from hudi_sql.storage.model.files import BaseFile, FileId, FileSlice, LogFile, PartitionPath
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.write.partitioner import average_record_bytes, bins, new_file_id

INSTANT = InstantTime("20260101000000000")
P = PartitionPath("p")


def piece(file_id, size, *, log=False, has_base=True):
    base = BaseFile(
        partition=P,
        name=f"{file_id}_0-0-0_{INSTANT}.parquet",
        size_bytes=size,
        file_id=FileId(file_id),
        write_token="0-0-0",
        instant=INSTANT,
    )
    logs = (
        (
            LogFile(
                partition=P,
                name="x",
                size_bytes=1,
                file_id=FileId(file_id),
                write_token="0-0-0",
                instant=INSTANT,
                version=1,
                is_cdc=False,
            ),
        )
        if log
        else ()
    )
    return FileSlice(
        partition=P,
        file_id=FileId(file_id),
        instant=INSTANT,
        base_file=base if has_base else None,
        log_files=logs,
    )


def first_bins(slices, count, *, record_bytes=10, **settings):
    found = bins(P, lambda partition: slices, record_bytes=record_bytes, config=WriteConfig(**settings))
    return [
        (item.slice.file_id if item.slice else None, item.num_rows) for item in itertools.islice(found, count)
    ]


def test_small_files_first_then_new_groups_without_end():
    slices = [piece("a", 50), piece("b", 100), piece("c", 99)]
    assert first_bins(slices, 5, max_file_size_bytes=1000, small_file_limit_bytes=100) == [
        ("a", 95),
        ("c", 90),
        (None, 100),
        (None, 100),
        (None, 100),
    ]


def test_files_without_room_or_base_or_with_logs_get_no_rows():
    slices = [piece("a", 50, log=True), piece("b", 1, has_base=False), piece("c", 95)]
    assert first_bins(slices, 1, max_file_size_bytes=100, small_file_limit_bytes=100) == [(None, 10)]


def test_a_limit_of_zero_always_makes_new_groups():
    assert first_bins([piece("a", 0)], 1, max_file_size_bytes=100, small_file_limit_bytes=0) == [(None, 10)]


def test_a_row_larger_than_a_file_gets_a_file():
    assert first_bins([], 1, record_bytes=1000, max_file_size_bytes=100) == [(None, 1)]


def test_groups_of_a_fixed_number_of_rows():
    assert first_bins([], 2, auto_split=False, split_rows=7) == [(None, 7), (None, 7)]


def commit(size, rows):
    stat = WriteStat(
        partition=P,
        file_id=FileId("a"),
        path="p/a",
        previous_commit="null",
        num_writes=rows,
        num_inserts=rows,
        num_update_writes=0,
        num_deletes=0,
        file_size_bytes=size,
    )
    return CommitMetadata(operation=OperationType.INSERT, write_stats=(stat,))


def test_the_size_of_a_row_is_that_of_the_newest_large_commit():
    config = WriteConfig(small_file_limit_bytes=100, record_size_bytes=1024)
    assert average_record_bytes([], config) == 1024
    assert average_record_bytes([commit(100, 10)], config) == 1024  # not above the threshold
    assert average_record_bytes([commit(101, 10)], config) == 11
    assert average_record_bytes([commit(50, 10), commit(1000, 10), commit(9000, 10)], config) == 100
    assert average_record_bytes([commit(500, 0), commit(400, 100)], config) == 4
    assert average_record_bytes([CommitMetadata(operation=OperationType.DELETE)], config) == 1024
    half = WriteConfig(small_file_limit_bytes=100, record_size_threshold=0.5)
    assert average_record_bytes([commit(60, 10)], half) == 6


def test_only_as_many_commits_as_needed_are_read():
    def commits():
        yield commit(1000, 10)
        raise AssertionError("read too far")

    assert average_record_bytes(commits(), WriteConfig(small_file_limit_bytes=100)) == 100


def test_new_file_ids_differ():
    ids = {new_file_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(item.endswith("-0") and len(item) == 38 for item in ids)


def test_file_ids_are_no_buckets(monkeypatch):
    drawn = iter(["00062809-25c2-45f4-9532-cbed74cb4d54", "1a062809-25c2-45f4-9532-cbed74cb4d54"])
    monkeypatch.setattr("hudi_sql.storage.write.partitioner.uuid.uuid4", lambda: next(drawn))
    assert new_file_id() == "1a062809-25c2-45f4-9532-cbed74cb4d54-0"
