"""Keys of the metadata table's records, and the file groups that they belong to (metadata table notes §3, §5)."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash

from hudi_sql.storage.model.files import PartitionPath

__all__ = [
    "ALL_PARTITIONS",
    "column_prefix",
    "column_stats_key",
    "file_groups_of",
    "partition_identifier",
    "partition_of",
    "partition_stats_key",
]

ALL_PARTITIONS = "__all_partitions__"
_SEED = 0xFFFFFFFFDABADABA
_ROOT = "."


def partition_identifier(partition: PartitionPath) -> str:
    """How a partition is named in keys and in the list of partitions: the root has a name too."""
    return partition or _ROOT


def partition_of(identifier: str) -> PartitionPath:
    """The partition of such a name."""
    return PartitionPath("" if identifier == _ROOT else identifier)


@lru_cache(maxsize=65_536)
def _short(text: str) -> str:
    """Eight bytes of XXH64, in base64: stands for a column or a partition."""
    digest = xxhash.xxh64(text.encode(), seed=_SEED).digest()
    return base64.b64encode(digest).decode("ascii")


def _long(text: str) -> str:
    """MD5 in base64: stands for a file name."""
    return base64.b64encode(hashlib.md5(text.encode(), usedforsecurity=False).digest()).decode("ascii")


def column_prefix(column: str, partition: PartitionPath | None = None) -> str:
    """What keys of a column's statistics begin with, in one partition or in all."""
    return _short(column) + ("" if partition is None else _short(partition_identifier(partition)))


def column_stats_key(column: str, partition: PartitionPath, file_name: str) -> str:
    """Key of the range of one column in one file."""
    return _short(column) + _short(partition_identifier(partition)) + _long(file_name)


def partition_stats_key(column: str, partition: PartitionPath) -> str:
    """Key of the range of one column in one partition."""
    return _short(column) + _short(partition_identifier(partition))


def file_groups_of(keys: pa.Array, num_groups: int) -> npt.NDArray[np.int64]:
    """Number of the file group of each key: Java's `String.hashCode`, made positive twice, modulo.

    Java's absolute value of the least integer is itself; the remainder keeps the sign, and is made positive again.
    """
    if num_groups <= 1:
        return np.zeros(len(keys), np.int64)
    hashes = _java_hashes(keys).astype(np.int64)
    positive = np.where(hashes == -(2**31), hashes, np.abs(hashes))
    return np.abs(np.fmod(positive, num_groups))


def _java_hashes(keys: pa.Array) -> npt.NDArray[np.int32]:
    text = keys.cast(pa.large_binary())
    if not len(text):
        return np.empty(0, np.int32)
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
    buffer = text.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None else np.empty(0, np.uint8)
    used = data[offsets[0] : offsets[-1]]
    if len(used) and used.max() >= 0x80:
        # Code units are those of UTF-16; keys outside ASCII are re-encoded one buffer at a time.
        parts = [key.decode().encode("utf-16-le") for key in text.to_pylist()]
        lengths = np.array([len(part) // 2 for part in parts], np.int64)
        units = np.frombuffer(b"".join(parts), "<u2").astype(np.uint32)
        starts = np.cumsum(lengths) - lengths
    else:
        lengths = np.diff(offsets)
        units = used.astype(np.uint32)
        starts = offsets[:-1] - offsets[0]
    hashes = np.zeros(len(text), np.uint32)
    for position in range(int(lengths.max())):
        rows = np.flatnonzero(lengths > position)
        hashes[rows] = hashes[rows] * np.uint32(31) + units[starts[rows] + position]
    return hashes.view(np.int32)
