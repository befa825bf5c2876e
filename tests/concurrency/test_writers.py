"""Several writers and readers on one table, in processes and in threads."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import ConflictError
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.metadata.reader import MetadataTable
from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.model.instant import State
from hudi_sql.storage.properties.table_config import load_table_config
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.write.changes import Changes
from tests.concurrency.processes import SPAWN, run_processes
from tests.table_writes import (
    SCHEMA,
    change,
    check_consistent,
    insert,
    make_table,
    open_table,
    rows_of,
    values_by_listing,
    values_of,
)

ROUNDS = 8


@pytest.fixture
def local(tmp_path):
    return LocalStore(str(tmp_path / "t"))


@pytest.fixture
def memory():
    return MemoryStore(f"t{uuid.uuid4().hex}")


@pytest.fixture(params=["local", "memory"])
def store(request):
    return request.getfixturevalue(request.param)


def append_in_rounds(root, number, barrier, results):
    table = open_table(LocalStore(root))
    settings = WriteConfig(small_file_limit_bytes=0 if number else 1_000_000)
    done = []
    for turn in range(ROUNDS):
        barrier.wait(60)
        table.refresh()
        row = rows_of([turn * 10 + number], num_partitions=1)
        try:
            done.append((turn * 10 + number, str(insert(table, row, settings=settings).instant)))
        except ConflictError:
            done.append((turn * 10 + number, None))
    results.put((number, done))


def test_two_processes_insert_at_the_same_moments(local):
    make_table(local)
    results = run_processes(append_in_rounds, local.root)
    outcomes = [item for done in results.values() for item in done]
    committed = {key: instant for key, instant in outcomes if instant is not None}
    assert len(outcomes) == 2 * ROUNDS
    # The writer that only makes new file groups conflicts with nobody.
    assert all(instant is not None for _, instant in results[1])
    assert len(set(committed.values())) == len(committed)
    assert values_of(open_table(local)) == {key: f"v{key}" for key in committed}
    assert values_by_listing(local) == {key: f"v{key}" for key in committed}
    instants = load_timeline(local, load_table_config(local)).completed_writes
    assert {str(item.requested) for item in instants} == set(committed.values())
    assert len({item.completed for item in instants}) == len(instants)
    check_consistent(local)


def merge_new_keys(root, number, barrier, results):
    """The same job twice: rows whose keys are not there are inserted, the others updated."""
    table = open_table(LocalStore(root))
    keys = range(100)
    barrier.wait(60)
    for attempt in itertools.count(1):
        table.refresh()
        snapshot = table.snapshot()
        known = set(values_of(snapshot))
        if attempt == 1:
            barrier.wait(60)  # both have read the same table
        try:
            change(
                table,
                updated=[key for key in keys if key in known],
                inserts=rows_of([key for key in keys if key not in known]) if len(known) < 100 else None,
                value=f"w{number}-",
                snapshot=snapshot,
            )
        except ConflictError:
            continue
        results.put((number, attempt))
        return


def test_the_same_merge_started_twice_inserts_its_keys_once(local):
    make_table(local)
    attempts = run_processes(merge_new_keys, local.root)
    assert sorted(attempts.values()) == [1, 2]
    seen = values_of(open_table(local))
    assert set(seen) == set(range(100))
    late = max(attempts, key=attempts.get)
    assert set(seen.values()) == {f"w{late}-{key}" for key in range(100)}
    check_consistent(local)


def add_up(table, key, times):
    """Add one to a number, with the retries that a session makes."""
    for _ in range(times):
        while True:
            table.refresh()
            snapshot = table.snapshot()
            now = int(values_of(snapshot)[key].removeprefix("n").split("/")[0])
            try:
                change(table, updated=[key], value=f"n{now + 1}/", snapshot=snapshot)
            except ConflictError:
                continue
            break


def add_up_in_process(root, number, barrier, results):
    barrier.wait(60)
    add_up(open_table(LocalStore(root)), 0, 6)
    results.put((number, True))


def test_no_update_of_two_processes_is_lost(local):
    insert(make_table(local), rows_of([0, 1], value="n0/"))
    run_processes(add_up_in_process, local.root)
    assert values_of(open_table(local)) == {0: "n12/0", 1: "n0/1"}
    check_consistent(local)


def test_no_update_of_four_threads_is_lost(memory):
    insert(make_table(memory), rows_of([0, 1], value="n0/"))
    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(add_up, open_table(memory), 0, 3) for _ in range(4)]:
            future.result()
    assert values_of(open_table(memory)) == {0: "n12/0", 1: "n0/1"}
    check_consistent(memory)


def test_readers_see_whole_commits_only(store):
    """Two rows in two partitions always hold the same number."""
    insert(make_table(store), rows_of([0, 1], value="0/"))
    stop = threading.Event()
    torn, seen = [], set()

    def read():
        while not stop.is_set():
            for values in (values_of(open_table(store)), values_by_listing(store)):
                numbers = {text.split("/")[0] for text in values.values()}
                seen.update(numbers)
                if len(values) != 2 or len(numbers) != 1:
                    torn.append(values)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        table = open_table(store)
        for number in range(1, 9):
            change(table, updated=[0, 1], value=f"{number}/")
    finally:
        stop.set()
        reader.join()
    assert torn == []
    assert len(seen) > 2


def hang_in_the_source(root, number, barrier, results):
    table = open_table(LocalStore(root))

    def batches():
        yield rows_of(range(1000, 1010)).to_batches()[0]
        results.put((number, True))
        time.sleep(120)

    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    table.commit(
        table.snapshot(), Changes(operation=OperationType.INSERT, inserts=reader, reads_nothing=True)
    )


def test_a_killed_writer_is_cleared_away_by_the_next(local):
    table = make_table(local)
    insert(table, rows_of([1, 2]))
    results = SPAWN.Queue()
    process = SPAWN.Process(target=hang_in_the_source, args=(local.root, 0, None, results))
    process.start()
    try:
        results.get(timeout=60)
        insert(table, rows_of([3], value="w"))  # it lives: nothing of it is touched
        (pending,) = load_timeline(local, table.config).pending
        assert pending.state is State.INFLIGHT
    finally:
        process.kill()
        process.join()
    assert local.exists(f".hoodie/.heartbeat/{pending.requested}")
    insert(table, rows_of([4], value="w"))
    assert values_of(open_table(local)) == {1: "v1", 2: "v2", 3: "w3", 4: "w4"}
    assert not local.exists(f".hoodie/.heartbeat/{pending.requested}")
    check_consistent(local)


def test_statistics_cover_the_rows_of_appends_that_ran_at_once(memory):
    """Both appended to one partition: whoever skips by the statistics of partitions must find the rows of both."""
    table = make_table(memory)
    one, two = open_table(memory), open_table(memory)
    snapshot = two.snapshot()
    settings = WriteConfig(small_file_limit_bytes=0)
    insert(one, rows_of([10, 20], num_partitions=1), settings=settings)
    rows = rows_of([1, 2], num_partitions=1)
    two.commit(
        snapshot,
        Changes(operation=OperationType.INSERT, inserts=rows.to_reader(), reads_nothing=True),
        config=settings,
    )
    config = table.config
    metadata = MetadataTable.open(memory, config, load_timeline(memory, config))
    _, records = metadata._merged("partition_stats", lambda file: file.cells())
    (found,) = (
        item for item in records.field("ColumnStatsMetadata").to_pylist() if item["columnName"] == "id"
    )
    assert found["minValue"]["LongWrapper"]["value"] == 1
    assert found["maxValue"]["LongWrapper"]["value"] == 20
    assert found["valueCount"] == 4
    check_consistent(memory)
