"""Writes a query in DataFusion's SQL; for Spark's dialect with Spark's meaning."""

from __future__ import annotations

from sqlglot import exp

from engine_adapters.datafusion.dialect import DataFusion
from engine_adapters.protocol import EngineQueryError
from engine_adapters.spark_rules import common_form, refuse_untranslatable

__all__ = ["render"]


def render(tree: exp.Expression, source_dialect: str) -> str:
    """SQL text for DataFusion of a tree that was parsed in another dialect.

    DataFusion cuts fractions off in integer casts, as Spark does, so these need no help.
    """
    if source_dialect == "spark":
        refuse_untranslatable(tree)
        tree = tree.copy().transform(_datafusion_form, copy=False)
    return tree.sql(dialect=DataFusion, comments=False)


_EXACT_DIGITS = 15
_REGEX_CHARACTERS = frozenset("\\^$.|?*+()[]{}")


def _datafusion_form(node: exp.Expression) -> exp.Expression:
    node = common_form(node)
    if isinstance(node, exp.RegexpReplace) and node.args.get("modifiers") is None:
        # Spark replaces every match, DataFusion the first.
        node.set("modifiers", exp.Literal.string("g"))
    elif isinstance(node, exp.RegexpSplit):
        return _split(node)
    elif isinstance(node, exp.Literal) and _is_decimal(node):
        digits, _, scale = node.name.partition(".")
        precision = len(digits.lstrip("0")) + len(scale)
        kind = exp.DataType.build(f"decimal({precision}, {len(scale)})")
        return exp.Cast(this=exp.Literal.string(node.name), to=kind)
    return node


def _is_decimal(node: exp.Literal) -> bool:
    """Spark reads 1.50 as a DECIMAL(3, 2), DataFusion as a DOUBLE.

    Numbers of up to 15 digits come out of a DOUBLE as they went in, and stay one: compared with a decimal, DataFusion
    would cast a whole column of doubles, which fails on NaN. Where a DOUBLE is asked for, that is what it is.
    """
    if node.is_string or not node.name.replace(".", "", 1).isdigit() or "." not in node.name:
        return False
    parent = node.parent
    is_double = isinstance(parent, exp.Cast) and parent.to.this in (
        exp.DataType.Type.DOUBLE,
        exp.DataType.Type.FLOAT,
    )
    return not is_double and _EXACT_DIGITS < len(node.name.replace(".", "").lstrip("0")) <= 38


def _split(node: exp.RegexpSplit) -> exp.Expression:
    separator = node.expression
    if (
        not isinstance(separator, exp.Literal)
        or set(separator.name) & _REGEX_CHARACTERS
        or not separator.name
    ):
        raise EngineQueryError(
            "The function split of Spark is available for a separator that is plain text only", at_bind=True
        )
    return exp.Anonymous(this="string_to_array", expressions=[node.this.copy(), separator.copy()])
