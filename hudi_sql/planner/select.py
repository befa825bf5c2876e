"""SELECT over Hudi tables: each becomes a relation lent for the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from hudi_sql.planner.lending import Lender
from hudi_sql.planner.model import LentTable
from hudi_sql.sql.model import TableName

__all__ = ["SelectPlan", "plan_query"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectPlan:
    """A query for the engine and what it needs lent."""

    query: exp.Expression
    lent: tuple[LentTable, ...]


def plan_query(
    query: exp.Expression,
    tables: Mapping[str, TableName],
    schemas: Mapping[str, pa.Schema],
    *,
    first: int = 0,
) -> SelectPlan:
    """Replace the Hudi tables of a query. Schemas are given by `TableName.key`, meta columns included."""
    lender = Lender(tables, schemas, first=first)
    tree = lender.lend(query)
    return SelectPlan(query=tree, lent=tuple(lender.lent))
