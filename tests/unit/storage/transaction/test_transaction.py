from __future__ import annotations

import threading
import time
import uuid

import pytest

from hudi_sql.config.lock import HeartbeatConfig, LockConfig, LockProvider
from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    LockError,
    ObjectExistsError,
    StorageError,
    TransientStorageError,
)
from hudi_sql.storage.avro.payloads import PayloadKind, decode_commit_metadata, encode_payload
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.model.files import PartitionPath
from hudi_sql.storage.model.instant import Action, InstantTime, State
from hudi_sql.storage.properties.table_config import load_table_config, update_table_config
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.timeline.write import create_inflight, create_requested
from hudi_sql.storage.transaction.conflicts import Footprint
from hudi_sql.storage.transaction.heartbeat import Pulse, read_pulse
from hudi_sql.storage.transaction.locks.provider import open_lock
from hudi_sql.storage.transaction.markers import MarkerKind
from hudi_sql.storage.transaction.transaction import pending_clustering_groups
from tests.faulty_store import FaultyStore
from tests.unit.storage.transaction.writers import (
    BLIND,
    PLANNED,
    SETTINGS,
    Steps,
    bare_table,
    commit_one,
    committed,
    files,
    transaction,
    write_file,
)

TIMELINE = ".hoodie/timeline"


@pytest.fixture
def local(tmp_path):
    return LocalStore(str(tmp_path / "t"))


@pytest.fixture
def memory():
    return MemoryStore(f"t{uuid.uuid4().hex}")


