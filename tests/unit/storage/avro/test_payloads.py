"""Payloads of real timelines, and our own read back."""

from __future__ import annotations

import io

import fastavro
import pytest

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.avro.payloads import (
    PayloadKind,
    decode_commit_metadata,
    decode_payload,
    encode_commit_metadata,
    encode_payload,
)
from hudi_sql.storage.model.commit import CommitMetadata, OperationType, WriteStat
from hudi_sql.storage.model.files import FileId, PartitionPath
from tests.golden_tables import unpack


@pytest.mark.parametrize("name", ["v9_cow_many_file_groups", "v9_cow_overwrite_partitions", "v8_cow"])
def test_commits_that_spark_wrote_keep_what_matters_through_our_codec(name, tmp_path) -> None:
    timeline = unpack(name, tmp_path) / ".hoodie" / "timeline"
    files = [
        file
        for file in timeline.iterdir()
        if "_" in file.name and file.suffix in (".commit", ".replacecommit")
    ]
    assert files
    for file in files:
        data = file.read_bytes()
        theirs = next(fastavro.reader(io.BytesIO(data)))
        metadata = decode_commit_metadata(data, file.name)
        ours = next(fastavro.reader(io.BytesIO(encode_commit_metadata(metadata))))
        for stats in theirs["partitionToWriteStats"].values():
            for stat in stats:
                stat["runtimeStats"] = None
        for key in ("partitionToReplaceFileIds", "partitionToWriteStats", "extraMetadata", "operationType"):
            assert (ours.get(key) or None) == (theirs.get(key) or None), key
        assert metadata.schema_json


def test_metadata_comes_back_as_it_was() -> None:
    stat = WriteStat(
        partition=PartitionPath("p=1"),
        file_id=FileId("f-0"),
        path="p=1/f-0_1-0-0_20260101000000000.parquet",
        previous_commit="null",
        num_writes=3,
        num_inserts=2,
        num_update_writes=1,
        num_deletes=4,
        file_size_bytes=99,
    )
    metadata = CommitMetadata(
        operation=OperationType.UPSERT,
        write_stats=(stat,),
        extra={"schema": "{}"},
        touched_partitions=(PartitionPath("p=1"),),
    )
    assert decode_commit_metadata(encode_commit_metadata(metadata), "x") == metadata


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b'{"partitionToWriteStats": null}'])
def test_a_body_that_says_nothing_is_empty_metadata(data) -> None:
    assert decode_commit_metadata(data, "x") == CommitMetadata(operation=OperationType.UNKNOWN)


@pytest.mark.parametrize(
    "data", [b"garbage", b"Obj\x01", b"Obj\x01" + b"\xff" * 50, b"{", b"[1]", b'{"extraMetadata": 5}']
)
def test_a_broken_body_is_named(data) -> None:
    with pytest.raises(CorruptTableError, match=r"x\.commit"):
        decode_commit_metadata(data, "x.commit")


def test_a_rollback_plan_comes_back() -> None:
    plan = {
        "instantToRollback": {"commitTime": "1", "action": "commit"},
        "RollbackRequests": [
            {
                "partitionPath": "p",
                "fileId": "f",
                "latestBaseInstant": None,
                "filesToBeDeleted": ["file:/t/p/x.parquet"],
                "logBlocksToBeDeleted": {},
            }
        ],
        "version": 1,
    }
    assert (
        decode_payload(PayloadKind.ROLLBACK_PLAN, encode_payload(PayloadKind.ROLLBACK_PLAN, plan), "x")
        == plan
    )
