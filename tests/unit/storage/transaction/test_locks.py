from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
import uuid

import pytest

from hudi_sql.config.lock import LockConfig, LockProvider
from hudi_sql.errors import (
    ConfigError,
    LockError,
    ObjectExistsError,
    PreconditionFailedError,
    StorageError,
    TransientStorageError,
)
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.transaction.locks.base import waiting
from hudi_sql.storage.transaction.locks.file_lock import FileLock
from hudi_sql.storage.transaction.locks.os_lock import LOCK_FILE, OsLock, ProcessLock
from hudi_sql.storage.transaction.locks.provider import open_lock
from hudi_sql.storage.transaction.locks.storage_lock import STORAGE_LOCK_FILE, StorageLock
from tests.faulty_store import FaultyStore

FILE = ".hoodie/lock"


@pytest.fixture
def memory():
    return MemoryStore(f"t{uuid.uuid4().hex}")


@pytest.fixture
def local(tmp_path):
    return LocalStore(str(tmp_path / "t"))


def os_lock(store, wait_ms=0):
    return OsLock(store, store.local_path(LOCK_FILE), wait_ms)


def file_lock(store, wait_ms=0, expire_minutes=0):
    return FileLock(store, folder=".hoodie", wait_ms=wait_ms, expire_minutes=expire_minutes)


def storage_lock(store, wait_ms=0, validity_s=60.0, renew_s=30.0):
    return StorageLock(store, wait_ms=wait_ms, validity_s=validity_s, renew_s=renew_s)


LOCKS = {
    "os": (os_lock, "local"),
    "mutex": (lambda store: ProcessLock(store, 0), "memory"),
    "file": (file_lock, "memory"),
    "file, local": (file_lock, "local"),
    "storage": (storage_lock, "memory"),
    "storage, local": (storage_lock, "local"),
}


@pytest.fixture(params=LOCKS)
def make(request):
    maker, kind = LOCKS[request.param]
    store = request.getfixturevalue(kind)
    return lambda: maker(store)


def test_one_holder_at_a_time(make):
    first, second = make(), make()
    first.acquire()
    first.check_held()
    with pytest.raises(LockError) as caught:
        second.acquire()
    assert caught.value.retryable
    first.release()
    second.acquire()
    second.check_held()
    second.release()
    first.acquire()
    first.release()


def test_releasing_what_is_not_held_frees_nobody_elses_lock(make):
    first, second = make(), make()
    second.release()
    first.acquire()
    with pytest.raises(LockError):
        second.acquire()
    second.release()
    with pytest.raises(LockError):
        make().acquire()
    first.release()
    first.release()
    make().acquire()


@pytest.mark.parametrize("name", ["os", "mutex", "file", "storage"])
def test_a_waiting_writer_gets_the_lock_once_it_is_free(name, local, memory):
    store = local if name == "os" else memory
    makers = {"os": os_lock, "mutex": ProcessLock, "file": file_lock, "storage": storage_lock}
    first, second = makers[name](store, wait_ms=0), makers[name](store, wait_ms=5000)
    first.acquire()
    timer = threading.Timer(0.1, first.release)
    timer.start()
    started = time.monotonic()
    second.acquire()
    assert 0.05 < time.monotonic() - started < 2
    timer.join()
    second.release()


def test_waiting_ends_with_the_time():
    assert list(waiting(0)) == [0]
    started = time.monotonic()
    attempts = list(waiting(60))
    assert attempts == list(range(len(attempts)))
    assert len(attempts) > 2
    assert 0.05 <= time.monotonic() - started < 0.5


def hold_until_killed(root, ready):
    lock = os_lock(LocalStore(root))
    lock.acquire()
    ready.set()
    time.sleep(60)


def test_os_lock_excludes_other_processes_and_dies_with_its_own(local):
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    process = spawn.Process(target=hold_until_killed, args=(local.root, ready))
    process.start()
    try:
        assert ready.wait(20)
        with pytest.raises(LockError, match=f"process {process.pid} ") as caught:
            os_lock(local).acquire()
        assert f"process {process.pid} " in caught.value.holder
    finally:
        process.kill()
        process.join()
    lock = os_lock(local)
    lock.acquire()
    lock.release()


