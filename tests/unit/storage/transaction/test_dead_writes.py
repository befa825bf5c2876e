from __future__ import annotations

import io
import multiprocessing
import os
import time
import uuid

import fastavro
import pytest

from hudi_sql.config.lock import HeartbeatConfig
from hudi_sql.config.write import WriteConfig
from hudi_sql.storage.avro.payloads import PayloadKind, encode_payload
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.model.files import PartitionPath
from hudi_sql.storage.model.instant import Action, InstantTime, State
from hudi_sql.storage.properties.table_config import load_table_config
from hudi_sql.storage.timeline.clock import InstantClock
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.timeline.write import complete, create_inflight, create_requested
from hudi_sql.storage.transaction.markers import Marker, MarkerKind, create_marker
from hudi_sql.storage.transaction.rollback import roll_back_dead_writes
from tests.faulty_store import Crash, CrashAt, FaultyStore
from tests.golden_tables import unpack
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
DEAD = InstantTime("20260101000000000")
QUICK = WriteConfig(heartbeat=HeartbeatConfig(interval_ms=10, tolerable_misses=1))
GOLDEN_DEAD = InstantTime("20261201033917914")
GOLDEN_FILE = f"city=sf/bc9287ad-5d94-4b56-8b62-9da3daf9f033-0_0-1785-2860_{GOLDEN_DEAD}.parquet"


@pytest.fixture
def local(tmp_path):
    store = LocalStore(str(tmp_path / "t"))
    bare_table(store)
    return store


@pytest.fixture
def memory():
    store = MemoryStore(f"t{uuid.uuid4().hex}")
    bare_table(store)
    return store


@pytest.fixture
def golden(tmp_path):
    """A table with a pending commit of a Spark that died, the files as old as they say."""
    return LocalStore(str(unpack("v9_cow_inflight", tmp_path)))


def timeline(store):
    return load_timeline(store, load_table_config(store))


def roll_back(store, *, settings=SETTINGS, steps=None):
    config = load_table_config(store)
    seen = load_timeline(store, config)
    clock = InstantClock(config.timeline_zone)
    clock.observe(seen.newest_time)
    steps = steps or Steps()
    return roll_back_dead_writes(
        store,
        config,
        seen,
        clock=clock,
        heartbeat=settings.heartbeat,
        in_metadata=steps.steps().roll_back,
    )


def record(store, path):
    """What another Avro library reads, without our schemas."""
    (found,) = fastavro.reader(io.BytesIO(store.read(path)))
    return found


def data_files(store):
    return {path for path in files(store) if path.endswith(".parquet")}


def test_the_dead_commit_of_a_spark_is_rolled_back(golden):
    before = set(files(golden))
    steps = Steps()
    assert roll_back(golden, steps=steps) == 1
    after = set(files(golden))
    gone = {path for path in before - after if ".temp" not in path}
    assert gone == {
        GOLDEN_FILE,
        f"{TIMELINE}/{GOLDEN_DEAD}.commit.requested",
        f"{TIMELINE}/{GOLDEN_DEAD}.inflight",
    }
    assert not any(".temp" in path for path in after)
    (rollback,) = [item for item in timeline(golden).instants if item.action is Action.ROLLBACK]
    assert rollback.state is State.COMPLETED
    assert rollback.requested < rollback.completed
    assert after - before == {
        f"{TIMELINE}/{rollback.requested}.rollback.requested",
        f"{TIMELINE}/{rollback.requested}.rollback.inflight",
        f"{TIMELINE}/{rollback.requested}_{rollback.completed}.rollback",
    }
    assert steps.calls == [("roll_back", GOLDEN_DEAD, rollback.requested)]
    assert timeline(golden).pending == ()
    assert roll_back(golden) == 0


