"""Contests between rows, column-wise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hudi_sql.planner.winners import compare_ordering, group_codes, pick_winners, same_values


def test_codes_tell_combinations_apart_and_count_null_as_a_value() -> None:
    codes = group_codes([pa.array(["a", "a", None, None, "b"]), pa.array([1, 1, 2, 2, None])])
    assert len(set(codes.tolist())) == 3
    assert codes[0] == codes[1]
    assert codes[2] == codes[3]


def test_codes_of_many_columns_do_not_overflow() -> None:
    size = 3000
    columns = [pa.array(np.arange(size)) for _ in range(12)]
    assert len(set(group_codes(columns).tolist())) == size


def test_the_first_ordering_field_counts_most_and_null_is_lowest() -> None:
    codes = np.array([0, 0, 0, 1, 1])
    ranking = [pa.array([1, 2, 2, None, 0]), pa.array([9, 1, 3, 5, 5])]
    assert pick_winners(codes, ranking).kept.tolist() == [2, 4]


def test_without_duplicates_all_rows_stay() -> None:
    won = pick_winners(np.array([5, 3, 4]), [])
    assert won.kept.tolist() == [0, 1, 2]
    assert len(won.tied) == 0


def test_ties_are_reported_with_the_row_they_tie_with() -> None:
    won = pick_winners(np.array([7, 7, 7, 8]), [pa.array(["b", "a", "b", "z"])])
    assert won.kept.tolist() == [0, 3]
    assert won.tied.tolist() == [2]
    assert won.tied_with.tolist() == [0]


def test_text_orders_as_text() -> None:
    assert pick_winners(np.array([1, 1]), [pa.array(["10", "9"])]).kept.tolist() == [1]


def test_nested_values_are_compared_by_their_fields() -> None:
    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    left = pa.array([{"a": 1, "b": "x"}, {"a": 1, "b": None}, None], kind)
    right = pa.array([{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, None], kind)
    assert same_values(left, right).tolist() == [True, False, True]


def test_lower_is_lexicographic_and_a_stored_null_is_lower_than_all() -> None:
    new = [pa.array([1, 2, 1, 5]), pa.array(["b", "a", "a", "a"])]
    old = [pa.array([1, 1, 1, None]), pa.array(["a", "z", "b", "a"])]
    assert compare_ordering(new, old).tolist() == [False, False, True, False]
