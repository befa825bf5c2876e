from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import ConstraintError, NullKeyError, ObjectNotFoundError, SchemaError
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.key_generator.key_generator import KeyGenerator
from hudi_sql.storage.model.files import BaseFile, FileId, FileSlice, PartitionPath
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.properties.table_config import parse_table_config
from hudi_sql.storage.schema.meta_columns import META_COLUMNS
from hudi_sql.storage.write import cow
from hudi_sql.storage.write.changes import SliceChanges
from hudi_sql.storage.write.cow import FileGroupWriter, WriteTarget, no_changes, output_file, rewrite_slice
from hudi_sql.storage.write.executor import writer_threads
from hudi_sql.storage.write.inserts import InsertRouter
from hudi_sql.storage.write.meta_values import constant, numbered, sequence_numbers
from hudi_sql.storage.write.partitioner import Bin

OLD, NEW = InstantTime("20260101000000000"), InstantTime("20260102000000000")
COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.string())])
FILE_SCHEMA = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *COLUMNS])
P = PartitionPath("p")


@pytest.fixture
def store():
    return MemoryStore(f"t{uuid.uuid4().hex}")


def target(store, instant=NEW, *, schema=FILE_SCHEMA, collect_keys=True):
    return WriteTarget(
        store=store,
        instant=instant,
        schema=schema,
        table_name="t",
        settings=WriteConfig(),
        collect_keys=collect_keys,
    )


def rows(ids, partition="p"):
    ids = list(ids)
    return pa.table(
        {
            **dict.fromkeys(META_COLUMNS, pa.nulls(len(ids), pa.string())),
            "_hoodie_record_key": [str(item) for item in ids],
            "_hoodie_partition_path": pa.repeat(pa.scalar(partition), len(ids)),
            "id": pa.array(ids, pa.int64()),
            "v": [f"v{item}" for item in ids],
            "p": pa.repeat(pa.scalar(partition), len(ids)),
        },
        schema=FILE_SCHEMA,
    )


def write_slice(store, ids, file_id="f-0"):
    """A base file of the older instant, and its slice."""
    output = output_file(OLD, 7, P, FileId(file_id), None)
    with FileGroupWriter(target(store, OLD), output) as writer:
        for batch in rows(ids).to_batches(max_chunksize=5):
            writer.append(batch)
        written = writer.finish()
    base = BaseFile(
        partition=P,
        name=output.name,
        size_bytes=written.stat.file_size_bytes,
        file_id=FileId(file_id),
        write_token="7-0-0",
        instant=OLD,
    )
    return FileSlice(partition=P, file_id=FileId(file_id), instant=OLD, base_file=base), written


def changes_of(piece, *, deleted=(), updated=(), values=None):
    return SliceChanges(
        slice=piece,
        deleted=np.array(deleted, np.int64),
        updated=np.array(updated, np.int64),
        values=pa.table({"v": [f"u{item}" for item in updated]} if values is None else values),
    )


def read(store, path):
    with store.open_input(path) as source:
        return pq.read_table(source)


def rewritten(store, piece, changes):
    written = rewrite_slice(target(store), output_file(NEW, 3, P, piece.file_id, piece), changes)
    return written, read(store, written.stat.path)


def test_meta_values():
    assert constant("x", 2).to_pylist() == ["x", "x"]
    assert constant("x", 0).to_pylist() == []
    assert numbered("k", 9, 3).to_pylist() == ["k_9", "k_10", "k_11"]
    assert sequence_numbers(OLD, 4, 0, 2).to_pylist() == [f"{OLD}_4_0", f"{OLD}_4_1"]


def test_new_rows_get_their_meta_columns(store):
    piece, written = write_slice(store, range(12))
    found = read(store, piece.base_file.path)
    assert found["id"].to_pylist() == list(range(12))
    assert set(found["_hoodie_commit_time"].to_pylist()) == {str(OLD)}
    assert found["_hoodie_commit_seqno"].to_pylist() == [f"{OLD}_7_{item}" for item in range(12)]
    assert set(found["_hoodie_file_name"].to_pylist()) == {piece.base_file.name}
    stat = written.stat
    assert (stat.previous_commit, stat.previous_base_file) == ("null", None)
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (12, 12, 0, 0)
    assert stat.file_size_bytes == store.info(stat.path).size_bytes
    assert pa.chunked_array(written.inserted_keys).to_pylist() == [str(item) for item in range(12)]


BATCHES = [1, 2, 3, 5, 12, 100]


