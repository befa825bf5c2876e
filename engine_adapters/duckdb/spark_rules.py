"""Writes a query in DuckDB's SQL; for Spark's dialect with Spark's meaning."""

from __future__ import annotations

from sqlglot import exp

from engine_adapters.spark_rules import common_form, refuse_untranslatable, truncate_before_integer_casts

__all__ = ["render"]


def render(tree: exp.Expression, source_dialect: str) -> str:
    """SQL text for DuckDB of a tree that was parsed in another dialect."""
    if source_dialect == "spark":
        refuse_untranslatable(tree)
        tree = truncate_before_integer_casts(tree.copy()).transform(_duckdb_form, copy=False)
    return tree.sql(dialect="duckdb", comments=False)


def _duckdb_form(node: exp.Expression) -> exp.Expression:
    node = common_form(node)
    if isinstance(node, exp.TsOrDsAdd | exp.DateAdd) and not isinstance(node.parent, exp.Cast):
        # Spark's date_add gives a DATE, DuckDB's DATE + INTERVAL a TIMESTAMP.
        return exp.Cast(this=node.copy(), to=exp.DataType.build("date"))
    return node