def test_os_lock_is_free_after_release_although_a_forked_child_has_its_file_open(local):
    lock = os_lock(local)
    lock.acquire()
    copy = os.dup(lock._handle)  # what fork gives a child
    lock.release()
    other = os_lock(local)
    other.acquire()
    other.release()
    os.close(copy)


def test_os_lock_on_a_folder_in_its_place_is_a_storage_error(local):
    local.create(f"{LOCK_FILE}/x", b"")
    with pytest.raises(StorageError, match="cannot be opened"):
        os_lock(local).acquire()


def test_os_lock_leaves_no_open_file_when_it_is_not_had(local):
    lock = os_lock(local)
    lock.acquire()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(LockError):
            os_lock(local).acquire()
    assert len(os.listdir("/proc/self/fd")) == before
    lock.release()


def test_file_lock_is_the_file_that_java_looks_for(memory):
    lock = file_lock(memory)
    lock.acquire()
    assert memory.exists(FILE)
    lock.release()
    assert not memory.exists(FILE)


def test_file_lock_respects_the_empty_file_of_java_and_keeps_it(memory):
    memory.create(FILE, b"")
    lock = file_lock(memory)
    with pytest.raises(LockError, match="owner of the file"):
        lock.acquire()
    lock.release()
    assert memory.read(FILE) == b""


def test_file_lock_is_taken_over_only_when_expired(local):
    local.create(FILE, b"")
    full = local.local_path(FILE)
    os.utime(full, (time.time() - 100, time.time() - 100))
    with pytest.raises(LockError):
        file_lock(local, wait_ms=30).acquire()
    with pytest.raises(LockError):
        file_lock(local, wait_ms=30, expire_minutes=2).acquire()
    lock = file_lock(local, wait_ms=1000, expire_minutes=1)
    lock.acquire()
    lock.check_held()
    lock.release()


def test_file_lock_notices_that_it_was_taken_over_and_leaves_the_new_file(memory):
    lock = file_lock(memory)
    lock.acquire()
    memory.put(FILE, b"")
    with pytest.raises(LockError, match="taken over"):
        lock.check_held()
    lock.release()
    assert memory.read(FILE) == b""
    memory.delete(FILE)
    lock.acquire()
    memory.delete(FILE)
    with pytest.raises(LockError, match="gone"):
        lock.check_held()


class Once:
    """Fails the first changing call to a path, and says how often it was called."""

    def __init__(self, error):
        self.error = error
        self.failed = 0

    def __call__(self, operation, path):
        if operation in ("create", "put_if", "put") and not self.failed:
            self.failed += 1
            raise self.error(f"{operation} {path}")


@pytest.mark.parametrize("error", [TransientStorageError, ObjectExistsError])
def test_file_lock_is_ours_when_only_the_answer_was_lost(memory, error):
    once = Once(error)
    lock = file_lock(FaultyStore(memory, after=once), wait_ms=500)
    lock.acquire()
    assert once.failed == 1
    lock.check_held()
    lock.release()
    assert not memory.exists(FILE)


def test_file_lock_that_came_too_late_is_removed(memory):
    once = Once(TransientStorageError)
    lock = file_lock(FaultyStore(memory, after=once), wait_ms=0)
    with pytest.raises(LockError):
        lock.acquire()
    assert not memory.exists(FILE)


def state(store):
    return json.loads(store.read(STORAGE_LOCK_FILE))


def now_ms():
    return int(time.time() * 1000)


def put_state(store, *, valid_ms, expired=False, owner="other"):
    data = {"expired": expired, "validUntil": now_ms() + valid_ms, "owner": owner}
    store.put(STORAGE_LOCK_FILE, json.dumps(data).encode())


