"""Byte strings of many rows, cut out of and put together in one buffer with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Bytes", "Ints", "Pieces", "binary_array", "cut", "join_pieces", "pieces_of", "spread"]

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pieces:
    """One byte string for each row: all of them in one buffer, in row order."""

    lengths: Ints
    data: Bytes

    @property
    def starts(self) -> Ints:
        """Where each string begins in the buffer."""
        return np.cumsum(self.lengths) - self.lengths


def spread(starts: Ints, lengths: Ints) -> Ints:
    """Indices of all bytes of slices of a buffer, slice after slice."""
    total = int(lengths.sum())
    if not total:
        return np.empty(0, np.int64)
    shifts = starts - (np.cumsum(lengths) - lengths)
    return np.repeat(shifts, lengths) + np.arange(total)


def cut(buffer: Bytes, starts: Ints, lengths: Ints) -> Pieces:
    """Cut slices out of a buffer."""
    return Pieces(lengths, buffer[spread(starts, lengths)])


def pieces_of(array: pa.Array) -> Pieces:
    """The bytes of a binary or string array; NULL counts as empty."""
    wide = array.cast(pa.large_binary())
    if wide.null_count:
        wide = wide.fill_null(b"")
    if not len(wide):
        return Pieces(np.empty(0, np.int64), np.empty(0, np.uint8))
    offsets = np.frombuffer(wide.buffers()[1], np.int64)[wide.offset : wide.offset + len(wide) + 1]
    buffer = wide.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None else np.empty(0, np.uint8)
    return Pieces(np.diff(offsets), data[offsets[0] : offsets[-1]])


def binary_array(pieces: Pieces, kind: pa.DataType) -> pa.Array:
    """An Arrow array of the strings: `pa.binary()`, `pa.string()` or their large forms."""
    offsets = np.zeros(len(pieces.lengths) + 1, np.int64)
    np.cumsum(pieces.lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(pieces.data))]
    wide = pa.Array.from_buffers(pa.large_binary(), len(pieces.lengths), buffers)
    return wide.cast(kind)


def join_pieces(columns: Sequence[Pieces]) -> Pieces:
    """For each row its strings of several columns, one after the other."""
    if len(columns) == 1:
        return columns[0]
    lengths: Ints = np.add.reduce([column.lengths for column in columns], axis=0, dtype=np.int64)
    out = np.empty(int(lengths.sum()), np.uint8)
    at = np.cumsum(lengths) - lengths
    for column in columns:
        out[spread(at, column.lengths)] = column.data
        at = at + column.lengths
    return Pieces(lengths, out)
