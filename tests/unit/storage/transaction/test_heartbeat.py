from __future__ import annotations

import fcntl
import multiprocessing
import os
import socket
import time
import uuid

import pytest

from hudi_sql.config.lock import HeartbeatConfig
from hudi_sql.errors import ConflictError, ObjectExistsError, StorageError
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.transaction.heartbeat import Heartbeat, Pulse, read_pulse, remove_heartbeat
from tests.faulty_store import FaultyStore

INSTANT = InstantTime("20260101000000000")
PATH = f".hoodie/.heartbeat/{INSTANT}"
SLOW = HeartbeatConfig(interval_ms=60_000, tolerable_misses=2)
QUICK = HeartbeatConfig(interval_ms=20, tolerable_misses=5)


@pytest.fixture
def local(tmp_path):
    return LocalStore(str(tmp_path / "t"))


@pytest.fixture
def memory():
    return MemoryStore(f"t{uuid.uuid4().hex}")


@pytest.fixture(params=["local", "memory"])
def store(request):
    return request.getfixturevalue(request.param)


def age(store, seconds):
    full = store.local_path(PATH)
    when = time.time() - seconds
    os.utime(full, (when, when))


def test_a_running_writer_lives_and_a_finished_one_leaves_nothing(store):
    heartbeat = Heartbeat(store, INSTANT, SLOW)
    assert read_pulse(store, INSTANT, SLOW) is Pulse.NONE
    heartbeat.start()
    heartbeat.check_alive()
    assert read_pulse(store, INSTANT, SLOW) is Pulse.ALIVE
    heartbeat.stop(remove=True)
    assert read_pulse(store, INSTANT, SLOW) is Pulse.NONE
    assert list(store.walk("")) == []


def test_the_file_is_renewed(store):
    heartbeat = Heartbeat(store, INSTANT, QUICK)
    heartbeat.start()
    first = store.info(PATH).modified_ms
    content = store.read(PATH)
    time.sleep(0.15)
    assert store.info(PATH).modified_ms > first
    assert store.read(PATH) == content
    heartbeat.stop(remove=False)
    last = store.info(PATH).modified_ms
    time.sleep(0.06)
    assert store.info(PATH).modified_ms == last


def test_a_writer_that_stopped_is_dead_at_once_on_disk_and_after_a_while_elsewhere(local, memory):
    for store, first in ((local, Pulse.DEAD), (memory, Pulse.ALIVE)):
        heartbeat = Heartbeat(store, INSTANT, QUICK)
        heartbeat.start()
        heartbeat.stop(remove=False)
        assert read_pulse(store, INSTANT, QUICK) is first
    time.sleep(0.15)
    assert read_pulse(memory, INSTANT, QUICK) is Pulse.DEAD
    assert read_pulse(memory, INSTANT, SLOW) is Pulse.ALIVE


def test_a_stopped_writer_is_dead_although_a_forked_child_has_its_file_open(local):
    heartbeat = Heartbeat(local, INSTANT, SLOW)
    heartbeat.start()
    copy = os.dup(heartbeat._handle)
    heartbeat.stop(remove=False)
    assert read_pulse(local, INSTANT, SLOW) is Pulse.DEAD
    os.close(copy)


def test_a_living_writer_lives_although_its_file_is_old(local):
    heartbeat = Heartbeat(local, INSTANT, SLOW)
    heartbeat.start()
    age(local, 100_000)
    assert read_pulse(local, INSTANT, SLOW) is Pulse.ALIVE
    heartbeat.stop(remove=True)


def beat_until_killed(root, ready):
    Heartbeat(LocalStore(root), INSTANT, SLOW).start()
    ready.set()
    time.sleep(60)


def test_a_killed_process_is_dead_at_once(local):
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    process = spawn.Process(target=beat_until_killed, args=(local.root, ready))
    process.start()
    try:
        assert ready.wait(20)
        assert read_pulse(local, INSTANT, SLOW) is Pulse.ALIVE
    finally:
        process.kill()
        process.join()
    assert read_pulse(local, INSTANT, SLOW) is Pulse.DEAD
    assert local.exists(PATH)


@pytest.mark.parametrize("content", [b"", b"hudi_sql flock some-other-machine", b"\xff\xfe"])
def test_a_foreign_heartbeat_goes_by_its_age(local, content):
    local.create(PATH, content)
    assert read_pulse(local, INSTANT, SLOW) is Pulse.ALIVE
    age(local, 100)
    assert read_pulse(local, INSTANT, SLOW) is Pulse.ALIVE
    age(local, 121)
    assert read_pulse(local, INSTANT, SLOW) is Pulse.DEAD


def test_a_lock_held_for_reading_the_pulse_does_not_make_a_dead_writer_live(local):
    local.create(PATH, f"hudi_sql flock {socket.gethostname()}".encode())
    with open(local.local_path(PATH), "rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert read_pulse(local, INSTANT, SLOW) is Pulse.DEAD


def test_a_heartbeat_that_others_removed_is_noticed_and_not_made_again(store):
    heartbeat = Heartbeat(store, INSTANT, QUICK)
    heartbeat.start()
    remove_heartbeat(store, INSTANT)
    with pytest.raises(ConflictError, match="rolled it back"):
        heartbeat.check_alive()
    time.sleep(0.06)
    assert not store.exists(PATH)
    heartbeat.stop(remove=True)


def test_the_heartbeat_of_another_writer_is_not_taken(store):
    store.create(PATH, b"other")
    heartbeat = Heartbeat(store, INSTANT, SLOW)
    with pytest.raises(ObjectExistsError):
        heartbeat.start()
    assert not heartbeat.is_started
    heartbeat.stop(remove=False)
    assert store.read(PATH) == b"other"


def test_a_renewal_that_fails_is_tried_again(memory, caplog):
    fail = {"left": 2}

    def refuse(operation, path):
        if operation == "put" and fail["left"]:
            fail["left"] -= 1
            raise StorageError("no answer")

    heartbeat = Heartbeat(FaultyStore(memory, before=refuse), INSTANT, QUICK)
    heartbeat.start()
    first = memory.info(PATH).modified_ms
    time.sleep(0.15)
    heartbeat.stop(remove=True)
    assert fail["left"] == 0
    assert caplog.text.count("could not be renewed") == 2
    assert first > 0
    assert not memory.exists(PATH)


def test_removing_nothing_is_fine(store):
    remove_heartbeat(store, INSTANT)
