import datetime as dt
import itertools
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_sql.storage.read.predicate import And, Compare, CompareOp, IsIn, IsNull, Or, referenced_columns
from hudi_sql.storage.read.pruning import may_match_files, may_match_partitions

OPS = {
    CompareOp.EQ: lambda a, b: a == b,
    CompareOp.NE: lambda a, b: a != b,
    CompareOp.LT: lambda a, b: a < b,
    CompareOp.LE: lambda a, b: a <= b,
    CompareOp.GT: lambda a, b: a > b,
    CompareOp.GE: lambda a, b: a >= b,
}


def ranges(kind, files, column="c"):
    """Files as (min, max, nulls, rows)."""
    lows, highs, nulls, rows = zip(*files, strict=True)
    return pa.table(
        {
            "partition": [""] * len(files),
            "file_name": [str(number) for number in range(len(files))],
            "num_values": pa.array(rows, pa.int64()),
            f"min:{column}": pa.array(lows, kind),
            f"max:{column}": pa.array(highs, kind),
            f"nulls:{column}": pa.array(nulls, pa.int64()),
        }
    )


def compare(op, value, kind=None, column="c"):
    return Compare(column=column, op=op, value=pa.scalar(value, kind))


def kept(predicate, table):
    return may_match_files(predicate, table).to_pylist()


@pytest.mark.parametrize(
    ("op", "value", "wanted"),
    [
        (CompareOp.EQ, 5, [True, False, False]),
        (CompareOp.EQ, 10, [True, True, False]),
        (CompareOp.LT, 10, [True, False, False]),
        (CompareOp.LE, 10, [True, True, False]),
        (CompareOp.GT, 20, [False, False, True]),
        (CompareOp.GE, 20, [False, True, True]),
        (CompareOp.NE, 30, [True, True, False]),
    ],
)
def test_comparison_against_ranges(op, value, wanted):
    table = ranges(pa.int64(), [(1, 10, 0, 5), (10, 20, 0, 5), (30, 30, 0, 5)])
    assert kept(compare(op, value, pa.int64()), table) == wanted


def test_no_file_with_a_match_is_ever_left_out():
    rng = random.Random(7)
    pools = {
        pa.int32(): range(-3, 4),
        pa.string(): ["", "a", "ab", "b", "é", "\uffee", "\U0001f389"],
        pa.decimal128(5, 2): [Decimal(n).scaleb(-2) for n in (-150, -1, 0, 1, 150)],
        pa.date32(): [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2026, 3, 1)],
        pa.bool_(): [False, True],
    }
    num_pruned = 0
    for kind, pool in pools.items():
        for _ in range(60):
            files = [[rng.choice([*pool, None]) for _ in range(3)] for _ in range(4)]
            stats = []
            for values in files:
                known = [value for value in values if value is not None]
                order = (lambda v: v.encode("utf-16-be")) if kind == pa.string() else (lambda v: v)
                low, high = (min(known, key=order), max(known, key=order)) if known else (None, None)
                stats.append((low, high, values.count(None), len(values)))
            table = ranges(kind, stats)
            one, other = rng.choice(list(pool)), rng.choice(list(pool))
            for op, holds in OPS.items():
                predicate = compare(op, one, kind)
                for values, may in zip(files, kept(predicate, table), strict=True):
                    match = any(value is not None and holds(_code(value), _code(one)) for value in values)
                    assert may or not match
                    num_pruned += not may
            within = IsIn(column="c", values=(pa.scalar(one, kind), pa.scalar(other, kind)))
            for values, may in zip(files, kept(within, table), strict=True):
                assert may or not {one, other} & set(values)
    assert num_pruned > 500


def _code(value):
    return value.encode() if isinstance(value, str) else value


def test_unknown_bounds_keep_files():
    table = ranges(pa.int64(), [(None, None, 0, 5), (None, None, None, None), (0, 0, 5, 5), (7, 9, 0, 5)])
    # The third is what Hudi says of a file of NULLs, and of one without statistics.
    assert kept(compare(CompareOp.EQ, 100, pa.int64()), table) == [True, True, True, False]


def test_column_without_statistics_keeps_files():
    table = ranges(pa.int64(), [(1, 2, 0, 5)])
    low = compare(CompareOp.GT, 5, pa.int64())
    other = compare(CompareOp.EQ, "x", column="c40")
    assert kept(other, table) == [True]
    assert kept(IsNull(column="info", negated=True), table) == [True]
    assert kept(And(parts=(low, other)), table) == [False]
    assert kept(Or(parts=(low, other)), table) == [True]


def test_floating_bounds_prove_nothing():
    for kind in (pa.float64(), pa.float32()):
        table = ranges(kind, [(0.0, 0.0, 0, 100), (1.0, 100.0, 0, 100)])
        for op, value in itertools.product(OPS, (-1.0, 250.0)):
            assert kept(compare(op, value, kind), table) == [True, True]


