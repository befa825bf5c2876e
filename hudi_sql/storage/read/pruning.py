"""Which partitions and files may hold rows of a predicate.

Vectorised over partitions and files. The answer is "may": whatever is not certain keeps a file. What is not certain:

- floating-point bounds: NaN is greater than every number for engines and is in no bound, and Hudi writes 0.0 for a
  row group with a NaN, also into the bounds of whole files;
- bounds of a file of which every value is said to be NULL: Hudi says so too when a file has no statistics;
- text bounds with characters from U+E000 on, where Hudi's order is not that of engines (UTF-16 units);
- values of another type than the column's, unless the cast changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.storage.read.predicate import And, Compare, CompareOp, IsIn, IsNull, Or, Predicate

__all__ = ["may_match_files", "may_match_partitions"]

_MOST_VALUES = 64
_FAR_TEXT = r"[\x{E000}-\x{10FFFF}]"
_Leaf = Callable[["Compare | IsIn | IsNull"], "pa.BooleanArray | None"]


def may_match_files(predicate: Predicate, ranges: pa.Table) -> pa.BooleanArray:
    """For each file, whether it may hold a row of which the predicate is true.

    Args:
        predicate: Over columns of the table.
        ranges: In the shape of `FileStatistics.column_ranges`.
    """
    return _evaluate(predicate, lambda leaf: _file_leaf(leaf, ranges), ranges.num_rows)


def may_match_partitions(
    predicate: Predicate, values: Sequence[Mapping[str, pa.Scalar]], kinds: Mapping[str, pa.DataType]
) -> pa.BooleanArray:
    """For each partition, whether it may hold a row of which the predicate is true.

    Args:
        predicate: Over columns of the table.
        values: What is certain of each partition's rows (`KeyGenerator.partition_values`); a column may be absent.
        kinds: Types of the partition columns.
    """
    columns = {}
    for name, kind in kinds.items():
        pieces = [pa.repeat(item[name], 1) if name in item else pa.nulls(1, kind) for item in values]
        column = pa.concat_arrays(pieces) if pieces else pa.array([], kind)
        columns[name] = (column, pa.array([name in item for item in values], pa.bool_()))
    return _evaluate(predicate, lambda leaf: _partition_leaf(leaf, columns), len(values))


def _evaluate(predicate: Predicate, leaf: _Leaf, size: int) -> pa.BooleanArray:
    if isinstance(predicate, And | Or):
        is_and = isinstance(predicate, And)
        result = pa.repeat(pa.scalar(is_and), size)
        for part in predicate.parts:
            other = _evaluate(part, leaf, size)
            result = pc.and_(result, other) if is_and else pc.or_(result, other)
        return result
    known = leaf(predicate)
    return pa.repeat(pa.scalar(value=True), size) if known is None else known


def _partition_leaf(
    leaf: Compare | IsIn | IsNull, columns: Mapping[str, tuple[pa.Array, pa.BooleanArray]]
) -> pa.BooleanArray | None:
    if leaf.column not in columns:
        return None
    values, is_known = columns[leaf.column]
    if isinstance(leaf, IsNull):
        holds = pc.is_valid(values) if leaf.negated else pc.is_null(values)
    elif isinstance(leaf, IsIn):
        items = [_in_type(value, values.type) for value in leaf.values]
        if None in items:
            return None
        pieces = [pa.repeat(item, 1) for item in items]
        wanted = pa.concat_arrays(pieces) if pieces else pa.array([], values.type)
        holds = pc.and_(pc.is_in(_one_zero(values), value_set=_one_zero(wanted)), pc.is_valid(values))
    else:
        value = _in_type(leaf.value, values.type)
        if value is None:
            return None
        holds = _compare(leaf.op, values, values, value)
        holds = pc.fill_null(holds, fill_value=False)
    return pc.or_(holds, pc.invert(is_known))


def _one_zero(values: pa.Array) -> pa.Array:
    """0.0 for -0.0: sets take them for two values, engines for one."""
    if not pa.types.is_floating(values.type):
        return values
    zero = pa.scalar(0.0, values.type)
    return pc.if_else(pc.equal(values, zero), zero, values)


def _file_leaf(leaf: Compare | IsIn | IsNull, ranges: pa.Table) -> pa.BooleanArray | None:
    if f"nulls:{leaf.column}" not in ranges.column_names:
        return None
    nulls = _whole(ranges, f"nulls:{leaf.column}")
    rows = _whole(ranges, "num_values")
    if isinstance(leaf, IsNull):
        return None if leaf.negated else pc.fill_null(pc.greater(nulls, 0), fill_value=True)
    bounds = _certain_bounds(ranges, leaf.column, nulls, rows)
    if bounds is None:
        return None
    low, high = bounds
    if isinstance(leaf, Compare):
        value = _in_type(leaf.value, low.type)
        return None if value is None else pc.fill_null(_compare(leaf.op, low, high, value), fill_value=True)
    values = [_in_type(value, low.type) for value in leaf.values]
    if None in values:
        return None
    return pc.fill_null(_any_within(low, high, values), fill_value=True)


def _certain_bounds(
    ranges: pa.Table, column: str, nulls: pa.Array, rows: pa.Array
) -> tuple[pa.Array, pa.Array] | None:
    """Bounds with NULL wherever they prove nothing; None when no file's do."""
    low, high = _whole(ranges, f"min:{column}"), _whole(ranges, f"max:{column}")
    if pa.types.is_floating(low.type) or pa.types.is_nested(low.type) or pa.types.is_null(low.type):
        return None
    is_certain = pc.fill_null(pc.less(nulls, rows), fill_value=False)
    if pa.types.is_string(low.type):
        for bound in (low, high):
            far = pc.fill_null(pc.match_substring_regex(bound, _FAR_TEXT), fill_value=False)
            is_certain = pc.and_not(is_certain, far)
    missing = pa.scalar(None, low.type)
    return pc.if_else(is_certain, low, missing), pc.if_else(is_certain, high, missing)


