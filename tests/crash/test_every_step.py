"""A writer that dies, or whose store fails, at every single step of a commit."""

from __future__ import annotations

import itertools
import shutil
import time
import uuid

import pytest

from hudi_sql.config.lock import HeartbeatConfig
from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import CommitOutcomeUnknownError, HudiSqlError, TransientStorageError
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.properties.table_config import load_table_config
from hudi_sql.storage.timeline.timeline import load_timeline
from tests.faulty_store import Crash, CrashAt, FaultyStore
from tests.table_writes import (
    change,
    check_consistent,
    insert,
    make_table,
    open_table,
    rows_of,
    values_by_listing,
    values_of,
)

# A writer that dies leaves half-written Parquet files, whose finalizers then complain that their store is gone.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

# One thread, and no second heartbeat: the steps of a commit come in one order.
DYING = WriteConfig(parallelism=1)
# To this writer those in memory are dead soon.
SETTINGS = WriteConfig(heartbeat=HeartbeatConfig(interval_ms=40, tolerable_misses=1))
OLD = {number: f"v{number}" for number in range(4)}


def insert_rows(table):
    """Rows for a group that is there, and for a new partition."""
    insert(table, rows_of([4, 8, 5], num_partitions=3), settings=DYING)


def update_rows(table):
    """Update in one group, delete and insert in the other."""
    change(table, updated=[0], deleted=[1], inserts=rows_of([7]), settings=DYING)


WRITES = {
    "insert": (insert_rows, OLD | {4: "v4", 8: "v8", 5: "v5"}),
    "update": (update_rows, {0: "u0", 2: "v2", 3: "v3", 7: "v7"}),
}


def fill(store):
    insert(make_table(store), rows_of(OLD), settings=SETTINGS)


def look(store, new):
    """What readers see now: the old or the new rows, in every way of reading."""
    seen = values_of(open_table(store))
    assert seen in (OLD, new)
    assert values_by_listing(store) == seen
    return seen


def recover(store, seen):
    """The next write works, brings its row, and leaves nothing of the dead one."""
    insert(open_table(store), rows_of([100]), settings=SETTINGS)
    want = seen | {100: "v100"}
    assert values_of(open_table(store)) == want
    assert values_by_listing(store) == want
    check_consistent(store, after_crash=True)


@pytest.fixture
def fresh(request, tmp_path):
    """Gives new copies of one table."""
    numbers = itertools.count()
    if request.param == "local":
        fill(LocalStore(str(tmp_path / "first")))

        def copy():
            folder = tmp_path / str(next(numbers))
            shutil.copytree(tmp_path / "first", folder)
            return LocalStore(str(folder))

        return copy
    first = MemoryStore(f"t{uuid.uuid4().hex}")
    fill(first)

    def copy_in_memory():
        store = MemoryStore(f"t{uuid.uuid4().hex}")
        for info in first.walk(""):
            store.put(info.path, first.read(info.path))
        return store

    return copy_in_memory


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(("fresh", "is_after"), [("local", False), ("memory", True)], indirect=["fresh"])
def test_a_writer_that_dies(fresh, name, is_after):
    write, new = WRITES[name]
    outcomes = []
    for number in itertools.count(1):
        store = fresh()
        crash = CrashAt(number, after=is_after)
        try:
            write(open_table(FaultyStore.crashing(store, crash)))
        except Crash:
            pass
        else:
            assert not crash.is_dead
            break
        seen = look(store, new)
        outcomes.append(seen == new)
        if store.local_path("") is None:
            time.sleep(0.05)
        recover(store, seen)
    # Old up to one step, new from there on; the last steps only tidy up.
    assert outcomes == sorted(outcomes)
    assert len(outcomes) > 15
    assert outcomes.count(True) in range(1, 6)


@pytest.mark.parametrize("is_after", [False, True])
def test_a_first_writer_that_dies(is_after):
    """The first write to a table without a metadata table makes that too."""
    outcomes = []
    for number in itertools.count(1):
        store = MemoryStore(f"t{uuid.uuid4().hex}")
        make_table(store, settings=WriteConfig(metadata_enable=False))
        crash = CrashAt(number, after=is_after)
        try:
            insert(open_table(FaultyStore.crashing(store, crash)), rows_of([1, 2]), settings=DYING)
        except Crash:
            pass
        else:
            assert not crash.is_dead
            break
        seen = values_of(open_table(store))
        assert seen in ({}, {1: "v1", 2: "v2"})
        assert values_by_listing(store) == seen
        outcomes.append(bool(seen))
        time.sleep(0.05)
        recover(store, seen)
        assert load_table_config(store).metadata_partitions == {"files", "column_stats", "partition_stats"}
    assert outcomes == sorted(outcomes)
    assert len(outcomes) > 25
    assert any(outcomes)


@pytest.mark.parametrize("fresh", ["memory"], indirect=True)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_store_that_fails_once(fresh, moment):
    """The writer lives on: it says how it ended, and leaves the table as it says."""
    write, new = WRITES["update"]
    kinds = set()
    for number in itertools.count(1):
        store = fresh()
        count = itertools.count(1)

        def fail(operation, path, number=number, count=count):
            if next(count) == number:
                raise TransientStorageError(f"{operation} {path}")

        try:
            write(open_table(FaultyStore(store, **{moment: fail})))
        except HudiSqlError as exc:
            kinds.add(type(exc))
            seen = look(store, new)
            if not isinstance(exc, CommitOutcomeUnknownError):
                assert seen == OLD
        else:
            seen = look(store, new)
            assert seen == new
            if next(count) <= number:
                break
        time.sleep(0.05)
        recover(store, seen)
    assert TransientStorageError in kinds
    assert (CommitOutcomeUnknownError in kinds) is (moment == "before")


@pytest.mark.parametrize("fresh", ["local"], indirect=True)
def test_a_writer_that_dies_while_it_recovers(fresh):
    """Two deaths: one in the last step before completion, the second at every step of the next writer."""
    write, _ = WRITES["update"]
    for number in itertools.count(1):
        store = fresh()

        def die(operation, path):
            if operation == "create" and path.startswith(".hoodie/timeline/") and path.endswith(".commit"):
                raise Crash

        with pytest.raises(Crash):
            write(open_table(FaultyStore(store, before=die)))
        assert len(load_timeline(store, open_table(store).config).pending) == 1
        crash = CrashAt(number, after=False)
        try:
            insert(open_table(FaultyStore.crashing(store, crash)), rows_of([50]), settings=DYING)
        except Crash:
            pass
        else:
            break
        seen = values_of(open_table(store))
        assert seen in (OLD, OLD | {50: "v50"})
        assert values_by_listing(store) == seen
        recover(store, seen)
    assert number > 30
