"""DELETE: one query that answers the places of the rows to delete."""

from __future__ import annotations

from sqlglot import exp

from hudi_sql.planner.lending import Lender
from hudi_sql.planner.model import CLAUSE_COLUMN, ClauseSpec, DmlPlan, LentTable, RowLayout, TableFacts
from hudi_sql.planner.pruning import Pruning
from hudi_sql.planner.rewrite import conjuncts, rename_qualifier
from hudi_sql.planner.target import (
    TARGET,
    aliased,
    column,
    needed_columns,
    position_columns,
    returning_columns,
    select_of,
    target_table,
)
from hudi_sql.planner.update import from_items
from hudi_sql.sql.model import BoundDelete, ClauseAction
from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.read.snapshot import Snapshot

__all__ = ["plan_delete"]


def plan_delete(bound: BoundDelete, facts: TableFacts, snapshot: Snapshot, lender: Lender) -> DmlPlan:
    """Plan a DELETE: rows that several rows of USING match are deleted once."""
    lender.shadow(bound.with_)
    pruning = Pruning.of(conjuncts(bound.where), bound.alias, snapshot)
    where = (
        None if bound.where is None else rename_qualifier(lender.lend(bound.where), bound.alias, bound.alias)
    )
    using = [lender.lend(item) for item in from_items(bound.using)]
    returning, carried = returning_columns(bound.returning, bound.alias)
    names = tuple(facts.schema.names) if returning else ()
    values: list[exp.Expression] = [column(name, bound.alias) for name in names]
    query = exp.Select(
        expressions=[
            *position_columns(bound.alias),
            aliased(exp.Literal.number(0), CLAUSE_COLUMN),
            *select_of(values, [], carried),
        ]
    ).from_(target_table(bound.alias))
    for item in using:
        query.append("joins", exp.Join(this=item))
    if where is not None:
        query.set("where", exp.Where(this=where))
    if bound.with_ is not None:
        query.set("with_", lender.lend_with(bound.with_))
    target = LentTable(
        name=TARGET,
        key=bound.target.key,
        predicate=pruning.predicate,
        columns=needed_columns(query, bound.alias, snapshot.schema),
        slices=pruning.slices,
    )
    return DmlPlan(
        operation=OperationType.DELETE,
        query=query,
        lent=(target, *lender.lent),
        layout=RowLayout(
            clauses=(ClauseSpec(action=ClauseAction.DELETE),),
            values=names,
            is_whole_row=bool(returning),
            returned=tuple(item.name for item in carried),
        ),
        slices=pruning.slices,
        read_partitions=pruning.partitions,
        returning=returning,
        alias=bound.alias,
    )