def test_storage_lock_keeps_the_format_of_java(memory):
    lock = storage_lock(memory, validity_s=300)
    lock.acquire()
    held = state(memory)
    assert held.keys() == {"expired", "validUntil", "owner"}
    assert held["expired"] is False
    assert held["owner"] == str(uuid.UUID(held["owner"]))
    assert 299_000 < held["validUntil"] - now_ms() <= 300_000
    lock.release()
    assert state(memory) == {**held, "expired": True}


@pytest.mark.parametrize(
    ("valid_ms", "expired", "is_free"),
    [(60_000, False, False), (60_000, True, True), (-2_000, False, True), (-100, False, False)],
)
def test_storage_lock_of_others_is_taken_when_it_is_over(memory, valid_ms, expired, is_free):
    put_state(memory, valid_ms=valid_ms, expired=expired)
    lock = storage_lock(memory)
    if is_free:
        lock.acquire()
        assert state(memory)["owner"] != "other"
        lock.release()
    else:
        with pytest.raises(LockError, match="owner other"):
            lock.acquire()
        assert state(memory)["owner"] == "other"


def test_storage_lock_is_renewed_while_it_is_held(memory):
    lock = storage_lock(memory, validity_s=1.0, renew_s=0.02)
    lock.acquire()
    first = state(memory)["validUntil"]
    time.sleep(0.2)
    assert state(memory)["validUntil"] > first
    lock.release()
    after = state(memory)
    time.sleep(0.1)
    assert state(memory) == after


def test_storage_lock_stolen_after_expiry_is_noticed_and_not_taken_back(memory):
    lock = storage_lock(memory, validity_s=0.05, renew_s=60)
    lock.acquire()
    time.sleep(0.06)
    with pytest.raises(LockError, match="lost"):
        lock.check_held()  # by the time alone: others may take it from now on
    time.sleep(0.55)
    thief = storage_lock(memory)
    thief.acquire()
    stolen = state(memory)
    with pytest.raises(LockError, match="lost"):
        lock.check_held()
    lock.release()
    assert state(memory) == stolen
    thief.check_held()
    thief.release()


def test_storage_lock_whose_renewals_get_lost_is_renewed_again(memory):
    fail = {"left": 3}

    def lose(operation, path):
        if operation == "put_if" and fail["left"]:
            fail["left"] -= 1
            raise TransientStorageError(path)

    lock = storage_lock(FaultyStore(memory, before=lose), validity_s=1.0, renew_s=0.02)
    lock.acquire()
    first = state(memory)["validUntil"]
    time.sleep(0.3)
    assert fail["left"] == 0
    assert state(memory)["validUntil"] > first
    lock.check_held()
    lock.release()
    assert state(memory)["expired"] is True


def test_storage_lock_renewer_ends_when_the_lock_was_stolen(memory):
    lock = storage_lock(memory, validity_s=1.0, renew_s=0.02)
    lock.acquire()
    put_state(memory, valid_ms=60_000, owner="thief")
    time.sleep(0.1)
    assert not lock._renewer.is_alive()
    assert state(memory)["owner"] == "thief"
    lock.release()
    assert state(memory)["owner"] == "thief"


@pytest.mark.parametrize("error", [TransientStorageError, ObjectExistsError, PreconditionFailedError])
@pytest.mark.parametrize("is_there", [False, True])
def test_storage_lock_is_ours_when_only_the_answer_was_lost(memory, error, is_there):
    if is_there:
        put_state(memory, valid_ms=0, expired=True)
    once = Once(error)
    lock = storage_lock(FaultyStore(memory, after=once))
    lock.acquire()
    assert once.failed == 1
    lock.check_held()
    lock.release()
    assert state(memory)["expired"] is True


def test_storage_lock_is_not_ours_when_another_was_faster(memory):
    def overtake(operation, path):
        if operation == "create":
            put_state(memory, valid_ms=60_000, owner="faster")

    with pytest.raises(LockError, match="owner faster"):
        storage_lock(FaultyStore(memory, before=overtake), wait_ms=20).acquire()
    assert state(memory)["owner"] == "faster"


