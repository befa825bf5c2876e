"""Rows by the place where they live: slice and position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_sql.storage.model.files import FileSlice
from hudi_sql.storage.write.changes import SliceChanges

__all__ = ["PlaceCodes", "slice_changes"]

Indices = npt.NDArray[np.int64]
_POSITION_BITS = 40  # rows of one file stay far below 2**40, slices of one table below 2**23


class PlaceCodes:
    """Gives each place in a table one number, whatever tuple its slice is counted in."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}

    def codes(self, slices: Indices, positions: Indices, of: Sequence[FileSlice]) -> Indices:
        """Numbers of places whose slices are counted in `of`."""
        known = [self._numbers.setdefault((s.partition, s.file_id), len(self._numbers)) for s in of]
        numbers = np.array(known or [0], dtype=np.int64)
        return (numbers[slices] << _POSITION_BITS) + positions


def slice_changes(
    of: Sequence[FileSlice],
    deleted: tuple[Indices, Indices],
    updated: tuple[Indices, Indices],
    values: pa.Table,
) -> tuple[SliceChanges, ...]:
    """Group changes by slice. Places are given as slices and positions; `values` belong to the updated ones."""
    deleted_of, updated_of = _by_slice(*deleted), _by_slice(*updated)
    none = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    result = []
    for number in sorted(deleted_of.keys() | updated_of.keys()):
        positions, at = updated_of.get(number, none)
        result.append(
            SliceChanges(
                slice=of[number],
                deleted=deleted_of.get(number, none)[0],
                updated=positions,
                values=values.take(pa.array(at)),
            )
        )
    return tuple(result)


def _by_slice(slices: Indices, positions: Indices) -> dict[int, tuple[Indices, Indices]]:
    """Slice → ascending positions, and where among the given ones each of them is."""
    if not len(slices):
        return {}
    order = np.lexsort((positions, slices))
    bounds = np.flatnonzero(np.diff(slices[order])) + 1
    pieces = np.split(order, bounds)
    return {int(slices[piece[0]]): (positions[piece], piece.astype(np.int64)) for piece in pieces}
