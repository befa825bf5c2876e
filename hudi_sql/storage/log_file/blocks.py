"""Blocks of log files: kinds, header keys, and the block as a value (log format notes §2 to §4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

__all__ = ["LOG_MAGIC", "BlockType", "HeaderKey", "LogBlock"]

LOG_MAGIC = b"#HUDI#"


class BlockType(IntEnum):
    """Ordinals of block types."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class HeaderKey(IntEnum):
    """Ordinals of header keys."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBlock:
    """One block."""

    type: BlockType
    headers: Mapping[HeaderKey, str]
    content: bytes
    offset: int
    """Of the block in its file."""

    @property
    def instant(self) -> str:
        """Instant that wrote the block; empty when it does not say."""
        return self.headers.get(HeaderKey.INSTANT_TIME, "")