def _compare(op: CompareOp, low: pa.Array, high: pa.Array, value: pa.Scalar) -> pa.Array:
    """Whether some value from `low` to `high` may stand so to `value`; NULL where a bound is."""
    if op is CompareOp.EQ:
        return pc.and_(pc.less_equal(low, value), pc.greater_equal(high, value))
    if op is CompareOp.LT:
        return pc.less(low, value)
    if op is CompareOp.LE:
        return pc.less_equal(low, value)
    if op is CompareOp.GT:
        return pc.greater(high, value)
    if op is CompareOp.GE:
        return pc.greater_equal(high, value)
    return pc.or_(pc.not_equal(low, value), pc.not_equal(high, value))


def _any_within(low: pa.Array, high: pa.Array, values: Sequence[pa.Scalar]) -> pa.Array:
    if not values:
        return pa.repeat(pa.scalar(value=False), len(low))
    if len(values) > _MOST_VALUES:
        # Many values: only the span that they take is compared.
        span = pc.min_max(pa.concat_arrays([pa.repeat(value, 1) for value in values]))
        return pc.and_(pc.less_equal(low, span["max"]), pc.greater_equal(high, span["min"]))
    result = _compare(CompareOp.EQ, low, high, values[0])
    for value in values[1:]:
        result = pc.or_(result, _compare(CompareOp.EQ, low, high, value))
    return result


def _in_type(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    """The value in the column's type, when that is the same value in the same order; None otherwise."""
    if not value.is_valid:
        return None
    if value.type == kind:
        return value
    both_text = pa.types.is_large_string(value.type) or pa.types.is_string_view(value.type)
    if both_text and pa.types.is_string(kind):
        return value.cast(kind)
    is_number = (
        pa.types.is_integer(value.type) or pa.types.is_floating(value.type) or pa.types.is_decimal(value.type)
    )
    if not is_number or not (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return None
    if pa.types.is_decimal(kind) and pa.types.is_floating(value.type):
        return None
    try:
        return value.cast(kind)
    except pa.ArrowException:
        return None


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name).combine_chunks()
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
