"""Spark expressions whose meaning sqlglot does not carry over: what both engines' rules share."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

from engine_adapters.protocol import EngineQueryError

__all__ = ["INTEGER_TYPES", "common_form", "refuse_untranslatable", "truncate_before_integer_casts"]

INTEGER_TYPES = frozenset(
    {exp.DataType.Type.TINYINT, exp.DataType.Type.SMALLINT, exp.DataType.Type.INT, exp.DataType.Type.BIGINT}
)
_FRACTIONAL = frozenset({exp.DataType.Type.DECIMAL, exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT})

_REFUSED = {
    "hash": "its values differ between engines",
    "xxhash64": "its values differ between engines",
    "from_json": "the engines have no such function with a schema",
    "stack": "write it as a VALUES list or a UNION ALL",
    "monotonically_increasing_id": "write row_number() OVER ()",
    "input_file_name": "select the meta column _hoodie_file_name",
    "bround": "write round() where half-up rounding will do",
}
"""Functions that are unknown to the engines or answer otherwise there: name → why or what to do."""

_UNITS = {
    "YYYY": "YEAR", "YY": "YEAR", "MON": "MONTH", "MM": "MONTH", "DD": "DAY", "DW": "DAY", "HH": "HOUR",
}  # fmt: skip


def refuse_untranslatable(tree: exp.Expression) -> None:
    """Raise for functions that would silently mean something else."""
    for call in tree.find_all(exp.Anonymous):
        name = str(call.this).lower()
        if name in _REFUSED:
            raise EngineQueryError(
                f"The function {name} of Spark is not available: {_REFUSED[name]}", at_bind=True
            )


def common_form(node: exp.Expression) -> exp.Expression:
    """What both engines write otherwise than Spark: one node of a tree, for `transform`."""
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "pmod" and len(node.expressions) == 2:
        value, divisor = (exp.Paren(this=item.copy()) for item in node.expressions)
        cut = exp.Paren(this=exp.Add(this=exp.Mod(this=value, expression=divisor), expression=divisor.copy()))
        return exp.Paren(this=exp.Mod(this=cut, expression=divisor.copy()))
    return _unit_names(node)


def _unit_names(node: exp.Expression) -> exp.Expression:
    """Spark's short names of date parts in trunc and date_trunc."""
    if isinstance(node, exp.DateTrunc | exp.TimestampTrunc):
        unit = node.args.get("unit")
        text = unit.name.upper() if unit is not None else ""
        if text in _UNITS:
            node.set("unit", exp.Literal.string(_UNITS[text]))
    return node


def truncate_before_integer_casts(tree: exp.Expression) -> exp.Expression:
    """Spark cuts fractions off where an engine rounds: wrap what is known to have one."""
    tree = annotate_types(tree, dialect="spark")
    for cast in list(tree.find_all(exp.Cast)):
        operand = cast.this
        kind = operand.type.this if operand.type is not None else None
        if cast.to.this in INTEGER_TYPES and kind in _FRACTIONAL and not isinstance(operand, exp.Trunc):
            cast.set("this", exp.Anonymous(this="trunc", expressions=[operand.copy()]))
    return tree
