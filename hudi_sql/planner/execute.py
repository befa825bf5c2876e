"""Carries out a statement that changes rows: plan, one engine query, rules, one commit; again after a conflict."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import ConflictError
from hudi_sql.planner.changes import Counts, Outcome, decide_changes
from hudi_sql.planner.delete import plan_delete
from hudi_sql.planner.insert import insert_rules, plan_insert_rows, whole_rows
from hudi_sql.planner.keys import SnapshotKeys
from hudi_sql.planner.lending import Lender
from hudi_sql.planner.merge import plan_merge
from hudi_sql.planner.model import DmlPlan, TableFacts
from hudi_sql.planner.scope import StatementScope, table_facts
from hudi_sql.planner.select import plan_query
from hudi_sql.planner.target import with_alias
from hudi_sql.planner.update import plan_update
from hudi_sql.sql.model import BoundDelete, BoundInsert, BoundMerge, BoundUpdate, TableName
from hudi_sql.storage.read.snapshot import Snapshot
from hudi_sql.storage.write.commit import CommitResult

__all__ = ["BoundDml", "DmlOutcome", "run_dml", "run_select"]

_LOG = logging.getLogger(__name__)
_MAX_ATTEMPTS = 6
_FIRST_WAIT_S = 0.05
_RETURNED = "__hudi_sql_returned"

BoundDml = BoundInsert | BoundUpdate | BoundDelete | BoundMerge


@dataclass(frozen=True, slots=True, kw_only=True)
class DmlOutcome:
    """What a statement did."""

    counts: Counts
    commit: CommitResult
    returned: pa.Table | None
    evaluate_ms: float
    num_attempts: int


def run_dml(
    bound: BoundDml,
    *,
    new_scope: Callable[[], StatementScope],
    config: WriteConfig,
    can_repeat: bool,
    num_attempts: int = _MAX_ATTEMPTS,
) -> DmlOutcome:
    """Run a statement to its commit.

    After a conflict with another writer the statement is evaluated again on a new snapshot, unless its source can be
    read only once.

    Raises:
        ConflictError: Other writers kept coming in between.
    """
    attempt = 0
    while True:
        attempt += 1
        scope = new_scope()
        try:
            return _attempt(bound, scope, config, attempt)
        except ConflictError as error:
            if not error.retryable or not can_repeat or attempt >= num_attempts:
                raise
            _LOG.info("attempt %d of %s ends in a conflict: %s", attempt, type(bound).__name__, error)
            # Not for secrecy: writers that met once should not meet again.
            time.sleep(_FIRST_WAIT_S * 2**attempt * (0.5 + random.random()))  # noqa: S311
        finally:
            scope.close()


def run_select(
    query: exp.Expression, scope: StatementScope, tables: Mapping[str, TableName]
) -> pa.RecordBatchReader:
    """Run a query over Hudi tables; rows come as the engine computes them."""
    plan = plan_query(query, tables, scope.schemas(tables))
    sql = scope.engine.render(plan.query, scope.dialect)
    return scope.engine.query(sql, relations=scope.relations(plan.lent, tables))


def _attempt(bound: BoundDml, scope: StatementScope, config: WriteConfig, attempt: int) -> DmlOutcome:
    started = time.perf_counter()
    table = scope.table(bound.target)
    table.check_writable()
    snapshot = scope.snapshot(bound.target)
    facts = table_facts(str(bound.target), snapshot, scope.dialect)
    keys = SnapshotKeys(snapshot, facts)
    returned = None
    if isinstance(bound, BoundInsert):
        outcome = _insert(bound, scope, facts, keys, config)
    else:
        plan = _plan(bound, scope, facts, snapshot)
        rows = _drained(plan, scope, bound)
        outcome = decide_changes(rows, plan, facts, keys)
        if outcome.returned is not None:
            returned = _run_returning(plan, outcome.returned, scope)
    evaluated = time.perf_counter()
    commit = CommitResult()
    if outcome.changes is not None:
        commit = table.commit(snapshot, outcome.changes, config=config)
    counts = outcome.counts
    if outcome.changes is not None and not counts.affected:
        # Streamed rows are counted by who wrote them.
        counts = Counts(inserted=commit.num_inserted)
    return DmlOutcome(
        counts=counts,
        commit=commit,
        returned=returned,
        evaluate_ms=(evaluated - started) * 1000,
        num_attempts=attempt,
    )


def _plan(
    bound: BoundUpdate | BoundDelete | BoundMerge,
    scope: StatementScope,
    facts: TableFacts,
    snapshot: Snapshot,
) -> DmlPlan:
    lender = Lender(bound.tables, scope.schemas(bound.tables), first=1)
    if isinstance(bound, BoundMerge):
        return plan_merge(bound, facts, snapshot, lender)
    if isinstance(bound, BoundUpdate):
        return plan_update(bound, facts, snapshot, lender)
    return plan_delete(bound, facts, snapshot, lender)


def _drained(plan: DmlPlan, scope: StatementScope, bound: BoundUpdate | BoundDelete | BoundMerge) -> pa.Table:
    tables = {bound.target.key: bound.target, **bound.tables}
    return scope.query(plan.query, scope.relations(plan.lent, tables)).read_all()


def _run_returning(plan: DmlPlan, rows: pa.Table, scope: StatementScope) -> pa.Table:
    """Evaluate RETURNING over the rows that were changed."""
    source = with_alias(exp.Table(this=exp.Identifier(this=_RETURNED, quoted=True)), plan.alias)
    query = exp.Select(expressions=[item.copy() for item in plan.returning]).from_(source)
    return scope.query(query, {_RETURNED: rows}).read_all()


def _insert(
    bound: BoundInsert, scope: StatementScope, facts: TableFacts, keys: SnapshotKeys, config: WriteConfig
) -> Outcome:
    constants = _constants(bound, scope)
    rules = insert_rules(bound.on_conflict, facts, scope.dialect, config)
    plan = plan_query(bound.query, bound.tables, scope.schemas(bound.tables))
    reads_target = bound.target.key in {lent.key for lent in plan.lent}
    reader = scope.query(plan.query, scope.relations(plan.lent, bound.tables))
    return plan_insert_rows(
        whole_rows(reader, bound.columns, constants, facts), rules, facts, keys, reads_target=reads_target
    )


def _constants(bound: BoundInsert, scope: StatementScope) -> pa.Table:
    """Values of the PARTITION clause."""
    if not bound.static_partition:
        return pa.table({})
    items = [
        exp.Alias(this=value.copy(), alias=exp.Identifier(this=name, quoted=True))
        for name, value in bound.static_partition.items()
    ]
    return scope.query(exp.Select(expressions=items), {}).read_all()
