"""Writes a query in DataFusion's SQL; for Spark's dialect with Spark's meaning."""

from __future__ import annotations

from sqlglot import exp

from engine_adapters.datafusion.dialect import DataFusion
from engine_adapters.spark_rules import refuse_untranslatable, unit_names

__all__ = ["render"]


def render(tree: exp.Expression, source_dialect: str) -> str:
    """SQL text for DataFusion of a tree that was parsed in another dialect.

    DataFusion cuts fractions off in integer casts, as Spark does, so these need no help.
    """
    if source_dialect == "spark":
        refuse_untranslatable(tree)
        tree = tree.copy().transform(unit_names, copy=False)
    return tree.sql(dialect=DataFusion, comments=False)
