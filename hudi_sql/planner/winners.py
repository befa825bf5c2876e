"""Which of several rows for one place stands: the highest ordering value. Column-wise, whatever the size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Winners", "compare_ordering", "group_codes", "pick_winners", "same_values"]

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_MOST_CODES = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Winners:
    """Outcome of a contest inside groups of rows."""

    kept: Indices
    """One row of each group, ascending."""
    tied: Indices
    """Rows that are as high as the kept row of their group, which is the same place of `tied_with`."""
    tied_with: Indices


def group_codes(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Indices:
    """Number the distinct combinations of values; NULL counts as a value."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    num_codes = 1
    for column in columns:
        encoded = _flat(column).dictionary_encode(null_encoding="encode")
        size = len(encoded.dictionary) + 1
        if num_codes * size > _MOST_CODES:
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
            num_codes = len(codes)
        codes = codes * size + encoded.indices.to_numpy(zero_copy_only=False)
        num_codes *= size
    return codes


def pick_winners(codes: Indices, ranking: Sequence[pa.Array | pa.ChunkedArray]) -> Winners:
    """Keep the row with the highest ranking in each group of equal codes.

    NULL is the lowest ranking. Without a ranking all rows of a group tie; the first one is kept.
    """
    none = np.empty(0, dtype=np.int64)
    ascending = np.sort(codes)
    if not (ascending[1:] == ascending[:-1]).any():
        return Winners(kept=np.arange(len(codes), dtype=np.int64), tied=none, tied_with=none)
    _, group, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    alone = sizes[group] == 1
    rivals = np.flatnonzero(~alone)
    names = [f"r{index}" for index in range(len(ranking))]
    contest = pa.table(
        [pa.array(codes[rivals]), *(_flat(column).take(pa.array(rivals)) for column in ranking)],
        names=["code", *names],
    )
    order = pc.sort_indices(
        contest, sort_keys=[("code", "ascending"), *((name, "descending") for name in names)]
    ).to_numpy()
    contest = contest.take(pa.array(order))
    ordered = rivals[order]
    starts = np.flatnonzero(np.r_[True, np.diff(codes[ordered]) != 0])
    head = np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
    level = np.ones(len(ordered), dtype=bool)
    for name in names:
        level &= same_values(contest[name], contest[name].take(pa.array(head)))
    level[starts] = False
    kept = np.sort(np.concatenate([np.flatnonzero(alone), ordered[starts]]))
    return Winners(kept=kept.astype(np.int64), tied=ordered[level], tied_with=ordered[head[level]])


def same_values(left: pa.Array | pa.ChunkedArray, right: pa.Array | pa.ChunkedArray) -> Mask:
    """Compare value by value; NULL is the same as NULL."""
    a, b = _flat(left), _flat(right)
    try:
        equal = pc.fill_null(pc.equal(a, b), fill_value=False)
    except pa.ArrowNotImplementedError:
        # Nested values have no comparison kernel: equal where their rows encode to one dictionary entry is not
        # offered either, so the pieces are compared.
        return _same_nested(a, b)
    both_null = pc.and_(pc.is_null(a), pc.is_null(b))
    return np.asarray(pc.or_(equal, both_null).to_numpy(zero_copy_only=False), dtype=bool)


def compare_ordering(
    new: Sequence[pa.Array | pa.ChunkedArray], old: Sequence[pa.Array | pa.ChunkedArray]
) -> Mask:
    """Tell where the new ordering values are lower than the old ones, the first field counting most.

    A stored NULL is lower than everything.
    """
    size = len(new[0]) if new else 0
    lower = np.zeros(size, dtype=bool)
    undecided = np.ones(size, dtype=bool)
    for mine, stored in zip(new, old, strict=True):
        a, b = _flat(mine), _flat(stored)
        less = pc.fill_null(pc.less(a, b), fill_value=False).to_numpy(zero_copy_only=False)
        equal = same_values(a, b)
        lower |= undecided & less
        undecided &= equal
    return lower


def _same_nested(a: pa.Array, b: pa.Array) -> Mask:
    if pa.types.is_struct(a.type):
        same = np.asarray(pc.equal(pc.is_null(a), pc.is_null(b)).to_numpy(zero_copy_only=False), dtype=bool)
        for left, right in zip(a.flatten(), b.flatten(), strict=True):
            same &= same_values(left, right)
        return same
    # Lists and maps: only the absence of both is known to be the same.
    return np.asarray(pc.and_(pc.is_null(a), pc.is_null(b)).to_numpy(zero_copy_only=False), dtype=bool)


def _flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