@pytest.mark.parametrize("batch_rows", BATCHES)
def test_updates_and_deletes_by_position(store, monkeypatch, batch_rows):
    monkeypatch.setattr(cow, "_BATCH_ROWS", batch_rows)
    piece, _ = write_slice(store, range(12))
    changes = changes_of(piece, deleted=[0, 4, 5, 11], updated=[1, 3, 6, 10])
    written, found = rewritten(store, piece, changes)
    kept = [1, 2, 3, 6, 7, 8, 9, 10]
    assert found["id"].to_pylist() == kept
    changed = {1, 3, 6, 10}
    assert found["v"].to_pylist() == [f"u{item}" if item in changed else f"v{item}" for item in kept]
    assert found["_hoodie_commit_time"].to_pylist() == [str(NEW if item in changed else OLD) for item in kept]
    assert found["_hoodie_record_key"].to_pylist() == [str(item) for item in kept]
    assert set(found["_hoodie_file_name"].to_pylist()) == {written.stat.path.rsplit("/", 1)[-1]}
    numbers = found["_hoodie_commit_seqno"].to_pylist()
    assert numbers == [
        f"{NEW}_3_{sorted(changed).index(item)}" if item in changed else f"{OLD}_7_{item}" for item in kept
    ]
    stat = written.stat
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (8, 0, 4, 4)
    assert (stat.previous_commit, stat.previous_base_file) == (str(OLD), piece.base_file.name)
    assert pa.chunked_array(written.deleted_keys).to_pylist() == ["0", "4", "5", "11"]
    assert written.inserted_keys == ()


@pytest.mark.parametrize(
    ("deleted", "updated"),
    [
        ([], []),
        (range(12), []),
        ([], range(12)),
        ([11], [0]),
        ([0], [11]),
        (range(0, 12, 2), range(1, 12, 2)),
    ],
)
def test_extremes(store, monkeypatch, deleted, updated):
    monkeypatch.setattr(cow, "_BATCH_ROWS", 5)
    piece, _ = write_slice(store, range(12))
    written, found = rewritten(store, piece, changes_of(piece, deleted=deleted, updated=updated))
    kept = [item for item in range(12) if item not in deleted]
    assert found["id"].to_pylist() == kept
    assert found["v"].to_pylist() == [f"u{item}" if item in updated else f"v{item}" for item in kept]
    assert written.stat.num_writes == len(kept)