def test_plan_and_metadata_have_the_shape_of_sparks(golden, tmp_path):
    roll_back(golden)
    (mine,) = [item for item in timeline(golden).instants if item.action is Action.ROLLBACK]
    theirs_store = LocalStore(str(unpack("v9_cow_rolled_back", tmp_path)))
    (theirs,) = [item for item in timeline(theirs_store).instants if item.action is Action.ROLLBACK]
    plans, results = [], []
    for store, instant in ((golden, mine), (theirs_store, theirs)):
        plans.append(record(store, f"{TIMELINE}/{instant.requested}.rollback.requested"))
        results.append(record(store, f"{TIMELINE}/{instant.file_name}"))
        assert store.read(f"{TIMELINE}/{instant.requested}.rollback.inflight") == b""
    uri = f"{golden.uri}/{GOLDEN_FILE}"
    assert plans[0] == {
        "instantToRollback": {"commitTime": str(GOLDEN_DEAD), "action": "commit"},
        "RollbackRequests": [
            {
                "partitionPath": "city=sf",
                "fileId": "bc9287ad-5d94-4b56-8b62-9da3daf9f033-0",
                "latestBaseInstant": plans[0]["RollbackRequests"][0]["latestBaseInstant"],
                "filesToBeDeleted": [uri],
                "logBlocksToBeDeleted": {},
            }
        ],
        "version": 1,
    }
    assert plans[0].keys() == plans[1].keys()
    assert results[0]["startRollbackTime"] == str(mine.requested)
    assert results[0]["totalFilesDeleted"] == 1
    assert results[0]["commitsRollback"] == [str(GOLDEN_DEAD)]
    assert results[0]["partitionMetadata"] == {
        "city=sf": {
            "partitionPath": "city=sf",
            "successDeleteFiles": [uri],
            "failedDeleteFiles": [],
            "rollbackLogFiles": {},
            "logFilesFromFailedCommit": {},
        }
    }
    assert results[0]["instantsRollback"] == [{"commitTime": str(GOLDEN_DEAD), "action": "commit"}]
    assert results[0].keys() == results[1].keys()
    assert [results[0][key] for key in ("version",)] == [results[1]["version"]]
    for key, value in results[1].items():
        assert type(results[0][key]) is type(value), key


def test_the_next_commit_rolls_back_and_is_later(golden):
    done = commit_one(golden, partition="city=sf")
    (rollback,) = [item for item in timeline(golden).instants if item.action is Action.ROLLBACK]
    assert GOLDEN_DEAD < rollback.requested < rollback.completed < done.requested < done.completed
    assert not golden.exists(GOLDEN_FILE)


@pytest.mark.parametrize("what", ["requested", "inflight", "marker", "data"])
def test_a_spark_without_heartbeat_lives_while_anything_of_its_commit_is_fresh(golden, what):
    path = {
        "requested": f"{TIMELINE}/{GOLDEN_DEAD}.commit.requested",
        "inflight": f"{TIMELINE}/{GOLDEN_DEAD}.inflight",
        "marker": f".hoodie/.temp/{GOLDEN_DEAD}/{GOLDEN_FILE}.marker.CREATE",
        "data": GOLDEN_FILE,
    }[what]
    full = golden.local_path(path)
    recent = time.time() - 100
    os.utime(full, (recent, recent))
    before = files(golden)
    assert roll_back(golden) == 0
    assert files(golden) == before
    old = time.time() - 130
    os.utime(full, (old, old))
    assert roll_back(golden) == 1


@pytest.mark.parametrize(("seconds", "is_dead"), [(100, False), (130, True)])
def test_a_spark_with_heartbeat_lives_while_that_beats(golden, seconds, is_dead):
    path = f".hoodie/.heartbeat/{GOLDEN_DEAD}"
    golden.touch(path)
    when = time.time() - seconds
    os.utime(golden.local_path(path), (when, when))
    assert roll_back(golden) == int(is_dead)
    assert golden.exists(path) is not is_dead
    assert golden.exists(GOLDEN_FILE) is not is_dead


def test_the_heartbeats_of_others_stay(local):
    """B rolls D back; C must still see that A lives."""
    slow = transaction(local)
    slow.begin(Action.COMMIT)
    slow.start(PLANNED)
    stat = write_file(local, slow, file_id="slow-0")
    dead = transaction(local)
    dead.begin(Action.COMMIT)
    dead.start(PLANNED)
    lost = write_file(local, dead, file_id="dead-0")
    dead._let_go()
    second = commit_one(local, file_id="second-0")
    assert not local.exists(lost.path)
    assert local.exists(f".hoodie/.heartbeat/{slow.instant}")
    third = commit_one(local, file_id="third-0")
    first = slow.commit(committed(stat), BLIND)
    writes = timeline(local).completed_writes
    assert {item.requested for item in writes} == {item.requested for item in (first, second, third)}
    assert timeline(local).pending == ()
    assert len(data_files(local)) == 3


def write_until_killed(root, ready):
    store = LocalStore(root)
    writer = transaction(store)
    writer.begin(Action.COMMIT)
    writer.start(PLANNED)
    write_file(store, writer, file_id="killed-0")
    ready.put(str(writer.instant))
    time.sleep(60)


