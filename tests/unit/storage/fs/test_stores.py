"""One suite for every kind of store."""

from __future__ import annotations

import gc
import pickle
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import obstore.store
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from hudi_sql.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    PreconditionFailedError,
    StorageError,
    UnsupportedError,
)
from hudi_sql.storage.fs.fsspec import FsspecStore
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.fs.object_store import ObjectStore
from hudi_sql.storage.fs.sub import SubStore


def _fsspec(root):
    return FsspecStore(
        f"some://{root}", filesystem=fsspec.filesystem("memory", skip_instance_cache=True), root=f"/{root}"
    )


@pytest.fixture(params=["local", "memory", "sub", "object_store", "fsspec"])
def store(request, tmp_path):
    name = f"t{uuid.uuid4().hex}"
    return {
        "local": lambda: LocalStore(str(tmp_path / "table")),
        "memory": lambda: MemoryStore(name),
        "sub": lambda: SubStore(MemoryStore(name), ".hoodie/metadata"),
        "object_store": lambda: ObjectStore("s3://b/warehouse/t", backend=obstore.store.MemoryStore()),
        "fsspec": lambda: _fsspec(name),
    }[request.param]()


ODD_NAMES = ["city=a%2Fb/x", "place=a b/é ü#?&+", ".hoodie/.aux/.x", "p=中/𝄞", "a=%/100%25", "back\\slash/*"]


@pytest.mark.parametrize("path", ODD_NAMES)
def test_odd_names_are_kept_as_they_are(store, path):
    store.put(path, b"x")
    folder, _, name = path.rpartition("/")
    assert store.read(path) == b"x"
    assert [(info.path, info.name, info.size_bytes) for info in store.list(folder)] == [(path, name, 1)]
    assert [info.path for info in store.walk("")] == [path]


@pytest.mark.parametrize("path", ["", "..", "../x", "a/../../x", "a//b", "/a", "a/", "./a", "a\0b"])
def test_paths_that_leave_the_root_are_refused(store, path):
    for act in (store.read, store.delete, store.exists, store.touch, lambda p: store.put(p, b"")):
        with pytest.raises(StorageError):
            act(path)


def test_read_gives_ranges_and_stops_at_the_end(store):
    store.put("a/b", b"0123456789")
    assert store.read("a/b") == b"0123456789"
    assert store.read("a/b", start=3) == b"3456789"
    assert store.read("a/b", start=3, length=4) == b"3456"
    assert store.read("a/b", length=4) == b"0123"
    assert store.read("a/b", start=8, length=100) == b"89"
    assert store.read("a/b", start=50, length=2) == b""


def test_missing_files_are_not_found(store):
    store.put("a/b", b"1")
    for path in ("x", "a/x", "x/y/z", "a/b/c", "a"):
        with pytest.raises(ObjectNotFoundError) as caught:
            store.read(path)
        assert caught.value.path
        with pytest.raises(ObjectNotFoundError):
            store.info(path)
        with pytest.raises(ObjectNotFoundError):
            store.open_input(path)
        with pytest.raises(ObjectNotFoundError):
            store.read_versioned(path)
        assert not store.exists(path)
        assert store.delete(path) is False


def test_create_makes_a_file_once(store):
    store.create("d/e/f", b"first")
    with pytest.raises(ObjectExistsError):
        store.create("d/e/f", b"second")
    assert store.read("d/e/f") == b"first"
    store.create("d/empty", b"")
    with pytest.raises(ObjectExistsError):
        store.create("d/empty", b"")
    assert [info.path for info in store.list("d")] == ["d/e", "d/empty"]  # no temporary files are left


def test_one_of_many_creators_wins(store):
    if isinstance(store, FsspecStore):
        pytest.skip("fsspec's creation is not exclusive")

    def attempt(number):
        barrier.wait()
        try:
            store.create("once", str(number).encode())
        except ObjectExistsError:
            return None
        return number

    barrier = threading.Barrier(8)
    with ThreadPoolExecutor(8) as threads:
        winners = [number for number in threads.map(attempt, range(8)) if number is not None]
    assert len(winners) == 1
    assert store.read("once") == str(winners[0]).encode()


def test_put_replaces_whole_files(store):
    store.put("a/b", b"long text")
    store.put("a/b", b"x")
    assert store.read("a/b") == b"x"
    assert store.info("a/b").size_bytes == 1
    assert [info.path for info in store.list("a")] == ["a/b"]


def test_put_if_refuses_other_versions(store):
    store.put("lock", b"1")
    data, version = store.read_versioned("lock")
    assert data == b"1"
    if isinstance(store, FsspecStore):
        with pytest.raises(UnsupportedError):
            store.put_if("lock", b"2", version)
        return
    store.put_if("lock", b"2", version)
    with pytest.raises(PreconditionFailedError):
        store.put_if("lock", b"3", version)
    assert store.read("lock") == b"2"


def test_put_if_of_a_missing_file_fails(store):
    if isinstance(store, FsspecStore):
        pytest.skip("refused altogether")
    store.put("lock", b"1")
    _, version = store.read_versioned("lock")
    store.delete("lock")
    with pytest.raises((ObjectNotFoundError, PreconditionFailedError)):
        store.put_if("lock", b"2", version)
    assert not store.exists("lock")


