"""Reading log files (log format notes §2). Damaged blocks are skipped, as Hudi does, up to the next magic."""

from __future__ import annotations

import logging
import struct

import pyarrow as pa

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.avro.datum import decode_datums
from hudi_sql.storage.log_file.blocks import LOG_MAGIC, BlockType, HeaderKey, LogBlock
from hudi_sql.storage.log_file.delete_schema import DELETE_LIST_SCHEMA

__all__ = ["decode_delete_block", "read_log_blocks"]

_log = logging.getLogger(__name__)
_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")
_DELETE_VERSION = 3


def read_log_blocks(data: bytes, path: str) -> list[LogBlock]:
    """Read the blocks of a log file, oldest first; a corrupt stretch comes as one block of type CORRUPT.

    Raises:
        CorruptTableError: The file does not begin with a block, or has a block of a kind that does not exist.
    """
    blocks: list[LogBlock] = []
    at = 0
    if data and not data.startswith(LOG_MAGIC):
        raise CorruptTableError(f"{path} is no log file", path=path, offset=0)
    while at < len(data):
        end = _end_of_block(data, at)
        if end is None:
            after = data.find(LOG_MAGIC, at + len(LOG_MAGIC))
            after = len(data) if after < 0 else after
            _log.warning("%s: skipped a damaged block at %d, %d bytes", path, at, after - at)
            blocks.append(LogBlock(type=BlockType.CORRUPT, headers={}, content=b"", offset=at))
            at = after
            continue
        try:
            blocks.append(_decode(data, at, end))
        except (struct.error, ValueError) as exc:
            raise CorruptTableError(f"A block of {path} cannot be read: {exc}", path=path, offset=at) from exc
        at = end
    return blocks


def decode_delete_block(block: LogBlock, path: str) -> pa.StructArray:
    """Records of a delete block: `recordKey`, `partitionPath` and `orderingVal` (a struct by wrapper).

    Raises:
        CorruptTableError: The content is no delete list, or of a version written by Java serialization.
    """
    content = block.content
    if len(content) < 8:
        raise CorruptTableError(f"A delete block of {path} is empty", path=path, offset=block.offset)
    version, size = _INT.unpack_from(content, 0)[0], _INT.unpack_from(content, 4)[0]
    if version != _DELETE_VERSION or size > len(content) - 8:
        raise CorruptTableError(
            f"A delete block of {path} has version {version}, which cannot be read",
            path=path,
            offset=block.offset,
            hint="Versions 1 and 2 are serialized Java objects; compact the table with Hudi.",
        )
    records = decode_datums(pa.array([content[8 : 8 + size]], pa.binary()), DELETE_LIST_SCHEMA, path)
    return records.field("deleteRecordList").values


def _end_of_block(data: bytes, at: int) -> int | None:
    """Position after a block, or None when its frame does not hold together."""
    start = at + len(LOG_MAGIC)
    if data[at:start] != LOG_MAGIC or start + 8 > len(data):
        return None
    length = int(_LONG.unpack_from(data, start)[0])
    end = start + 8 + length
    if length < 8 or end > len(data):
        return None
    if _LONG.unpack_from(data, end - 8)[0] - len(LOG_MAGIC) != length:
        return None
    if end < len(data) and data[end : end + len(LOG_MAGIC)] != LOG_MAGIC:
        return None
    return end


def _decode(data: bytes, at: int, end: int) -> LogBlock:
    position = at + len(LOG_MAGIC) + 8
    version, kind = _INT.unpack_from(data, position)[0], _INT.unpack_from(data, position + 4)[0]
    if version != 1:
        raise ValueError(f"log format version {version} is not known")
    headers, position = _headers(data, position + 8, end)
    size = _LONG.unpack_from(data, position)[0]
    position += 8
    if size < 0 or position + size > end:
        raise ValueError("the content is longer than the block")
    return LogBlock(
        type=BlockType(kind), headers=headers, content=data[position : position + size], offset=at
    )


def _headers(data: bytes, at: int, end: int) -> tuple[dict[HeaderKey, str], int]:
    count = _INT.unpack_from(data, at)[0]
    at += 4
    found: dict[HeaderKey, str] = {}
    for _ in range(count):
        key, size = _INT.unpack_from(data, at)[0], _INT.unpack_from(data, at + 4)[0]
        at += 8
        if size < 0 or at + size > end:
            raise ValueError("a header is longer than the block")
        found[HeaderKey(key)] = data[at : at + size].decode("utf-8", "replace")
        at += size
    return found, at