def test_nulls():
    table = ranges(pa.int64(), [(1, 2, 0, 5), (1, 2, 3, 5), (0, 0, 5, 5), (None, None, None, 5)])
    assert kept(IsNull(column="c"), table) == [False, True, True, True]
    assert kept(IsNull(column="c", negated=True), table) == [True] * 4


def test_values_of_other_types_prune_only_when_they_are_the_same():
    table = ranges(pa.int32(), [(2026, 2026, 0, 1), (1, 1, 0, 1)])
    assert kept(compare(CompareOp.EQ, 2026, pa.int64()), table) == [True, False]
    assert kept(compare(CompareOp.EQ, 2026.0), table) == [True, False]
    assert kept(compare(CompareOp.EQ, Decimal("2026.0")), table) == [True, False]
    for value in ("2026", 2026.5, 2**40, True):
        assert kept(compare(CompareOp.EQ, value), table) == [True, True]
    days = ranges(pa.date32(), [(0, 1, 0, 1)])
    assert kept(compare(CompareOp.EQ, "2026-03-01"), days) == [True]
    assert kept(compare(CompareOp.GT, dt.datetime(2026, 3, 1)), days) == [True]
    assert kept(compare(CompareOp.EQ, None, pa.int32()), table) == [True, True]


def test_text_beyond_the_surrogates_proves_nothing():
    # Hudi orders UTF-16 units: for it the range goes from the emoji up to U+FFEE.
    table = ranges(pa.string(), [("\U0001f389", "\uffee", 0, 2), ("a", "b", 0, 2)])
    assert kept(compare(CompareOp.EQ, "\uffee"), table) == [True, False]
    assert kept(compare(CompareOp.LT, "\uffee"), table) == [True, True]


def test_many_values_are_compared_by_their_span():
    table = ranges(pa.int64(), [(0, 5, 0, 5), (150, 160, 0, 5), (900, 950, 0, 5)])
    wanted = tuple(pa.scalar(value, pa.int64()) for value in range(100, 200))
    assert kept(IsIn(column="c", values=wanted), table) == [False, True, False]
    assert kept(IsIn(column="c", values=()), table) == [False, False, False]
    few = IsIn(column="c", values=(pa.scalar(3, pa.int64()), pa.scalar(920, pa.int64())))
    assert kept(few, table) == [True, False, True]


def partitions(predicate, values, **kinds):
    scalars = [{name: pa.scalar(item[name], kinds[name]) for name in item} for item in values]
    return may_match_partitions(predicate, scalars, kinds).to_pylist()


def test_partitions_by_value_null_and_unknown():
    values = [{"p": "a"}, {"p": "b"}, {"p": None}, {}]
    kinds = {"p": pa.string()}
    assert partitions(compare(CompareOp.EQ, "a", column="p"), values, **kinds) == [True, False, False, True]
    assert partitions(compare(CompareOp.NE, "a", column="p"), values, **kinds) == [False, True, False, True]
    assert partitions(IsNull(column="p"), values, **kinds) == [False, False, True, True]
    assert partitions(IsNull(column="p", negated=True), values, **kinds) == [True, True, False, True]
    within = IsIn(column="p", values=(pa.scalar("b"), pa.scalar("c")))
    assert partitions(within, values, **kinds) == [False, True, False, True]
    assert partitions(IsIn(column="p", values=()), values, **kinds) == [False, False, False, True]
    assert partitions(compare(CompareOp.EQ, 1, column="q"), values, **kinds) == [True] * 4
    assert partitions(compare(CompareOp.EQ, "a", column="p"), [], **kinds) == []


def test_partitions_by_several_columns():
    kinds = {"day": pa.date32(), "n": pa.int32(), "d": pa.float64()}
    values = [{"day": dt.date(2026, 3, day), "n": n, "d": 1.5} for day in (1, 2) for n in (1, 2)]
    first = compare(CompareOp.LE, dt.date(2026, 3, 1), column="day")
    second = compare(CompareOp.EQ, 2, pa.int32(), column="n")
    assert partitions(And(parts=(first, second)), values, **kinds) == [False, True, False, False]
    assert partitions(Or(parts=(first, second)), values, **kinds) == [True, True, False, True]
    assert partitions(compare(CompareOp.GT, 1.5, column="d"), values, **kinds) == [False] * 4


def test_referenced_columns():
    tree = And(
        parts=(
            Or(parts=(IsNull(column="a"), compare(CompareOp.EQ, 1, column="b"))),
            IsIn(column="a", values=()),
        )
    )
    assert referenced_columns(tree) == {"a", "b"}