def test_no_increment_by_put_if_is_lost(store):
    if isinstance(store, FsspecStore):
        pytest.skip("refused altogether")

    def add(_):
        for _ in range(10):
            while True:
                data, version = store.read_versioned("n")
                try:
                    store.put_if("n", str(int(data) + 1).encode(), version)
                    break
                except PreconditionFailedError:
                    continue

    store.put("n", b"0")
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(4)))
    assert store.read("n") == b"40"


def test_list_shows_one_level_by_name(store):
    for path in ("b", "a/2", "a/1", "a/c/d", ".h/x"):
        store.put(path, b"12")
    assert [(i.path, i.is_folder) for i in store.list("")] == [(".h", True), ("a", True), ("b", False)]
    listed = [(i.path, i.name, i.is_folder, i.size_bytes) for i in store.list("a")]
    assert listed == [("a/1", "1", False, 2), ("a/2", "2", False, 2), ("a/c", "c", True, 0)]
    assert store.list("none") == []
    assert store.list("b") == []
    assert sorted(i.path for i in store.walk("a")) == ["a/1", "a/2", "a/c/d"]
    assert list(store.walk("none")) == []


def test_a_prefix_is_not_a_folder(store):
    store.put("ab/x", b"")
    store.put("a/x", b"")
    assert [i.path for i in store.walk("a")] == ["a/x"]
    store.delete_tree("a")
    assert [i.path for i in store.walk("")] == ["ab/x"]
    store.delete_tree("a")


def test_delete_tells_whether_there_was_a_file(store):
    store.put("a/b", b"")
    assert store.delete("a/b") is True
    assert store.delete("a/b") is False
    assert not store.exists("a/b")


def test_touch_creates_and_renews_without_loss(store):
    store.touch("m/n")
    assert store.read("m/n") == b""
    before = store.info("m/n").modified_ms
    assert abs(before / 1000 - time.time()) < 60
    store.put("m/n", b"kept")
    time.sleep(0.02)
    store.touch("m/n")
    assert store.read("m/n") == b"kept"
    assert store.info("m/n").modified_ms > before


def test_arrow_files_can_be_written_and_read(store):
    table = pa.table({"a": range(1000), "b": [str(i) for i in range(1000)]})
    with store.open_output("p=1/f.parquet") as sink:
        pq.write_table(table, sink, row_group_size=100)
    with store.open_input("p=1/f.parquet") as source:
        assert pq.read_table(source).equals(table)
    filesystem, root = store.arrow_filesystem()
    path = f"{root}/p=1/f.parquet".lstrip("/") if root == "" else f"{root}/p=1/f.parquet"
    dataset = pads.dataset([path], format="parquet", filesystem=filesystem)
    assert dataset.to_table(filter=pads.field("a") < 5).num_rows == 5


def test_stores_pickle(store):
    if isinstance(store, ObjectStore):
        with pytest.raises(TypeError):
            pickle.dumps(store)  # an injected backend stays here
        store = ObjectStore("s3://bucket/t", {"aws_access_key_id": "me", "aws_secret_access_key": "hush"})
        assert "hush" not in repr(store)
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store
    assert copy.uri == store.uri
    if not isinstance(store, ObjectStore):
        store.put("x", b"1")
        assert copy.read("x") == b"1"


def test_local_paths_only_of_local_stores(store, tmp_path):
    expected = str(tmp_path / "table" / "a") if isinstance(store, LocalStore) else None
    assert store.local_path("a") == expected


def test_replacing_or_deleting_removes_hadoop_sidecars(tmp_path):
    store = LocalStore(str(tmp_path))
    for change in (
        lambda: store.put("d/f", b"2"),
        lambda: store.delete("d/f"),
        lambda: store.open_output("d/f").close(),
    ):
        (tmp_path / "d").mkdir(exist_ok=True)
        (tmp_path / "d/f").write_bytes(b"1")
        (tmp_path / "d/.f.crc").write_bytes(b"crc")
        change()
        assert not (tmp_path / "d/.f.crc").exists()


def test_local_create_works_without_hard_links(tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError(1, "no hard links here")

    monkeypatch.setattr("os.link", no_links)
    store = LocalStore(str(tmp_path))
    store.create("a", b"1")
    with pytest.raises(ObjectExistsError):
        store.create("a", b"2")
    assert store.read("a") == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_failed_local_writes_leave_nothing(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    store = LocalStore(str(tmp_path))
    for write in (store.create, store.put):
        with pytest.raises(StorageError, match="No space left"):
            write("a", b"1")
    assert list(tmp_path.iterdir()) == []


def test_local_uri_is_the_form_of_hadoop_paths(tmp_path):
    assert LocalStore(str(tmp_path)).uri == f"file:{tmp_path}"


def test_dangling_links_are_left_out(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "gone")
    (tmp_path / "b").write_bytes(b"")
    assert [info.path for info in LocalStore(str(tmp_path)).list("")] == ["b"]


def test_a_file_in_the_way_is_a_storage_error(tmp_path):
    Path(tmp_path / "a").write_bytes(b"")
    with pytest.raises(StorageError):
        LocalStore(str(tmp_path)).put("a/b", b"1")


def test_a_file_that_nobody_closed_does_not_appear_later():
    memory = MemoryStore(f"t{uuid.uuid4().hex}")
    sink = memory.open_output("a")
    sink.write(b"half")
    del sink
    gc.collect()
    assert not memory.exists("a")
