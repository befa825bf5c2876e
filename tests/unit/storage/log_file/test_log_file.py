"""Framing of log blocks, deletes, and what is done about damage."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_sql.errors import CorruptTableError
from hudi_sql.storage.hfile.reader import HFileReader
from hudi_sql.storage.log_file.blocks import BlockType, HeaderKey
from hudi_sql.storage.log_file.reader import decode_delete_block, read_log_blocks
from hudi_sql.storage.log_file.writer import (
    encode_delete_block,
    encode_empty_delete_block,
    encode_hfile_block,
    encode_log_block,
)
from hudi_sql.storage.model.instant import InstantTime

INSTANT = InstantTime("20260101000000000")


def test_the_empty_block_of_a_new_group_is_that_of_hudi() -> None:
    data = encode_empty_delete_block(InstantTime("00000000000000000"))
    assert len(data) == 80
    (block,) = read_log_blocks(data, "x")
    assert block.type is BlockType.DELETE
    assert len(decode_delete_block(block, "x")) == 0


def test_blocks_come_back_in_order() -> None:
    keys = pa.array(["a", "b"])
    data = encode_hfile_block(INSTANT, '"bytes"', keys, pa.array([b"1", b"2"]))
    data += encode_delete_block(INSTANT, pa.array(["c", "é"]), "files")
    first, second = read_log_blocks(data, "x")
    assert (first.type, second.type) == (BlockType.HFILE_DATA, BlockType.DELETE)
    assert first.instant == second.instant == str(INSTANT)
    assert HFileReader.of_bytes(first.content).cells().keys.cast(pa.string()).equals(keys)
    assert decode_delete_block(second, "x").field("recordKey").to_pylist() == ["c", "é"]


def test_the_delete_of_the_format_notes_is_byte_for_byte() -> None:
    data = encode_delete_block(InstantTime("20261201023729494"), pa.array(["3"]), "city=sf")
    assert data.endswith(
        bytes.fromhex("0202330 20e636974793d7366040000".replace(" ", "")) + bytes(4) + data[-8:]
    )


def test_a_damaged_block_is_skipped_and_the_next_one_read() -> None:
    good = encode_log_block(BlockType.AVRO_DATA, {HeaderKey.INSTANT_TIME: "1"}, b"content")
    blocks = read_log_blocks(good + good[:20] + bytes(20) + good, "x")
    assert [block.type for block in blocks] == [BlockType.AVRO_DATA, BlockType.CORRUPT, BlockType.AVRO_DATA]
    cut = read_log_blocks(good + good[:-3], "x")
    assert [block.type for block in cut] == [BlockType.AVRO_DATA, BlockType.CORRUPT]


def test_what_is_no_log_file_is_named() -> None:
    with pytest.raises(CorruptTableError, match="no log file"):
        read_log_blocks(b"PAR1 and more", "x.log")
    with pytest.raises(CorruptTableError):
        read_log_blocks(encode_log_block(99, {}, b""), "x.log")
