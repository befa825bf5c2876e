"""Entries of the record index: which file group a record key is in (metadata table notes §8)."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["file_ids_of", "index_payload"]

_UUID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})(?:-(\d+))?")
_NO_INDEX = -1
_RAW = 1


def index_payload(partitions: pa.Array, file_ids: pa.Array, instant_ms: int) -> pa.StructArray:
    """The payload of `record_index` records: partition and file id of each key."""
    encoded = file_ids.dictionary_encode()
    parts = [_split(text) for text in encoded.dictionary.to_pylist()]
    take = encoded.indices
    rows = len(file_ids)

    def column(position: int, kind: pa.DataType) -> pa.Array:
        return pa.array([part[position] for part in parts], kind).take(take)

    columns = {
        "partitionName": partitions.cast(pa.string()),
        "fileIdHighBits": column(0, pa.int64()),
        "fileIdLowBits": column(1, pa.int64()),
        "fileIndex": column(2, pa.int32()),
        "fileId": column(3, pa.string()),
        "instantTime": pa.repeat(pa.scalar(instant_ms, pa.int64()), rows),
        "fileIdEncoding": column(4, pa.int32()),
    }
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def file_ids_of(info: pa.StructArray) -> pa.StringArray:
    """File ids of index records; distinct ones are few."""
    raw = info.field("fileId")
    high = info.field("fileIdHighBits").fill_null(0).to_numpy(zero_copy_only=False)
    low = info.field("fileIdLowBits").fill_null(0).to_numpy(zero_copy_only=False)
    index = info.field("fileIndex").fill_null(_NO_INDEX).to_numpy(zero_copy_only=False).astype(np.int64)
    encoding = info.field("fileIdEncoding").fill_null(0).to_numpy(zero_copy_only=False)
    packed = np.stack([high, low, index], axis=1) if len(high) else np.empty((0, 3), np.int64)
    distinct, inverse = np.unique(packed, axis=0, return_inverse=True)
    texts = pa.array([_joined(*row) for row in distinct.tolist()], pa.string())
    by_uuid = texts.take(pa.array(inverse.reshape(-1)))
    return pc.if_else(pa.array(encoding == _RAW), raw, by_uuid)


def _split(file_id: str) -> tuple[int, int, int, str, int]:
    """High bits, low bits, index, raw id and encoding of a file id."""
    match = _UUID.fullmatch(file_id)
    if match is None:
        return -1, -1, _NO_INDEX, file_id, _RAW
    high = _signed(int(match[1] + match[2] + match[3], 16))
    low = _signed(int(match[4] + match[5], 16))
    return high, low, int(match[6]) if match[6] is not None else _NO_INDEX, "", 0


def _joined(high: int, low: int, index: int) -> str:
    digits = f"{high & 2**64 - 1:016x}{low & 2**64 - 1:016x}"
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return uuid if index == _NO_INDEX else f"{uuid}-{index}"


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