def test_storage_lock_that_came_too_late_is_given_back(memory):
    reads = {"left": 1}

    def lose(operation, path):
        if operation == "create":
            raise TransientStorageError(path)

    def refuse(operation, path):
        if operation == "read_versioned" and memory.exists(path) and reads["left"]:
            reads["left"] -= 1
            raise TransientStorageError(path)

    with pytest.raises(LockError):
        storage_lock(FaultyStore(memory, after=lose, check=refuse)).acquire()
    assert reads["left"] == 0
    assert state(memory)["expired"] is True


@pytest.mark.parametrize(
    "text", ["", "null", "[]", '{"expired": false}', '{"expired":false,"validUntil":"x","owner":"a"}']
)
def test_storage_lock_that_cannot_be_read_is_never_taken(memory, text):
    memory.put(STORAGE_LOCK_FILE, text.encode())
    with pytest.raises(LockError, match="cannot be understood"):
        storage_lock(memory).acquire()
    assert memory.read(STORAGE_LOCK_FILE).decode() == text


def test_default_lock_is_an_os_lock_on_disk_and_a_mutex_in_memory(local, memory):
    for store in (local, memory):
        first = open_lock(store, LockConfig(wait_ms=0))
        first.acquire()
        with pytest.raises(LockError):
            open_lock(store, LockConfig(wait_ms=0)).acquire()
        first.release()
    assert [info.path for info in local.walk("")] == [LOCK_FILE]
    assert list(memory.walk("")) == []


def test_a_configured_lock_excludes_writers_with_and_without_it(local):
    for provider in (LockProvider.FILE, LockProvider.STORAGE):
        config = LockConfig(wait_ms=0, provider=provider)
        lock = open_lock(local, config)
        lock.acquire()
        lock.check_held()
        for other in (config, LockConfig(wait_ms=0)):
            with pytest.raises(LockError):
                open_lock(local, other).acquire()
        lock.release()
    local.create(FILE, b"")  # a Java writer holds it
    with pytest.raises(LockError):
        open_lock(local, LockConfig(wait_ms=0, provider=LockProvider.FILE)).acquire()
    free = open_lock(local, LockConfig(wait_ms=0))
    free.acquire()  # our own half was given back
    free.release()


@pytest.mark.parametrize(
    "form", ["{outside}", "file:{outside}", "{table}/.hoodie/mine", "file:{table}/.hoodie/mine", "mine"]
)
def test_the_folder_of_the_lock_file_is_taken_as_hudi_takes_it(tmp_path, local, form):
    folder = form.format(outside=tmp_path / "locks", table=local.root)
    lock = open_lock(local, LockConfig(wait_ms=0, provider=LockProvider.FILE, file_folder=folder))
    lock.acquire()
    places = {
        "{outside}": tmp_path / "locks" / "lock",
        "file:{outside}": tmp_path / "locks" / "lock",
        "{table}/.hoodie/mine": tmp_path / "t" / ".hoodie" / "mine" / "lock",
        "file:{table}/.hoodie/mine": tmp_path / "t" / ".hoodie" / "mine" / "lock",
        "mine": tmp_path / "t" / "mine" / "lock",
    }
    assert places[form].is_file()
    lock.release()
    assert not places[form].exists()


def test_a_store_without_compare_and_swap_takes_the_lock_file_or_none(tmp_path):
    store = open_store(f"local://{tmp_path}/t")
    for provider in (LockProvider.DEFAULT, LockProvider.STORAGE):
        with pytest.raises(ConfigError, match="compare-and-swap"):
            open_lock(store, LockConfig(wait_ms=0, provider=provider))
    config = LockConfig(wait_ms=0, provider=LockProvider.FILE)
    lock = open_lock(store, config)
    lock.acquire()
    lock.check_held()
    with pytest.raises(LockError):
        open_lock(store, config).acquire()
    lock.release()
    assert list(store.walk("")) == []
