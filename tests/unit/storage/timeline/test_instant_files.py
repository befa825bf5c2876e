from __future__ import annotations

import uuid

import pytest

from hudi_sql.errors import ObjectExistsError
from hudi_sql.storage.fs.memory import MemoryStore
from hudi_sql.storage.model.instant import Action, Instant, InstantTime, State
from hudi_sql.storage.properties.table_config import parse_table_config
from hudi_sql.storage.timeline.file_names import instant_file_name, parse_instant_file
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.timeline.write import complete, create_inflight, create_requested, delete_instant_file

V9 = parse_table_config({"hoodie.table.name": "t", "hoodie.table.timeline.timezone": "UTC"})
V6 = parse_table_config({"hoodie.table.name": "t", "hoodie.table.version": "6"})
REQUESTED, COMPLETED = InstantTime("20260101000000000"), InstantTime("20260101000001000")


@pytest.fixture
def store():
    return MemoryStore(f"t{uuid.uuid4().hex}")


@pytest.mark.parametrize(
    ("action", "requested", "inflight", "completed"),
    [
        (Action.COMMIT, "R.commit.requested", "R.inflight", "R_C.commit"),
        (Action.DELTA_COMMIT, "R.deltacommit.requested", "R.deltacommit.inflight", "R_C.deltacommit"),
        (Action.COMPACTION, "R.compaction.requested", "R.compaction.inflight", "R_C.commit"),
        (Action.LOG_COMPACTION, "R.logcompaction.requested", "R.logcompaction.inflight", "R_C.deltacommit"),
        (Action.REPLACE_COMMIT, "R.replacecommit.requested", "R.replacecommit.inflight", "R_C.replacecommit"),
        (Action.CLUSTERING, "R.clustering.requested", "R.clustering.inflight", "R_C.replacecommit"),
        (Action.CLEAN, "R.clean.requested", "R.clean.inflight", "R_C.clean"),
        (Action.ROLLBACK, "R.rollback.requested", "R.rollback.inflight", "R_C.rollback"),
        (Action.RESTORE, "R.restore.requested", "R.restore.inflight", "R_C.restore"),
        (Action.INDEXING, "R.indexing.requested", "R.indexing.inflight", "R_C.indexing"),
    ],
)
def test_every_action_has_its_three_files(store, action, requested, inflight, completed):
    first = create_requested(store, V9, REQUESTED, action, b"plan")
    second = create_inflight(store, V9, first)
    third = complete(store, V9, second, COMPLETED, b"done")
    names = [
        text.replace("R", REQUESTED.value).replace("C", COMPLETED.value)
        for text in (requested, inflight, completed)
    ]
    assert [first.file_name, second.file_name, third.file_name] == names
    assert sorted(info.path for info in store.walk("")) == sorted(
        f".hoodie/timeline/{name}" for name in names
    )
    assert store.read(f".hoodie/timeline/{names[0]}") == b"plan"
    assert store.read(f".hoodie/timeline/{names[1]}") == b""
    assert store.read(f".hoodie/timeline/{names[2]}") == b"done"
    assert load_timeline(store, V9).instants == (third,)
    assert load_timeline(store, V9).instants[0].action is action.when_completed


def test_version_6_names_have_no_completion_time():
    done = Instant(requested=REQUESTED, action=Action.COMPACTION, state=State.COMPLETED, completed=COMPLETED)
    assert instant_file_name(done, layout_version=1) == "20260101000000000.commit"
    plan = Instant(requested=REQUESTED, action=Action.CLUSTERING, state=State.REQUESTED)
    assert instant_file_name(plan, layout_version=1) == "20260101000000000.replacecommit.requested"


def test_nothing_is_overwritten(store):
    first = create_requested(store, V9, REQUESTED, Action.COMMIT)
    with pytest.raises(ObjectExistsError):
        create_requested(store, V9, REQUESTED, Action.COMMIT, b"other")
    done = complete(store, V9, first, COMPLETED, b"one")
    with pytest.raises(ObjectExistsError):
        complete(store, V9, first, COMPLETED, b"two")
    assert store.read(f".hoodie/timeline/{done.file_name}") == b"one"


def test_deleting_takes_one_state_only(store):
    first = create_requested(store, V9, REQUESTED, Action.COMMIT)
    second = create_inflight(store, V9, first)
    assert load_timeline(store, V9).instants == (second,)
    assert delete_instant_file(store, V9, second) is True
    assert delete_instant_file(store, V9, second) is False
    assert load_timeline(store, V9).instants == (first,)


def test_completing_needs_a_completion_time():
    with pytest.raises(ValueError, match="completion time"):
        instant_file_name(
            Instant(requested=REQUESTED, action=Action.COMMIT, state=State.COMPLETED), layout_version=2
        )


@pytest.mark.parametrize(
    "name",
    [
        ".20260101000000000.commit.crc",
        "20260101000000000.commit.crc",
        "20260101000000000_20260101000001000.commit.7f9c24e8-3b12-4fef-91d0-5d3f1a2b3c4d",
        "20260101000000000.commit.requested.tmp",
        "20260101000000000.unknown",
        "20260101000000000.unknown.requested",
        "20260101000000000.commit.completed",
        "20260101000000000_20260101000001000.commit.inflight",
        "20260101000000000",
        "hoodie.properties",
        "history",
        "_version_",
        "manifest_1",
        "x.commit",
        "20260101000000000.requested",
    ],
)
def test_foreign_names_are_no_instants(name):
    assert parse_instant_file(name) is None


def test_short_and_long_instants_are_read():
    assert parse_instant_file("20260101000000.commit").requested == InstantTime("20260101000000")
    assert parse_instant_file("20260101000000000001.deltacommit.inflight").state is State.INFLIGHT
    assert parse_instant_file("00000000000000000_20260101000000000.deltacommit").completed == REQUESTED
