from __future__ import annotations

import pickle
import zipfile

import pytest

from hudi_sql.errors import BindError
from hudi_sql.storage.fs.base import FileInfo
from hudi_sql.storage.model.instant import Action, InstantTime, State
from hudi_sql.storage.properties.kinds import TimelineZone
from hudi_sql.storage.properties.table_config import parse_table_config
from hudi_sql.storage.timeline.timeline import timeline_of_files
from tests.golden_tables import TABLES, expected

COW_TABLES = sorted(path.stem for path in TABLES.glob("v[89]_cow*.zip"))
UTC = parse_table_config({"hoodie.table.name": "t", "hoodie.table.timeline.timezone": "UTC"})


def time(number):
    return InstantTime(f"202601010000{number:02}000")


def timeline(*names, config=UTC, modified_ms=1_796_100_867_379):
    files = [
        FileInfo(path=f".hoodie/timeline/{n}", size_bytes=0, modified_ms=modified_ms, is_folder=False)
        for n in names
    ]
    return timeline_of_files(files, config)


def commit(number, completed=None, action="commit"):
    return f"{time(number)}_{time(completed or number + 1)}.{action}"


@pytest.mark.parametrize("name", COW_TABLES)
def test_golden_timelines_equal_what_spark_said(name):
    want = expected(name)
    folder = f"{name}/.hoodie/timeline/"
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        names = [path.removeprefix(folder) for path in archive.namelist() if path.startswith(folder)]
    found = timeline(*(path for path in names if "/" not in path))
    completed = [[i.requested.value, i.completed.value, i.action.value] for i in found.completed]
    archived = set(want["archived_instants"])
    assert completed == [item for item in want["instants"] if item[0] not in archived]
    pending = [[i.requested.value, i.action.value, i.state.name] for i in found.pending]
    assert pending == want["pending_instants"]
    assert all(
        found.is_archived(InstantTime(requested))
        for requested, _, action in want["instants"]
        if requested in archived and action == "commit"
    )
    assert pickle.loads(pickle.dumps(found)) == found


def test_the_highest_state_of_an_instant_shows():
    found = timeline(
        f"{time(1)}.commit.requested",
        f"{time(1)}.inflight",
        commit(1),
        f"{time(3)}.compaction.requested",
        f"{time(3)}.compaction.inflight",
        f"{time(5)}.clustering.requested",
    )
    assert [(i.requested, i.action, i.state) for i in found.instants] == [
        (time(1), Action.COMMIT, State.COMPLETED),
        (time(3), Action.COMPACTION, State.INFLIGHT),
        (time(5), Action.CLUSTERING, State.REQUESTED),
    ]
    assert found.completed[0].completed == time(2)
    assert found.completed[0].file_name == commit(1)
    assert [i.requested for i in found.pending] == [time(3), time(5)]


def test_services_complete_as_what_they_amount_to():
    found = timeline(
        f"{time(1)}.clustering.inflight",
        commit(1, action="replacecommit"),
        f"{time(3)}.compaction.requested",
        commit(3),
    )
    assert [(i.action, i.state) for i in found.instants] == [
        (Action.REPLACE_COMMIT, State.COMPLETED),
        (Action.COMMIT, State.COMPLETED),
    ]


def test_a_savepoint_is_an_instant_beside_the_one_it_keeps():
    found = timeline(commit(1), commit(1, 5, "savepoint"))
    assert [i.action for i in found.instants] == [Action.COMMIT, Action.SAVEPOINT]
    assert [i.action for i in found.completed_writes] == [Action.COMMIT]
    assert found.find(time(1)).action is Action.COMMIT
    assert found.find(time(1), Action.SAVEPOINT).action is Action.SAVEPOINT
    assert found.find(time(2)) is None


def test_instants_older_than_the_first_active_write_count_as_committed():
    found = timeline(f"{time(2)}_{time(3)}.clean", commit(4), f"{time(6)}.inflight", commit(8))
    assert found.first_active_write == time(4)
    assert found.is_committed(time(1))
    assert found.is_committed(time(3))
    assert found.is_committed(time(4))
    assert not found.is_committed(time(5))
    assert not found.is_committed(time(6))
    assert found.is_committed(time(8))
    assert not found.is_committed(time(9))


def test_a_pending_first_write_is_not_committed():
    found = timeline(f"{time(2)}.commit.requested", commit(4))
    assert found.is_committed(time(1))
    assert not found.is_committed(time(2))
    assert not found.is_committed(time(3))


def test_writes_kept_for_savepoints_do_not_start_the_timeline():
    found = timeline(commit(1), commit(1, 2, "savepoint"), commit(6))
    assert found.first_active_write == time(6)
    assert found.is_committed(time(4))
    only = timeline(commit(1), commit(1, 2, "savepoint"))
    assert only.first_active_write == time(1)
    assert not only.is_committed(time(2))


def test_an_empty_timeline_has_nothing_committed():
    found = timeline()
    assert found.instants == ()
    assert found.latest_completed_write is None
    assert found.newest_time is None
    assert not found.is_committed(time(1))


def test_newest_time_is_the_greatest_of_all():
    assert timeline(commit(1, 9), commit(5, 6)).newest_time == time(9)
    assert timeline(commit(1, 2), f"{time(7)}.clean.requested").newest_time == time(7)
    assert timeline(commit(1, 9), commit(5, 6)).latest_completed_write.requested == time(5)


def test_the_first_of_two_completions_counts():
    for names in ((commit(1, 5), commit(1, 3)), (commit(1, 3), commit(1, 5))):
        assert timeline(*names).instants[0].completed == time(3)


def test_folders_and_foreign_files_are_ignored():
    folder = FileInfo(path=f".hoodie/{commit(1)}", size_bytes=0, modified_ms=0, is_folder=True)
    assert timeline_of_files([folder], UTC).instants == ()
    assert timeline("hoodie.properties", ".x.crc", f"{time(1)}.commit.x1").instants == ()


def test_version_6_takes_the_files_time_as_completion():
    config = parse_table_config(
        {"hoodie.table.name": "t", "hoodie.table.version": "6", "hoodie.table.timeline.timezone": "UTC"}
    )
    found = timeline(
        f"{time(1)}.commit", f"{time(1)}.inflight", f"{time(3)}.replacecommit.requested", config=config
    )
    assert [(i.state, i.completed and i.completed.value) for i in found.instants] == [
        (State.COMPLETED, "20261201045427379"),
        (State.REQUESTED, None),
    ]


def test_as_of_is_inclusive_and_shows_no_pending_instant():
    found = timeline(commit(2), f"{time(4)}.inflight", commit(6, 9))
    assert found.zone is TimelineZone.UTC
    at = found.as_of(time(6).value)
    assert [i.requested for i in at.completed] == [time(2), time(6)]
    assert at.is_committed(time(6))
    between = found.as_of("2026-01-01 00:00:05.000")
    assert [i.requested for i in between.completed] == [time(2)]
    assert not between.is_committed(time(4))
    assert not between.is_committed(time(6))
    assert between.is_committed(time(1))
    assert found.as_of("20260101000006") == found.as_of("2026-01-01 00:00:06")
    assert found.as_of("20260101000006").is_committed(time(6))
    assert found.as_of("2030-01-01").completed == found.completed


def test_as_of_before_the_first_commit_is_empty():
    before = timeline(commit(2)).as_of("2026-01-01")
    assert before.completed == ()
    assert not before.is_committed(time(2))
    assert not before.is_committed(time(1))


def test_as_of_no_time_is_a_bind_error():
    with pytest.raises(BindError, match="yesterday"):
        timeline(commit(2)).as_of("yesterday")