def test_a_killed_process_is_rolled_back_by_the_next_commit(local):
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Queue()
    process = spawn.Process(target=write_until_killed, args=(local.root, ready))
    process.start()
    try:
        instant = ready.get(timeout=30)
        commit_one(local, file_id="one-0")
        assert timeline(local).find(InstantTime(instant)).state is State.INFLIGHT
        assert any("killed-0" in path for path in data_files(local))
    finally:
        process.kill()
        process.join()
    commit_one(local, file_id="two-0")
    assert timeline(local).find(InstantTime(instant)) is None
    assert not any("killed-0" in path for path in files(local))
    assert len(data_files(local)) == 2


def pending(store, requested, action=Action.COMMIT, payload=b""):
    config = load_table_config(store)
    instant = create_requested(store, config, InstantTime(requested), action, payload)
    return create_inflight(store, config, instant)


def dead_file(store, instant, *, marked=True, partition="p", file_id="d-0"):
    name = f"{file_id}_0-0-0_{instant}.parquet"
    store.create(f"{partition}/{name}", b"x")
    if marked:
        create_marker(
            store,
            InstantTime(str(instant)),
            Marker(partition=PartitionPath(partition), file_name=name, kind=MarkerKind.CREATE),
        )
    return f"{partition}/{name}"


@pytest.mark.parametrize(
    "action", [Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT], ids=lambda action: action.value
)
@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_dead_writes_of_every_kind_and_state(memory, action, state):
    instant = pending(memory, DEAD.value, action)
    path = dead_file(memory, DEAD)
    if state == "requested":
        memory.delete(f"{TIMELINE}/{instant.file_name}")
    time.sleep(0.02)
    assert roll_back(memory, settings=QUICK) == 1
    assert not memory.exists(path)
    (rollback,) = timeline(memory).instants
    plan = record(memory, f"{TIMELINE}/{rollback.requested}.rollback.requested")
    assert plan["instantToRollback"]["action"] == action.value


@pytest.mark.parametrize(
    "action",
    [
        Action.COMPACTION,
        Action.LOG_COMPACTION,
        Action.CLUSTERING,
        Action.CLEAN,
        Action.INDEXING,
        Action.RESTORE,
    ],
    ids=lambda action: action.value,
)
def test_table_services_are_left_to_those_who_run_them(memory, action):
    pending(memory, DEAD.value, action)
    path = dead_file(memory, DEAD)
    before = files(memory)
    time.sleep(0.02)
    assert roll_back(memory, settings=QUICK) == 0
    assert files(memory) == before
    assert memory.exists(path)


def test_several_dead_writes_are_undone_newest_first(memory):
    instants = ["20260101000000000", "20260101000000001", "20260101000000002"]
    for instant in instants:
        pending(memory, instant)
        dead_file(memory, instant)
    time.sleep(0.02)
    steps = Steps()
    assert roll_back(memory, settings=QUICK, steps=steps) == 3
    assert [str(call[1]) for call in steps.calls] == instants[::-1]
    rollbacks = [call[2] for call in steps.calls]
    assert rollbacks == sorted(set(rollbacks))
    assert data_files(memory) == set()
    assert timeline(memory).pending == ()


def test_only_files_of_the_dead_instant_are_deleted(memory):
    """A marker names a file of another instant: whoever wrote that marker, the file is not his."""
    good = commit_one(memory, file_id="good-0")
    (kept,) = data_files(memory)
    pending(memory, "29990101000000000")
    create_marker(
        memory,
        InstantTime("29990101000000000"),
        Marker(partition=PartitionPath("p"), file_name=kept.rsplit("/", 1)[-1], kind=MarkerKind.MERGE),
    )
    for name in ("hoodie.properties", f"timeline/{good.file_name}"):
        create_marker(
            memory,
            InstantTime("29990101000000000"),
            Marker(partition=PartitionPath(".hoodie"), file_name=name, kind=MarkerKind.CREATE),
        )
    time.sleep(0.02)
    assert roll_back(memory, settings=QUICK) == 1
    assert memory.exists(kept)
    assert timeline(memory).completed_writes == (good,)