def test_random_changes_against_a_plain_model(store, monkeypatch):
    monkeypatch.setattr(cow, "_BATCH_ROWS", 7)
    random = np.random.default_rng(5)
    for _ in range(15):
        count = int(random.integers(1, 40))
        piece, _ = write_slice(store, range(count), file_id=f"f{uuid.uuid4().hex}-0")
        fate = random.integers(0, 3, count)
        deleted, updated = np.flatnonzero(fate == 1), np.flatnonzero(fate == 2)
        _, found = rewritten(store, piece, changes_of(piece, deleted=deleted, updated=updated))
        model = [
            (item, f"u{item}" if fate[item] == 2 else f"v{item}") for item in range(count) if fate[item] != 1
        ]
        assert list(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == model


def test_new_values_may_be_null_chunked_or_of_a_like_type(store):
    piece, _ = write_slice(store, range(6))
    values = {
        "v": pa.chunked_array([pa.array([None], pa.large_string()), pa.array(["b", None], pa.large_string())])
    }
    _, found = rewritten(store, piece, changes_of(piece, updated=[0, 2, 5], values=values))
    assert found["v"].to_pylist() == [None, "v1", "b", "v3", "v4", None]


def test_rows_are_added_behind_a_rewrite(store):
    piece, _ = write_slice(store, range(4))
    with FileGroupWriter(target(store), output_file(NEW, 1, P, piece.file_id, piece)) as writer:
        writer.copy(changes_of(piece, deleted=[0], updated=[1]))
        writer.append(rows([10, 11]).to_batches()[0])
        written = writer.finish()
    found = read(store, written.stat.path)
    assert found["id"].to_pylist() == [1, 2, 3, 10, 11]
    assert found["_hoodie_commit_seqno"].to_pylist()[-2:] == [f"{NEW}_1_1", f"{NEW}_1_2"]
    stat = written.stat
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (5, 2, 1, 1)


def test_old_rows_take_the_new_schema(store):
    piece, _ = write_slice(store, range(3))
    wider = pa.schema([*FILE_SCHEMA, pa.field("extra", pa.int32())])
    written = rewrite_slice(
        target(store, schema=wider), output_file(NEW, 1, P, piece.file_id, piece), no_changes(piece)
    )
    found = read(store, written.stat.path)
    assert found.schema.names == wider.names
    assert found["extra"].to_pylist() == [None] * 3


def test_keys_are_collected_only_where_wanted(store):
    piece, _ = write_slice(store, range(3))
    written = rewrite_slice(
        target(store, collect_keys=False),
        output_file(NEW, 1, P, piece.file_id, piece),
        changes_of(piece, deleted=[0]),
    )
    assert written.deleted_keys == ()


# The router


class Routed:
    """A router over given bins, and what it made."""

    def __init__(self, store, threads, bins, *, columns=COLUMNS, pending=None, key="id"):
        config = parse_table_config(
            {
                "hoodie.table.name": "t",
                "hoodie.table.partition.fields": "p",
                **({"hoodie.table.recordkey.fields": key} if key else {}),
            }
        )
        self.outputs = []
        self.pending = {} if pending is None else pending
        schema = pa.schema([*(pa.field(name, pa.string()) for name in META_COLUMNS), *columns])
        self.router = InsertRouter(
            target(store, schema=schema),
            KeyGenerator.for_table(config, columns),
            threads,
            bins=lambda partition: iter(bins(partition)),
            next_output=self.next_output,
            changes=self.pending,
        )

    def next_output(self, partition, piece):
        file_id = piece.file_id if piece is not None else FileId(f"g{len(self.outputs)}-0")
        output = output_file(NEW, len(self.outputs), partition, file_id, piece)
        self.outputs.append(output)
        return output


def endless(size):
    def bins(partition):
        while True:
            yield Bin(partition=partition, slice=None, num_rows=size)

    return bins


def batch(ids, partitions):
    ids = list(ids)
    return pa.record_batch(
        {
            "id": ids,
            "v": [f"v{item}" for item in ids],
            "p": [partitions[item % len(partitions)] for item in ids],
        },
        schema=COLUMNS,
    )


@pytest.fixture(params=[1, 3])
def threads(request):
    with writer_threads(request.param) as pool:
        yield pool


def contents(store, written):
    return {item.stat.path: read(store, item.stat.path) for item in written}


def test_rows_go_to_their_partitions_and_groups_in_order(store, threads):
    routed = Routed(store, threads, endless(4))
    routed.router.route(batch(range(10), ["a", "b"]))
    routed.router.route(batch([], ["a"]))
    routed.router.route(batch(range(10, 21), ["a", "b"]))
    found = contents(store, routed.router.finish())
    by_partition = {"a": [], "b": []}
    for output in routed.outputs:
        ids = found[output.path]["id"].to_pylist()
        assert 0 < len(ids) <= 4
        by_partition[output.partition] += ids
    assert by_partition == {"a": list(range(0, 21, 2)), "b": list(range(1, 21, 2))}
    assert sum(len(table) for table in found.values()) == 21
    assert len(found) == 3 + 3


def test_a_small_file_is_filled_and_takes_its_changes_along(store, threads):
    piece, _ = write_slice(store, range(3))
    pending = {piece: changes_of(piece, deleted=[1], updated=[2])}

    def bins(partition):
        yield Bin(partition=partition, slice=piece, num_rows=2)
        yield from endless(100)(partition)

    routed = Routed(store, threads, bins, pending=pending)
    routed.router.route(batch(range(10, 15), ["p"]))
    found = contents(store, routed.router.finish())
    assert pending == {}
    first, second = (found[output.path] for output in routed.outputs)
    assert first["id"].to_pylist() == [0, 2, 10, 11]
    assert first["v"].to_pylist() == ["v0", "u2", "v10", "v11"]
    assert second["id"].to_pylist() == [12, 13, 14]


def test_many_partitions_at_once_keep_few_files_open(store, threads, monkeypatch):
    monkeypatch.setattr("hudi_sql.storage.write.inserts._MAX_OPEN_FILES", 3)
    names = [f"p{number}" for number in range(7)]
    routed = Routed(store, threads, endless(100))
    most = 0
    for start in range(0, 42, 7):
        routed.router.route(batch(range(start, start + 7), names))
        most = max(most, len(routed.router._open))
    found = contents(store, routed.router.finish())
    assert most == 3
    assert sorted(item for table in found.values() for item in table["id"].to_pylist()) == list(range(42))


def test_keys_that_are_made_up_count_through_the_commit(store, threads):
    routed = Routed(store, threads, endless(100), key=None)
    routed.router.route(batch(range(3), ["a"]))
    routed.router.route(batch(range(2), ["b"]))
    found = contents(store, routed.router.finish())
    keys = [key for table in found.values() for key in table["_hoodie_record_key"].to_pylist()]
    assert len(set(keys)) == 5
    assert all(key.startswith(str(NEW)) for key in keys)


def test_rows_that_break_a_rule_are_refused(store, threads):
    routed = Routed(store, threads, endless(100))
    with pytest.raises(NullKeyError):
        routed.router.route(
            pa.record_batch({"id": [1, None], "v": ["a", "b"], "p": ["x", "x"]}, schema=COLUMNS)
        )
    routed.router.abandon()
    strict = pa.schema([("id", pa.int64()), pa.field("v", pa.string(), nullable=False), ("p", pa.string())])
    routed = Routed(store, threads, endless(100), columns=strict)
    bad = pa.RecordBatch.from_arrays(
        [pa.array([1]), pa.array([None], pa.string()), pa.array(["x"])], schema=strict
    )
    with pytest.raises(ConstraintError, match="v is NOT NULL") as caught:
        routed.router.route(bad)
    assert caught.value.column == "v"
    routed.router.abandon()


def test_abandoning_closes_all_files(store, threads):
    routed = Routed(store, threads, endless(2))
    routed.router.route(batch(range(9), ["a", "b", "c"]))
    routed.router.abandon()
    assert routed.router._open == {}
    for output in routed.outputs:
        store.delete(output.path)


def test_an_error_of_a_writer_thread_reaches_the_caller(store):
    piece, _ = write_slice(store, range(3))
    store.delete(piece.base_file.path)

    def bins(partition):
        yield Bin(partition=partition, slice=piece, num_rows=10)

    with writer_threads(2) as pool:
        routed = Routed(store, pool, bins)
        with pytest.raises(ObjectNotFoundError):
            routed.router.route(batch(range(10, 12), ["p"]))
        routed.router.abandon()


def test_threads_end_and_what_has_not_begun_is_dropped():
    gate, ran = threading.Event(), []

    def fail():
        with writer_threads(1) as pool:
            assert isinstance(pool, ThreadPoolExecutor)
            pool.submit(gate.wait, 10)
            for number in range(5):
                pool.submit(ran.append, number)
            threading.Timer(0.05, gate.set).start()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert ran == []
    with writer_threads(0) as pool:
        assert pool.submit(lambda: 7).result() == 7


def test_values_that_do_not_fit_the_columns_are_an_error(store, threads):
    with FileGroupWriter(target(store), output_file(NEW, 1, P, FileId("x-0"), None)) as writer:
        bad = rows([1]).set_column(5, "id", pa.array(["text"])).to_batches()[0]
        with pytest.raises(SchemaError, match="do not fit"):
            writer.append(bad)
        writer.finish()
    routed = Routed(store, threads, endless(9))
    with pytest.raises(SchemaError, match="the table has id, v, p"):
        routed.router.route(batch([1], ["x"]).select(["id", "p"]))


def test_the_middle_of_a_table_is_found_by_position_alone(store):
    """Positions count rows of the file, also over its row groups."""
    settings = WriteConfig(block_size_bytes=1)
    output = output_file(OLD, 1, P, FileId("f-0"), None)
    one = WriteTarget(
        store=store, instant=OLD, schema=FILE_SCHEMA, table_name="t", settings=settings, collect_keys=False
    )
    with FileGroupWriter(one, output) as writer:
        for part in rows(range(20)).to_batches(max_chunksize=3):
            writer.append(part)
        written = writer.finish()
    assert written.footer.metadata.num_row_groups == 7
    base = BaseFile(
        partition=P,
        name=output.name,
        size_bytes=written.stat.file_size_bytes,
        file_id=FileId("f-0"),
        write_token="1-0-0",
        instant=OLD,
    )
    piece = FileSlice(partition=P, file_id=FileId("f-0"), instant=OLD, base_file=base)
    _, found = rewritten(store, piece, changes_of(piece, deleted=[2, 3, 9], updated=[8, 17]))
    assert (
        pc.equal(found["id"], pa.array([item for item in range(20) if item not in (2, 3, 9)])).to_pylist()
        == [True] * 17
    )
    assert [text for text in found["v"].to_pylist() if text.startswith("u")] == ["u8", "u17"]
