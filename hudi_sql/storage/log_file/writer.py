"""Writing blocks of log files (log format notes §2 to §4)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from hudi_sql.storage.avro.datum import encode_datums
from hudi_sql.storage.hfile.writer import encode_hfile
from hudi_sql.storage.log_file.blocks import LOG_MAGIC, BlockType, HeaderKey
from hudi_sql.storage.log_file.delete_schema import DELETE_LIST_SCHEMA
from hudi_sql.storage.model.instant import InstantTime

__all__ = ["encode_delete_block", "encode_empty_delete_block", "encode_hfile_block", "encode_log_block"]

_FORMAT_VERSION = 1
_DELETE_VERSION = 3


def encode_log_block(kind: BlockType, headers: Mapping[HeaderKey, str], content: bytes) -> bytes:
    """Frame a block's content."""
    body = bytearray(struct.pack(">iii", _FORMAT_VERSION, kind, len(headers)))
    for key, value in headers.items():
        text = value.encode()
        body += struct.pack(">ii", key, len(text)) + text
    body += struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    length = len(body) + 8
    # The pointer at the end counts back to the magic.
    return LOG_MAGIC + struct.pack(">q", length) + bytes(body) + struct.pack(">q", length + len(LOG_MAGIC))


def encode_hfile_block(instant: InstantTime, schema_json: str, keys: pa.Array, values: pa.Array) -> bytes:
    """A data block that holds an HFile; keys ascend by bytes and are distinct."""
    headers = {HeaderKey.INSTANT_TIME: str(instant), HeaderKey.SCHEMA: schema_json}
    return encode_log_block(BlockType.HFILE_DATA, headers, encode_hfile(keys, values, schema_json))


def encode_delete_block(
    instant: InstantTime, keys: pa.Array, partition: str, schema_json: str | None = None
) -> bytes:
    """A delete block of version 3 whose deletes win over everything before them (ordering value: integer 0)."""
    rows = len(keys)
    record = pa.StructArray.from_arrays(
        [
            keys.cast(pa.string()),
            pa.repeat(pa.scalar(partition, pa.string()), rows),
            pa.StructArray.from_arrays(
                [pa.StructArray.from_arrays([pa.array(np.zeros(rows, np.int32))], names=["value"])],
                names=["IntWrapper"],
            ),
        ],
        names=["recordKey", "partitionPath", "orderingVal"],
    )
    deletes = pa.ListArray.from_arrays(pa.array([0, rows], pa.int32()), record)
    datum = encode_datums(
        pa.StructArray.from_arrays([deletes], names=["deleteRecordList"]), DELETE_LIST_SCHEMA
    )[0].as_py()
    headers = {HeaderKey.SCHEMA: schema_json} if schema_json is not None else {}
    headers[HeaderKey.INSTANT_TIME] = str(instant)
    return encode_log_block(
        BlockType.DELETE, headers, struct.pack(">ii", _DELETE_VERSION, len(datum)) + datum
    )


def encode_empty_delete_block(instant: InstantTime) -> bytes:
    """The block that makes a file group of the metadata table known before it has records."""
    headers = {HeaderKey.INSTANT_TIME: str(instant)}
    return encode_log_block(BlockType.DELETE, headers, struct.pack(">ii", _DELETE_VERSION, 1) + b"\0")