@pytest.mark.parametrize("is_after", [False, True])
def test_a_rollback_is_finished_wherever_its_writer_died(tmp_path, is_after):
    reference = LocalStore(str(unpack("v9_cow_inflight", tmp_path / "reference")))
    number = 0
    while True:
        number += 1
        store = LocalStore(str(unpack("v9_cow_inflight", tmp_path / str(number))))
        crash = CrashAt(number, after=is_after)
        try:
            roll_back(FaultyStore.crashing(store, crash))
        except Crash:
            pass
        else:
            break
        steps = Steps()
        roll_back(store, steps=steps)
        assert roll_back(store) == 0, crash.died_at
        assert timeline(store).pending == (), crash.died_at
        assert not store.exists(GOLDEN_FILE), crash.died_at
        assert data_files(store) == data_files(reference) - {GOLDEN_FILE}
        assert timeline(store).completed_writes == timeline(reference).completed_writes
        done = [item for item in timeline(store).completed if item.action is Action.ROLLBACK]
        assert done, crash.died_at
        for item in done:
            assert store.read(f"{TIMELINE}/{item.requested}.rollback.inflight") == b"", crash.died_at
        # The metadata table hears of it, unless the first attempt had told it and was past that.
        names = [f"{TIMELINE}/{item.requested}.rollback.requested" for item in done]
        assert {record(store, name)["instantToRollback"]["commitTime"] for name in names} == {
            str(GOLDEN_DEAD)
        }
        assert steps.calls or crash.count > 4, crash.died_at
    assert number > 6


def plan_of(instant, *uris, partition="p"):
    return encode_payload(
        PayloadKind.ROLLBACK_PLAN,
        {
            "instantToRollback": {"commitTime": str(instant), "action": "commit"},
            "RollbackRequests": [
                {
                    "partitionPath": partition,
                    "fileId": "d-0",
                    "latestBaseInstant": str(instant),
                    "filesToBeDeleted": list(uris),
                    "logBlocksToBeDeleted": {},
                }
            ],
            "version": 1,
        },
    )


def test_a_rollback_of_others_is_finished_by_its_plan_where_markers_are_gone(memory):
    """Spark plans the rollback of a completed commit by listing: there are no markers any more."""
    pending(memory, DEAD.value)
    path = dead_file(memory, DEAD, marked=False)
    plan = plan_of(DEAD, f"file:/elsewhere/table/{path}")
    pending(memory, "20260101000000009", Action.ROLLBACK, plan)
    assert roll_back(memory) == 1
    assert not memory.exists(path)
    (done,) = timeline(memory).instants
    assert done.action is Action.ROLLBACK
    assert done.state is State.COMPLETED
    result = record(memory, f"{TIMELINE}/{done.file_name}")
    assert result["partitionMetadata"]["p"]["successDeleteFiles"] == [f"{memory.uri}/{path}"]


def test_a_plan_deletes_no_files_of_other_instants(memory):
    commit_one(memory, file_id="good-0")
    (kept,) = data_files(memory)
    pending(memory, "29990101000000000")
    plan = plan_of("29990101000000000", f"{memory.uri}/{kept}")
    pending(memory, "29990101000000001", Action.ROLLBACK, plan)
    assert roll_back(memory) == 1
    assert memory.exists(kept)


@pytest.mark.parametrize("target", ["completed", "archived", "compaction"])
def test_rollbacks_that_are_not_ours_to_finish_are_left(memory, target):
    config = load_table_config(memory)
    path = dead_file(memory, DEAD, marked=False)
    if target == "completed":
        complete(memory, config, pending(memory, DEAD.value), InstantTime("20260101000000001"), b"")
    elif target == "archived":
        commit_one(memory, file_id="good-0")
    else:
        pending(memory, DEAD.value, Action.COMPACTION)
    plan = plan_of(DEAD, f"{memory.uri}/{path}")
    pending(memory, "20260101000000002", Action.ROLLBACK, plan)
    before = files(memory)
    steps = Steps()
    assert roll_back(memory, steps=steps) == 0
    assert files(memory) == before
    assert steps.calls == []


@pytest.mark.parametrize("payload", [b"", encode_payload(PayloadKind.ROLLBACK_PLAN, {"version": 1})])
def test_a_rollback_without_a_plan_is_left(memory, payload):
    pending(memory, "20260101000000002", Action.ROLLBACK, payload)
    before = files(memory)
    assert roll_back(memory) == 0
    assert files(memory) == before


def test_a_writer_that_comes_back_after_it_was_rolled_back_does_not_commit(memory):
    """Its heartbeat came too late once; it must notice before it completes."""
    late = transaction(memory, settings=QUICK)
    late.begin(Action.COMMIT)
    late.start(PLANNED)
    stat = write_file(memory, late)
    late._heartbeat._stop.set()
    time.sleep(0.05)
    commit_one(memory, file_id="b-0", settings=QUICK)
    with pytest.raises(Exception, match="rolled it back"):
        late.commit(committed(stat), BLIND)
    late.abort()
    assert len(timeline(memory).completed_writes) == 1
    assert not any("a-0" in path for path in files(memory))
