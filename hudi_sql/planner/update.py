"""UPDATE: one query that answers the places of the rows to change and their new values."""

from __future__ import annotations

from sqlglot import exp

from hudi_sql.planner.lending import Lender
from hudi_sql.planner.model import (
    CLAUSE_COLUMN,
    ClauseSpec,
    DmlPlan,
    LentTable,
    RowLayout,
    TableFacts,
    ranking_name,
)
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
    stored_columns,
    target_table,
    values_of,
)
from hudi_sql.sql.model import BoundUpdate, ClauseAction
from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.read.snapshot import Snapshot

__all__ = ["from_items", "plan_update"]


def from_items(tree: exp.Expression | None) -> list[exp.Expression]:
    """Items of a FROM or USING that stands beside the target."""
    if tree is None:
        return []
    if isinstance(tree, exp.From):
        return [tree.this]
    if isinstance(tree, exp.Tuple):
        return list(tree.expressions)
    return [tree]


def plan_update(bound: BoundUpdate, facts: TableFacts, snapshot: Snapshot, lender: Lender) -> DmlPlan:
    """Plan an UPDATE: right-hand sides see the stored values."""
    alias = bound.alias
    lender.shadow(bound.with_)
    pruning = Pruning.of(conjuncts(bound.where), alias, snapshot)
    where = None if bound.where is None else rename_qualifier(lender.lend(bound.where), alias, alias)
    sources = [lender.lend(item) for item in from_items(bound.from_)]
    assigned = {
        name: rename_qualifier(lender.lend(value), alias, alias)
        for name, value in values_of(bound.assignments, facts.schema, alias).items()
    }
    returning, carried = returning_columns(bound.returning, alias)
    moves = bool(assigned.keys() & facts.identity_columns)
    is_whole = moves or bool(returning)
    names = tuple(n for n in facts.schema.names if is_whole or n in assigned)
    values = [assigned[name] if name in assigned else column(name, alias) for name in names]
    stored = stored_columns(facts, assigned)
    ranking = _ranking(facts, assigned) if sources else []
    query = exp.Select(
        expressions=[
            *position_columns(alias),
            aliased(exp.Literal.number(0), CLAUSE_COLUMN),
            *select_of(values, [column(name, alias) for name in stored], carried),
            *(aliased(item.copy(), ranking_name(number)) for number, item in enumerate(ranking)),
        ]
    ).from_(target_table(alias))
    for item in sources:
        query.append("joins", exp.Join(this=item))
    if where is not None:
        query.set("where", exp.Where(this=where))
    if bound.with_ is not None:
        query.set("with_", lender.lend_with(bound.with_))
    target = LentTable(
        name=TARGET,
        key=bound.target.key,
        predicate=pruning.predicate,
        columns=needed_columns(query, alias, snapshot.schema),
        slices=pruning.slices,
    )
    return DmlPlan(
        operation=OperationType.UPSERT,
        query=query,
        lent=(target, *lender.lent),
        layout=RowLayout(
            clauses=(ClauseSpec(action=ClauseAction.UPDATE, assigned=frozenset(assigned)),),
            values=names,
            stored=stored,
            has_ranking=bool(ranking),
            is_whole_row=is_whole,
            returned=tuple(item.name for item in carried),
        ),
        slices=pruning.slices,
        read_partitions=pruning.partitions,
        returning=returning,
        alias=alias,
    )


def _ranking(facts: TableFacts, assigned: dict[str, exp.Expression]) -> list[exp.Expression]:
    """Several FROM rows for one target row: the highest new ordering value, where all of it is assigned."""
    if not facts.ordering_fields or not set(facts.ordering_fields) <= assigned.keys():
        return []
    return [assigned[name] for name in facts.ordering_fields]
