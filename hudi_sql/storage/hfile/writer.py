"""Writing HFiles (HFile notes §1 to §8), their cells put together with NumPy."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from hudi_sql.storage.avro.cells import Ints, Pieces, pieces_of, spread
from hudi_sql.storage.hfile.format import (
    BLOCK_HEADER,
    CODEC_GZ,
    CODEC_NONE,
    COMPARATOR,
    DATA_MAGIC,
    FILE_INFO_MAGIC,
    INDEX_MAGIC,
    TRAILER_BYTES,
    TRAILER_MAGIC,
    proto_varint,
    vlong,
)

__all__ = ["encode_hfile"]

_BLOCK_BYTES = 64 * 1024
"""Larger blocks lose their last cells in Java's reader, which takes bytes for checksums off the uncompressed size."""
_CHECKSUM_EVERY = 16_384
_CELL_OVERHEAD = 21
_AFTER_ROW = np.array([0, 0x7F, *[0xFF] * 7, 4], np.uint8)  # no family, latest timestamp, Put


def encode_hfile(keys: pa.Array, values: pa.Array, schema_json: str, *, compress: bool = True) -> bytes:
    """Write cells into an HFile.

    Args:
        keys: Row keys (string or binary), ascending by bytes, distinct.
        values: Avro datums, aligned with the keys.
        schema_json: Schema of the values.
        compress: gzip, as Hudi does; else not at all.
    """
    rows, bodies = pieces_of(keys), pieces_of(values)
    codec = CODEC_GZ if compress else CODEC_NONE
    out = bytearray()
    index = bytearray()
    num_blocks = 0
    previous = last_block = -1
    for first, last in _blocks(rows.lengths + bodies.lengths + _CELL_OVERHEAD):
        payload = _cells(rows, bodies, first, last)
        block = _block(DATA_MAGIC, payload, codec, previous)
        row = _row(rows, first)
        key = len(row).to_bytes(2, "big") + row
        index += len(out).to_bytes(8, "big") + len(block).to_bytes(4, "big") + vlong(len(key)) + key
        previous = last_block = len(out)
        out += block
        num_blocks += 1
    load_on_open = len(out)
    out += _block(INDEX_MAGIC, bytes(index), codec)
    out += _block(INDEX_MAGIC, b"", codec)
    file_info = len(out)
    out += _block(FILE_INFO_MAGIC, _file_info(rows, bodies, schema_json), codec)
    total_cells = int((rows.lengths + bodies.lengths + _CELL_OVERHEAD).sum())
    fields = (
        (1, file_info),
        (2, load_on_open),
        (3, total_cells),
        (5, num_blocks),
        (6, 0),
        (7, len(rows.lengths)),
        (8, 1),
        (9, 0 if num_blocks else 2**64 - 1),
        (10, max(last_block, 0)),
        (11, COMPARATOR.encode()),
        (12, codec),
    )
    return bytes(out + _trailer(fields))


def _blocks(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Cut cells into blocks: (first, one past the last)."""
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _BLOCK_BYTES, side="right")))
        yield first, last
        first = last


def _cells(rows: Pieces, bodies: Pieces, first: int, last: int) -> bytes:
    row_sizes, body_sizes = rows.lengths[first:last], bodies.lengths[first:last]
    sizes = row_sizes + body_sizes + _CELL_OVERHEAD
    starts = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), np.uint8)
    head = np.empty((last - first, 10), np.uint8)
    head[:, 0:4] = (row_sizes + 12).astype(">i4").view(np.uint8).reshape(-1, 4)
    head[:, 4:8] = body_sizes.astype(">i4").view(np.uint8).reshape(-1, 4)
    head[:, 8:10] = row_sizes.astype(">u2").view(np.uint8).reshape(-1, 2)
    out[starts[:, None] + np.arange(10)] = head
    out[spread(starts + 10, row_sizes)] = _data(rows, first, last)
    after = starts + 10 + row_sizes
    out[after[:, None] + np.arange(len(_AFTER_ROW))] = _AFTER_ROW
    out[spread(after + len(_AFTER_ROW), body_sizes)] = _data(bodies, first, last)
    return out.tobytes()


def _data(pieces: Pieces, first: int, last: int) -> np.ndarray:
    start = int(pieces.lengths[:first].sum())
    return pieces.data[start : start + int(pieces.lengths[first:last].sum())]


def _row(rows: Pieces, number: int) -> bytes:
    return bytes(_data(rows, number, number + 1))


def _block(magic: bytes, payload: bytes, codec: int, previous: int = -1) -> bytes:
    body = payload
    if codec == CODEC_GZ:
        packer = zlib.compressobj(level=6, wbits=31)
        body = packer.compress(payload) + packer.flush()
    with_header = BLOCK_HEADER.size + len(body)
    checksums = 4 * -(-with_header // _CHECKSUM_EVERY)
    head = BLOCK_HEADER.pack(
        magic, len(body) + checksums, len(payload), previous, 0, _CHECKSUM_EVERY, with_header
    )
    return head + body + bytes(checksums)


def _file_info(rows: Pieces, bodies: Pieces, schema_json: str) -> bytes:
    count = len(rows.lengths)
    entries = [(b"schema", schema_json.encode())]
    last = b""
    if count:
        row = _row(rows, count - 1)
        last = len(row).to_bytes(2, "big") + row
        entries += [(b"minRecordKey", _row(rows, 0)), (b"maxRecordKey", row)]
    average_key = int(rows.lengths.mean()) + 12 if count else 0
    average_value = int(bodies.lengths.mean()) if count else 0
    entries += [
        (b"hfile.LASTKEY", last),
        (b"hfile.AVG_KEY_LEN", average_key.to_bytes(4, "big")),
        (b"hfile.AVG_VALUE_LEN", average_value.to_bytes(4, "big")),
        (b"KEY_VALUE_VERSION", (1).to_bytes(4, "big")),
        (b"MAX_MEMSTORE_TS_KEY", bytes(8)),
        (b"hfile.CREATE_TIME_TS", int(time.time() * 1000).to_bytes(8, "big")),
    ]
    message = bytearray()
    for name, value in entries:
        pair = b"\x0a" + proto_varint(len(name)) + name + b"\x12" + proto_varint(len(value)) + value
        message += b"\x0a" + proto_varint(len(pair)) + pair
    return b"PBUF" + proto_varint(len(message)) + bytes(message)


def _trailer(fields: tuple[tuple[int, int | bytes], ...]) -> bytes:
    message = bytearray()
    for number, value in fields:
        if isinstance(value, bytes):
            message += proto_varint(number << 3 | 2) + proto_varint(len(value)) + value
        else:
            message += proto_varint(number << 3) + proto_varint(value)
    body = TRAILER_MAGIC + proto_varint(len(message)) + bytes(message)
    return body.ljust(TRAILER_BYTES - 4, b"\0") + (3).to_bytes(4, "big")