@pytest.fixture(params=["local", "memory"])
def store(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def table(store):
    bare_table(store)
    return store


def timeline(store):
    return load_timeline(store, load_table_config(store))


def begun(store, **options):
    writer = transaction(store, **options)
    writer.begin(Action.COMMIT)
    writer.start(PLANNED)
    return writer


def test_each_step_leaves_exactly_its_files(table):
    writer = transaction(table)
    writer.begin(Action.COMMIT)
    instant = writer.instant
    requested = f"{TIMELINE}/{instant}.commit.requested"
    beat = f".hoodie/.heartbeat/{instant}"
    assert files(table) == [beat, requested]
    assert table.read(requested) == b""

    writer.start(PLANNED)
    inflight = f"{TIMELINE}/{instant}.inflight"
    assert files(table) == [beat, requested, inflight]

    stat = write_file(table, writer, partition="p", file_id="a-0")
    marker = f".hoodie/.temp/{instant}/p/a-0_0-0-0_{instant}.parquet.marker.CREATE"
    data = ["p/.hoodie_partition_metadata", f"p/a-0_0-0-0_{instant}.parquet"]
    assert files(table) == [beat, marker, requested, inflight, *data]

    done = writer.commit(committed(stat), BLIND)
    assert done.state is State.COMPLETED
    assert done.requested == instant < done.completed
    completed = f"{TIMELINE}/{instant}_{done.completed}.commit"
    assert files(table) == sorted([requested, inflight, completed, *data])
    metadata = decode_commit_metadata(table.read(completed), completed)
    assert metadata.write_stats == (stat,)
    assert timeline(table).instants == (done,)
    assert writer.lock_held_ms > 0


def test_an_aborted_commit_leaves_its_partitions_only(table):
    steps = Steps()
    writer = begun(table, steps=steps)
    write_file(table, writer, partition="p")
    write_file(table, writer, partition="", file_id="b-0")
    writer.abort()
    assert files(table) == [".hoodie_partition_metadata", "p/.hoodie_partition_metadata"]
    assert steps.calls == []
    assert timeline(table).instants == ()
    writer.abort()  # once more does nothing


def test_an_abort_before_the_beginning_does_nothing(table):
    transaction(table).abort()
    assert files(table) == []


def test_an_abort_keeps_what_others_wrote(table):
    other = commit_one(table, file_id="other-0", partition="p")
    before = files(table)
    writer = begun(table)
    write_file(table, writer, partition="p")
    writer.abort()
    assert files(table) == before
    assert timeline(table).instants == (other,)


def test_the_metadata_table_is_written_before_the_instant_completes_and_discarded_after_a_failure(table):
    steps = Steps()
    done = commit_one(table, steps=steps)
    assert steps.calls == [("write", done.requested)]

    failing = Steps(fail=StorageError("full"))
    writer = begun(table, steps=failing)
    stat = write_file(table, writer, file_id="b-0")
    with pytest.raises(StorageError, match="full"):
        writer.commit(committed(stat), BLIND)
    writer.abort()
    assert failing.calls == [("write", writer.instant), ("discard", writer.instant)]
    assert not table.exists(stat.path)


def test_files_of_failed_attempts_are_deleted(table):
    writer = begun(table)
    stray = write_file(table, writer, file_id="stray-0")
    kept = write_file(table, writer, file_id="kept-0")
    writer.commit(committed(kept), BLIND)
    assert not table.exists(stray.path)
    assert table.exists(kept.path)


def test_marking_from_many_threads(table):
    writer = begun(table)
    names = [f"f{number}-0_0-0-0_{writer.instant}.parquet" for number in range(24)]
    partitions = [PartitionPath(f"p={number % 3}") for number in range(24)]
    threads = [
        threading.Thread(target=writer.mark, args=(partition, name, MarkerKind.CREATE))
        for partition, name in zip(partitions, names, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [path for path in files(table) if ".temp" in path]
    assert len(found) == 24
    for number in range(3):
        assert table.read(f"p={number}/.hoodie_partition_metadata").count(b"partitionDepth=1") == 1
    writer.abort()


# Time


def test_instants_grow_also_within_one_millisecond(table):
    done = [commit_one(table, file_id=f"f{number}-0") for number in range(5)]
    times = [time for instant in done for time in (instant.requested, instant.completed)]
    assert times == sorted(set(times))


def test_an_instant_is_later_than_all_that_stand_in_the_timeline(table):
    config = load_table_config(table)
    ahead = InstantTime("29991231235959999")
    create_requested(table, config, ahead, Action.CLEAN)
    done = commit_one(table)
    assert done.requested == InstantTime("30000101000000000")
    assert done.completed > done.requested


def test_a_completion_is_later_than_what_came_in_meanwhile(table):
    """Another writer, its clock ahead, drew an instant after this one began."""
    writer = begun(table)
    ahead = InstantTime("29991231235959999")
    create_requested(table, load_table_config(table), ahead, Action.CLEAN)
    done = writer.commit(committed(write_file(table, writer)), BLIND)
    assert done.completed > ahead


def test_a_completion_is_later_than_that_of_the_metadata_table(table):
    class Ahead(Steps):
        def _write(self, instant, metadata):
            return InstantTime("29991231235959999")

    done = commit_one(table, steps=Ahead())
    assert done.completed > InstantTime("29991231235959999")


@pytest.fixture
def zone(monkeypatch):
    def use(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield use
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("setting", "hours"), [("UTC", 0), ("LOCAL", 9)])
def test_instants_are_in_the_zone_of_the_table(store, zone, setting, hours):
    zone("Asia/Seoul")
    bare_table(store, zone=setting)
    done = commit_one(store)
    expected = time.strftime("%Y%m%d%H", time.gmtime(time.time() + hours * 3600))
    assert done.requested.value[:10] == expected
    assert done.requested < done.completed


@pytest.mark.parametrize("setting", ["UTC", "LOCAL"])
def test_instants_grow_over_writers_of_all_zones_and_over_the_hour_that_comes_twice(
    store, zone, monkeypatch, setting
):
    bare_table(store, zone=setting)
    now = {"ms": 1793507400_000}  # 2026-11-01 00:30 in New York, half an hour before 01:00 EDT
    monkeypatch.setattr("hudi_sql.storage.timeline.clock._system_ms", lambda: now["ms"])
    times = []
    for number, name in enumerate(["America/New_York"] * 5 + ["Asia/Seoul", "UTC", "America/New_York"]):
        zone(name)
        done = commit_one(store, file_id=f"f{number}-0")
        times += [done.requested, done.completed]
        now["ms"] += 30 * 60_000
    assert times == sorted(set(times))
    if setting == "UTC":
        assert [time.value[8:12] for time in times[:6:2]] == ["0430", "0500", "0530"]


# What may not be overlooked when completing


def test_a_changed_group_is_a_conflict_and_the_commit_leaves_no_trace(table):
    first = commit_one(table, file_id="a-0")
    writer = begun(table)
    stat = write_file(table, writer, file_id="a-0", previous=str(first.requested))
    other = commit_one(table, file_id="a-0")
    group = Footprint(
        file_groups=frozenset({(stat.partition, stat.file_id)}),
        read_partitions=frozenset(),
        reads_nothing=True,
        inserted_partitions=frozenset(),
        keys_are_new=False,
    )
    with pytest.raises(ConflictError) as caught:
        writer.commit(committed(stat), group)
    assert caught.value.other_instant == other.requested
    writer.abort()
    assert not table.exists(stat.path)
    assert timeline(table).instants == (first, other)


def test_blind_appends_do_not_conflict(table):
    writer = begun(table)
    stat = write_file(table, writer, file_id="a-0")
    other = commit_one(table, file_id="b-0")
    mine = writer.commit(committed(stat), BLIND)
    assert mine.requested < other.requested < other.completed < mine.completed


@pytest.mark.parametrize("lost", ["inflight", "heartbeat", "data"])
def test_a_commit_that_others_rolled_back_is_not_completed(table, lost):
    writer = begun(table)
    stat = write_file(table, writer)
    path = {
        "inflight": f"{TIMELINE}/{writer.instant}.inflight",
        "heartbeat": f".hoodie/.heartbeat/{writer.instant}",
        "data": stat.path,
    }[lost]
    table.delete(path)
    with pytest.raises(ConflictError, match="rolled"):
        writer.commit(committed(stat), BLIND)
    writer.abort()
    assert timeline(table).instants == ()
    assert not table.exists(stat.path)


@pytest.mark.parametrize(
    "changes",
    [
        {"hoodie.table.metadata.partitions": "files"},
        {"hoodie.table.recordkey.fields": "id"},
        {"hoodie.table.partition.fields": "p"},
    ],
)
@pytest.mark.parametrize("when", ["begin", "commit"])
def test_properties_that_changed_are_a_conflict(table, changes, when):
    writer = transaction(table)
    if when == "commit":
        writer.begin(Action.COMMIT)
        writer.start(PLANNED)
    update_table_config(table, changes)
    step = (
        (lambda: writer.commit(committed(), BLIND))
        if when == "commit"
        else (lambda: writer.begin(Action.COMMIT))
    )
    with pytest.raises(ConflictError, match="properties"):
        step()
    writer.abort()
    assert timeline(table).instants == ()


def test_harmless_properties_may_change(table):
    writer = begun(table)
    update_table_config(table, {"hoodie.some.thing": "x"})
    writer.commit(committed(write_file(table, writer)), BLIND)


def test_a_table_that_spark_upgraded_is_a_conflict(store):
    bare_table(store)
    update_table_config(store, {"hoodie.table.version": "8", "hoodie.table.initial.version": "8"})
    writer = begun(store)
    update_table_config(store, {"hoodie.table.version": "9"})
    with pytest.raises(ConflictError):
        writer.commit(committed(), BLIND)


def clustering_plan(groups):
    return encode_payload(
        PayloadKind.REPLACE_REQUESTED,
        {
            "operationType": "CLUSTER",
            "clusteringPlan": {
                "inputGroups": [
                    {"slices": [{"partitionPath": partition, "fileId": file_id}]}
                    for partition, file_id in groups
                ],
            },
        },
    )


@pytest.mark.parametrize("is_inflight", [False, True])
def test_a_group_of_a_pending_clustering_is_not_changed(table, is_inflight):
    config = load_table_config(table)
    first = commit_one(table, file_id="a-0")
    writer = begun(table)
    stat = write_file(table, writer, file_id="a-0", previous=str(first.requested))
    pending = create_requested(
        table, config, InstantTime("29990101000000000"), Action.CLUSTERING, clustering_plan([("p", "a-0")])
    )
    if is_inflight:
        create_inflight(table, config, pending)
    assert pending_clustering_groups(table, config, timeline(table)) == {pending.requested: {("p", "a-0")}}
    footprint = Footprint(
        file_groups=frozenset({(stat.partition, stat.file_id)}),
        read_partitions=frozenset(),
        reads_nothing=True,
        inserted_partitions=frozenset(),
        keys_are_new=False,
    )
    with pytest.raises(ConflictError, match="clustering") as caught:
        writer.commit(committed(stat), footprint)
    assert not caught.value.retryable
    writer.abort()
    commit_one(table, file_id="b-0")  # other groups are free


def test_a_clustering_whose_plan_vanished_is_over(table):
    config = load_table_config(table)
    pending = create_requested(table, config, InstantTime("20200101000000000"), Action.CLUSTERING)
    create_inflight(table, config, pending)
    table.delete(f"{TIMELINE}/{pending.file_name}")
    assert pending_clustering_groups(table, config, timeline(table)) == {}


# Locks


def test_nothing_begins_while_another_holds_the_lock(table):
    settings = WriteConfig(lock=LockConfig(wait_ms=20))
    lock = open_lock(table, settings.lock)
    lock.acquire()
    with pytest.raises(LockError):
        transaction(table, settings=settings).begin(Action.COMMIT)
    assert files(table) == []
    lock.release()


def test_a_commit_that_cannot_get_the_lock_is_left_to_the_next_writer(local):
    bare_table(local)
    settings = WriteConfig(lock=LockConfig(wait_ms=20))
    writer = begun(local, settings=settings)
    stat = write_file(local, writer)
    lock = open_lock(local, settings.lock)
    lock.acquire()
    with pytest.raises(LockError):
        writer.commit(committed(stat), BLIND)
    writer.abort()  # cannot either, and says nothing: the first error is the one that counts
    lock.release()
    assert local.exists(stat.path)
    assert read_pulse(local, writer.instant, settings.heartbeat) is Pulse.DEAD
    commit_one(local, file_id="b-0")
    assert not local.exists(stat.path)
    assert timeline(local).find(writer.instant) is None


def test_a_lock_lost_before_the_last_step_leaves_no_commit(memory):
    bare_table(memory)
    settings = WriteConfig(lock=LockConfig(wait_ms=500, provider=LockProvider.FILE))

    class Thief(Steps):
        def _write(self, instant, metadata):
            super()._write(instant, metadata)
            memory.put(".hoodie/lock", b"")

    steps = Thief()
    writer = begun(memory, settings=settings, steps=steps)
    stat = write_file(memory, writer)
    with pytest.raises(LockError, match="taken over"):
        writer.commit(committed(stat), BLIND)
    assert [instant.state for instant in timeline(memory).instants] == [State.INFLIGHT]
    memory.delete(".hoodie/lock")
    writer.abort()
    assert steps.calls[-1] == ("discard", writer.instant)
    assert files(memory) == ["p/.hoodie_partition_metadata"]


def test_a_lock_that_cannot_be_given_back_does_not_undo_the_commit(memory, caplog):
    bare_table(memory)

    def refuse(operation, path):
        if operation == "delete" and path == ".hoodie/lock":
            raise TransientStorageError("no answer")

    settings = WriteConfig(lock=LockConfig(wait_ms=500, provider=LockProvider.FILE))
    faulty = FaultyStore(memory)
    writer = begun(faulty, settings=settings)
    stat = write_file(faulty, writer)
    faulty.before = refuse
    done = writer.commit(committed(stat), BLIND)
    writer.abort()
    assert timeline(memory).instants == (done,)
    assert memory.exists(stat.path)
    assert "could not be given back" in caplog.text


# The last step


class Completion:
    """Fails the creation of completed files."""

    def __init__(self, error, times=1):
        self.error = error
        self.left = times

    def __call__(self, operation, path):
        if operation == "create" and path.endswith(".commit") and self.left:
            self.left -= 1
            raise self.error


@pytest.mark.parametrize("error", [TransientStorageError("503"), ObjectExistsError("412"), StorageError("?")])
def test_a_completion_whose_answer_was_lost_is_read_back(table, error):
    faulty = FaultyStore(table)
    writer = begun(faulty)
    stat = write_file(faulty, writer)
    faulty.after = Completion(error)
    done = writer.commit(committed(stat), BLIND)
    assert faulty.after.left == 0
    assert timeline(table).instants == (done,)
    assert [path for path in files(table) if ".temp" in path or ".heartbeat" in path] == []


def outcome_unknown(table, faulty, writer, stat):
    with pytest.raises(CommitOutcomeUnknownError) as caught:
        writer.commit(committed(stat), BLIND)
    assert caught.value.instant == writer.instant
    before = files(table)
    writer.abort()
    assert files(table) == before
    assert table.exists(stat.path)
    assert any(".temp" in path for path in before)
    assert any(path.endswith(".inflight") for path in before)


def test_a_completion_that_was_refused_for_now_may_still_arrive_and_deletes_nothing(table):
    faulty = FaultyStore(table)
    writer = begun(faulty)
    stat = write_file(faulty, writer)
    faulty.before = Completion(TransientStorageError("503"))
    outcome_unknown(table, faulty, writer, stat)


def test_a_completion_that_cannot_be_read_back_deletes_nothing(table):
    faulty = FaultyStore(table)
    writer = begun(faulty)
    stat = write_file(faulty, writer)
    faulty.after = Completion(TransientStorageError("503"))

    def refuse(operation, path):
        if operation == "read" and path.endswith(".commit"):
            raise TransientStorageError("503")

    faulty.check = refuse
    outcome_unknown(table, faulty, writer, stat)
    assert [instant.state for instant in timeline(table).instants] == [State.COMPLETED]


def test_a_completed_file_of_another_writer_in_our_place_deletes_nothing(table):
    faulty = FaultyStore(table)
    writer = begun(faulty)
    stat = write_file(faulty, writer)

    def overtake(operation, path):
        if operation == "create" and path.endswith(".commit"):
            table.create(path, b"theirs")

    faulty.before = overtake
    outcome_unknown(table, faulty, writer, stat)


def test_the_next_writer_resolves_what_was_left_unknown(local):
    bare_table(local)
    faulty = FaultyStore(local)
    writer = begun(faulty)
    stat = write_file(faulty, writer)
    faulty.before = Completion(TransientStorageError("503"))
    with pytest.raises(CommitOutcomeUnknownError):
        writer.commit(committed(stat), BLIND)
    assert read_pulse(local, writer.instant, SETTINGS.heartbeat) is Pulse.DEAD
    done = commit_one(local, file_id="b-0")
    assert not local.exists(stat.path)
    assert timeline(local).completed_writes == (done,)


def test_a_completion_that_the_disk_refused_is_undone(local):
    bare_table(local)
    faulty = FaultyStore(local)
    writer = begun(faulty)
    stat = write_file(faulty, writer)
    faulty.before = Completion(StorageError("no space left"))
    with pytest.raises(StorageError, match="no space"):
        writer.commit(committed(stat), BLIND)
    writer.abort()
    assert files(local) == ["p/.hoodie_partition_metadata"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_interrupt_in_the_last_step_deletes_nothing(table, moment):
    faulty = FaultyStore(table)
    writer = begun(faulty)
    stat = write_file(faulty, writer)
    setattr(faulty, moment, Completion(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        writer.commit(committed(stat), BLIND)
    writer.abort()
    assert table.exists(stat.path)
    state = State.COMPLETED if moment == "after" else State.INFLIGHT
    assert [instant.state for instant in timeline(table).instants] == [state]


def test_an_interrupt_after_the_last_step_deletes_nothing(table):
    faulty = FaultyStore(table)
    writer = begun(faulty)
    stat = write_file(faulty, writer)

    def interrupt(operation, path):
        if operation == "delete_tree":
            raise KeyboardInterrupt

    faulty.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        writer.commit(committed(stat), BLIND)
    faulty.before = lambda operation, path: None
    writer.abort()
    assert table.exists(stat.path)
    assert len(timeline(table).completed) == 1


@pytest.mark.parametrize("operation", ["delete_tree", "delete"])
def test_leftovers_do_not_fail_a_commit(table, caplog, operation):
    faulty = FaultyStore(table)
    writer = begun(faulty)
    stat = write_file(faulty, writer)

    def refuse(called, path):
        if called == operation and (".temp" in path or ".heartbeat" in path):
            raise StorageError("refused")

    faulty.before = refuse
    done = writer.commit(committed(stat), BLIND)
    assert timeline(table).instants == (done,)
    assert "left behind" in caplog.text


# The first steps


def test_an_instant_that_another_drew_without_our_lock_is_passed_over(table):
    taken = []

    def overtake(operation, path):
        if operation == "create" and path.endswith(".commit.requested") and len(taken) < 2:
            table.create(path, b"")
            taken.append(path.rsplit("/", 1)[-1].split(".")[0])

    faulty = FaultyStore(table, before=overtake)
    writer = begun(faulty)
    assert len(taken) == 2
    assert writer.instant.value > max(taken)
    assert [path for path in files(table) if "heartbeat" in path] == [f".hoodie/.heartbeat/{writer.instant}"]
    writer.abort()


def test_drawing_instants_ends(table):
    def overtake(operation, path):
        if operation == "create" and path.endswith(".commit.requested"):
            table.create(path, b"")

    with pytest.raises(ConflictError, match="No free instant"):
        transaction(FaultyStore(table, before=overtake)).begin(Action.COMMIT)
    assert not any("heartbeat" in path for path in files(table))


@pytest.mark.parametrize("state", ["requested", "inflight"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_server_error_in_an_early_step_is_an_error_and_the_table_stays_writable(local, state, moment):
    bare_table(local)

    def fail(operation, path):
        if operation == "create" and path.endswith(f".{state}"):
            raise TransientStorageError("503")

    faulty = FaultyStore(local, **{moment: fail})
    settings = WriteConfig(heartbeat=HeartbeatConfig(interval_ms=10, tolerable_misses=1))
    writer = transaction(faulty, settings=settings)
    if state == "inflight":
        writer.begin(Action.COMMIT)
    step = writer.start if state == "inflight" else writer.begin
    with pytest.raises(TransientStorageError):
        step(PLANNED if state == "inflight" else Action.COMMIT)
    writer.abort()
    assert not any("heartbeat" in path for path in files(local))
    time.sleep(0.03)
    done = commit_one(local, settings=settings)
    assert timeline(local).completed_writes == (done,)
    assert timeline(local).pending == ()
