"""Constants and small encodings of HFile version 3 (HFile notes §1 to §6)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = [
    "BLOCK_HEADER",
    "CODEC_GZ",
    "CODEC_NONE",
    "COMPARATOR",
    "DATA_MAGIC",
    "FILE_INFO_MAGIC",
    "INDEX_MAGIC",
    "TRAILER_BYTES",
    "TRAILER_MAGIC",
    "proto_fields",
    "proto_varint",
    "read_varint",
    "read_vlong",
    "vlong",
]

DATA_MAGIC = b"DATABLK*"
INDEX_MAGIC = b"IDXROOT2"
FILE_INFO_MAGIC = b"FILEINF2"
TRAILER_MAGIC = b'TRABLK"$'
TRAILER_BYTES = 4096
CODEC_GZ = 1
CODEC_NONE = 2
COMPARATOR = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"

BLOCK_HEADER = struct.Struct(">8siiqBii")
"""Magic, size on disk without header, uncompressed size, previous block, checksum type, bytes per checksum, size on
disk with header and without checksums."""


def vlong(number: int) -> bytes:
    """Hadoop's variable-length long, of a number that is not negative."""
    if number <= 127:
        return bytes([number])
    body = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return bytes([256 - 112 - len(body)]) + body


def read_vlong(data: bytes, at: int) -> tuple[int, int]:
    """Read such a number: (number, position after it)."""
    first = data[at] - 256 if data[at] > 127 else data[at]
    if first >= -112:
        return first, at + 1
    size = -112 - first if first >= -120 else -120 - first
    number = int.from_bytes(data[at + 1 : at + 1 + size], "big")
    return (number if first >= -120 else ~number), at + 1 + size


def proto_varint(number: int) -> bytes:
    """Protobuf's varint, of a number that is not negative."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a protobuf varint: (number, position after it)."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("a varint has more than ten bytes")


def proto_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a protobuf message: number, and a varint or the bytes of it."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            number, at = read_varint(data, at)
            yield tag >> 3, number
        elif tag & 7 == 2:
            size, at = read_varint(data, at)
            if at + size > len(data):
                raise ValueError("a field runs past the end of its message")
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError(f"unknown wire type {tag & 7}")
