from __future__ import annotations

import pytest

from hudi_sql.errors import ConflictError
from hudi_sql.storage.model.commit import CommitMetadata, OperationType, WriteStat
from hudi_sql.storage.model.files import FileId, PartitionPath
from hudi_sql.storage.model.instant import Action, Instant, InstantTime, State
from hudi_sql.storage.transaction.conflicts import (
    Footprint,
    OtherCommit,
    check_conflicts,
    check_pending_clustering,
    touched_file_ids,
)

MINE = InstantTime("20260101000000005")
THEIRS = InstantTime("20260101000000003")


def stat(partition, file_id, *, inserts=0, updates=0):
    return WriteStat(
        partition=PartitionPath(partition),
        file_id=FileId(file_id),
        path=f"{partition}/{file_id}",
        previous_commit="null",
        num_writes=inserts + updates,
        num_inserts=inserts,
        num_update_writes=updates,
        num_deletes=0,
        file_size_bytes=1,
    )


def other(*stats, replaced=None, operation=OperationType.UPSERT, touched=()):
    return OtherCommit(
        instant=Instant(requested=THEIRS, action=Action.COMMIT, state=State.COMPLETED),
        metadata=CommitMetadata(
            operation=operation,
            write_stats=tuple(stats),
            replaced_file_ids={
                PartitionPath(name): tuple(FileId(item) for item in ids)
                for name, ids in (replaced or {}).items()
            },
            touched_partitions=touched,
        ),
    )


def mine(groups=(), *, read=(), reads_nothing=False, inserted=(), keys_are_new=False, keys_are_global=False):
    return Footprint(
        file_groups=frozenset(groups),
        read_partitions=None if read is None else frozenset(read),
        reads_nothing=reads_nothing,
        inserted_partitions=frozenset(inserted),
        keys_are_new=keys_are_new,
        keys_are_global=keys_are_global,
    )


def check(footprint, *others):
    check_conflicts(footprint, others, instant=MINE, table="t")


CONFLICTS = {
    "same group written": (mine([("p", "a")], reads_nothing=True), other(stat("p", "a", updates=1))),
    "group replaced": (mine([("p", "a")], reads_nothing=True), other(replaced={"p": ["a", "b"]})),
    "group clustered": (
        mine([("p", "a")], reads_nothing=True),
        other(stat("p", "new"), replaced={"p": ["a"]}, operation=OperationType.CLUSTER),
    ),
    "group compacted": (
        mine([("p", "a")], reads_nothing=True),
        other(stat("p", "a"), operation=OperationType.COMPACT),
    ),
    "read partition changed": (mine(read=["p"]), other(stat("p", "b", updates=1))),
    "read partition deleted": (
        mine(read=["p"]),
        other(replaced={"p": ["b"]}, operation=OperationType.DELETE_PARTITION),
    ),
    "read partition named without stats": (mine(read=["p"]), other(touched=("p",))),
    "all was read": (mine(read=None), other(stat("q", "b", inserts=1))),
    "same keys may be new to both": (
        mine(inserted=["p", "q"], keys_are_new=True, reads_nothing=True),
        other(stat("r", "x", inserts=1), stat("q", "y", inserts=1)),
    ),
}

CONFLICTS["keys new to the whole table"] = (
    mine(inserted=["p"], keys_are_new=True, keys_are_global=True, reads_nothing=True),
    other(stat("q", "b", inserts=5)),
)

NO_CONFLICTS = {
    "global keys, they only updated": (
        mine(inserted=["p"], keys_are_new=True, keys_are_global=True, reads_nothing=True),
        other(stat("p", "b", updates=5)),
    ),
    "global keys, none of ours is new": (
        mine(keys_are_new=True, keys_are_global=True, reads_nothing=True),
        other(stat("p", "b", inserts=5)),
    ),
    "nobody else": (mine([("p", "a")], read=None),),
    "other group, blind": (mine([("p", "a")], reads_nothing=True), other(stat("p", "b", updates=1))),
    "same file id in another partition": (
        mine([("p", "a")], reads_nothing=True),
        other(stat("q", "a", updates=1)),
    ),
    "other partition": (mine([("p", "a")], read=["p"]), other(stat("q", "b", updates=1))),
    "blind append": (
        mine(read=None, reads_nothing=True, inserted=["p"]),
        other(stat("p", "b", inserts=1)),
    ),
    "read partition clustered": (
        mine([("p", "c")], read=["p"]),
        other(stat("p", "new", inserts=9), replaced={"p": ["a"]}, operation=OperationType.CLUSTER),
    ),
    "new keys, they only updated": (
        mine(inserted=["p"], keys_are_new=True, reads_nothing=True),
        other(stat("p", "b", updates=5)),
    ),
    "new keys in other partitions": (
        mine(inserted=["p"], keys_are_new=True, reads_nothing=True),
        other(stat("q", "b", inserts=5)),
    ),
    "they did nothing": (mine(read=None), other()),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflict(name):
    footprint, *others = CONFLICTS[name]
    with pytest.raises(ConflictError) as caught:
        check(footprint, *others)
    error = caught.value
    assert error.retryable
    assert (error.instant, error.other_instant, error.table) == (MINE, THEIRS, "t")
    assert str(MINE) in error.message
    assert str(THEIRS) in error.message


@pytest.mark.parametrize("name", NO_CONFLICTS)
def test_no_conflict(name):
    footprint, *others = NO_CONFLICTS[name]
    check(footprint, *others)


def test_any_of_several_commits_counts():
    with pytest.raises(ConflictError):
        check(mine(read=["p"]), other(stat("q", "b")), other(), other(stat("p", "c", inserts=1)))


def test_touched_groups_are_written_and_replaced_ones():
    metadata = other(stat("p", "a"), stat("q", "b"), replaced={"p": ["c"], "r": []}).metadata
    assert touched_file_ids(metadata) == {("p", "a"), ("q", "b"), ("p", "c")}


def test_a_pending_clustering_keeps_its_groups():
    plan = frozenset({("p", "a"), ("p", "b")})
    check_pending_clustering(frozenset({("p", "c"), ("q", "a")}), plan, clustering=THEIRS, table="t")
    with pytest.raises(ConflictError, match="pending clustering") as caught:
        check_pending_clustering(frozenset({("p", "c"), ("p", "b")}), plan, clustering=THEIRS, table="t")
    assert caught.value.retryable is False
    assert caught.value.other_instant == THEIRS
    assert caught.value.file_groups == (("p", "b"),)
