"""MERGE: one join of source and target that answers which clause acts on which row, and with which values.

Two levels: the inner query joins and decides the clause, so that conditions run once for each pair of rows; the outer
one computes the values of the clause that acts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
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
from hudi_sql.planner.rewrite import and_all, columns_of, conjuncts, quoted, rename_qualifier, rewrite_columns
from hudi_sql.planner.target import (
    TARGET,
    aliased,
    column,
    needed_columns,
    returning_columns,
    select_of,
    stored_columns,
    target_table,
    values_of,
    with_alias,
)
from hudi_sql.sql.model import BoundMerge, ClauseAction, ClauseKind, MergeClause
from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN
from hudi_sql.storage.read.snapshot import Snapshot

__all__ = ["plan_merge"]

_JOINED = "__hudi_sql_m"
_MARKER = "__hudi_sql_here"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Clause:
    """A clause with its values by top-level column, Hudi tables in it already lent."""

    kind: ClauseKind
    action: ClauseAction
    condition: exp.Expression | None
    values: Mapping[str, exp.Expression]


def plan_merge(bound: BoundMerge, facts: TableFacts, snapshot: Snapshot, lender: Lender) -> DmlPlan:
    """Plan a MERGE: clauses in written order, the first whose condition holds acts."""
    return _MergePlanner(bound, facts, snapshot, lender).plan()


class _MergePlanner:
    def __init__(self, bound: BoundMerge, facts: TableFacts, snapshot: Snapshot, lender: Lender) -> None:
        self.bound, self.facts, self.snapshot, self.lender = bound, facts, snapshot, lender
        lender.shadow(bound.with_)
        self.target, self.source = bound.alias, bound.source_alias
        self.on = conjuncts(bound.on)
        self.equal = _equalities(self.on, self.target)
        self.clauses = [self._clause(clause) for clause in bound.clauses]
        kinds = {clause.kind for clause in self.clauses}
        self.has_by_source = ClauseKind.NOT_MATCHED_BY_SOURCE in kinds
        self.has_insert = ClauseKind.NOT_MATCHED in kinds
        self.carried: list[exp.Expression] = []

    def plan(self) -> DmlPlan:
        pruning = Pruning.of([] if self.has_by_source else self.on, self.target, self.snapshot)
        returning, self.carried = returning_columns(self.bound.returning, self.target)
        layout, values, stored, ranking = self._outputs(is_returning=bool(returning))
        joined = self._joined([*values, *stored, *ranking, *self.carried])
        items = [*values, *stored, *ranking, *self.carried]
        renamed = [self._over_joined(item) for item in items]
        ends = (len(values), len(values) + len(stored), len(values) + len(stored) + len(ranking))
        query = exp.Select(
            expressions=[
                *(aliased(column(n, _JOINED), n) for n in (SLICE_COLUMN, POSITION_COLUMN, CLAUSE_COLUMN)),
                *select_of(renamed[: ends[0]], renamed[ends[0] : ends[1]], renamed[ends[2] :]),
                *(
                    aliased(item, ranking_name(number))
                    for number, item in enumerate(renamed[ends[1] : ends[2]])
                ),
            ]
        ).from_(exp.Subquery(this=joined, alias=exp.TableAlias(this=quoted(_JOINED))))
        clause = column(CLAUSE_COLUMN, _JOINED)
        query.set("where", exp.Where(this=exp.Not(this=exp.Is(this=clause, expression=exp.Null()))))
        if self.bound.with_ is not None:
            query.set("with_", self.lender.lend_with(self.bound.with_))
        target = LentTable(
            name=TARGET,
            key=self.bound.target.key,
            predicate=pruning.predicate,
            columns=needed_columns(joined, self.target, self.snapshot.schema),
            slices=pruning.slices,
        )
        return DmlPlan(
            operation=OperationType.UPSERT,
            query=query,
            lent=(target, *self.lender.lent),
            layout=layout,
            slices=pruning.slices,
            read_partitions=pruning.partitions,
            keys_checked_by_on=self._keys_checked_by_on(),
            returning=returning,
            alias=self.target,
        )

    # -- clauses

    def _clause(self, clause: MergeClause) -> _Clause:
        values = values_of(clause.assignments, self.facts.schema, self.target)
        if clause.action is ClauseAction.UPDATE:
            values = {n: v for n, v in values.items() if not self._is_known_equal(n, v)}
        return _Clause(
            kind=clause.kind,
            action=clause.action,
            condition=None if clause.condition is None else self.lender.lend(clause.condition),
            values={name: self.lender.lend(value) for name, value in values.items()},
        )

    def _is_known_equal(self, name: str, value: exp.Expression) -> bool:
        """Whether ON says that a key or partition column has the assigned value already."""
        known = self.equal.get(name)
        return (
            name in self.facts.identity_columns and known is not None and _is_same(_bare(known), _bare(value))
        )

    def _keys_checked_by_on(self) -> bool:
        """Whether ON is equality of the whole key (and partition) with just what would be inserted."""
        if not self.facts.record_key_fields:
            return True
        scope = set(self.facts.record_key_fields)
        if not self.facts.has_global_index:
            scope |= set(self.facts.partition_fields)
        if not set(self.facts.record_key_fields) <= self.equal.keys() <= scope:
            return False
        if len(self.equal) != len(self.on):
            return False
        return all(
            self._is_same_source_column(name, self.equal[name], clause.values.get(name))
            for clause in self.clauses
            if clause.action is ClauseAction.INSERT
            for name in self.equal
        )

    def _is_same_source_column(self, name: str, known: exp.Expression, value: exp.Expression | None) -> bool:
        """Only a source column of the stored type counts: a cast may make two values one key."""
        if value is None:
            return False
        left, right = _bare(known), _bare(value)
        if (
            not _is_same(left, right)
            or not isinstance(left, exp.Column)
            or left.table.lower() != self.source.lower()
        ):
            return False
        number = self.bound.source_schema.get_field_index(left.name)
        if number < 0:
            return False
        return _is_same_kind(self.bound.source_schema.field(number).type, self.facts.schema.field(name).type)

    # -- the join

    def _joined(self, outer: Sequence[exp.Expression]) -> exp.Select:
        on = [rename_qualifier(self._null_safe(item), self.target, self.target) for item in self.on]
        on = [rename_qualifier(self.lender.lend(item), self.source, self.source) for item in on]
        items: list[exp.Expression] = [
            aliased(column(name, self.target), name) for name in (SLICE_COLUMN, POSITION_COLUMN)
        ]
        for prefix, qualifier in (("t", self.target), ("s", self.source)):
            names = dict.fromkeys(c.name for tree in outer for c in columns_of(tree, qualifier))
            items.extend(aliased(column(n, qualifier), f"__hudi_sql_{prefix}_{n}") for n in names)
        items.append(aliased(self._clause_case(), CLAUSE_COLUMN))
        source = with_alias(self.lender.lend(self.bound.source), self.source, self._source_columns())
        target: exp.Expression = target_table(self.target)
        left, right, kind = source, target, "LEFT"
        if self.has_by_source:
            source = self._marked(source)
            left, right, kind = target, source, "FULL" if self.has_insert else "LEFT"
        elif not self.has_insert:
            left, right, kind = target, source, "INNER"
        condition = and_all(on)
        join = exp.Join(
            this=right,
            on=condition,
            side=kind if kind != "INNER" else None,
            kind="INNER" if kind == "INNER" else None,
        )
        query = exp.Select(expressions=items).from_(left)
        query.append("joins", join)
        return query

    def _source_columns(self) -> tuple[str, ...]:
        """Names for the columns of a VALUES list, which has none of its own."""
        return tuple(self.bound.source_schema.names) if isinstance(self.bound.source, exp.Values) else ()

    def _marked(self, source: exp.Expression) -> exp.Expression:
        """A source whose rows can be told from the NULLs of an outer join."""
        marker = aliased(exp.Literal.number(1), _MARKER)
        inner = exp.Select(expressions=[exp.Star(), marker]).from_(source)
        return exp.Subquery(this=inner, alias=exp.TableAlias(this=quoted(self.source)))

    def _null_safe(self, condition: exp.Expression) -> exp.Expression:
        """In a composite key a part may be NULL, and such a key is still one key: it has to match itself."""
        keys = self.facts.record_key_fields
        if len(keys) < 2 or not isinstance(condition, exp.EQ):
            return condition
        for name, known in self.equal.items():
            if name in keys and any(known is side for side in (condition.this, condition.expression)):
                return exp.NullSafeEQ(this=condition.this.copy(), expression=condition.expression.copy())
        return condition

    def _clause_case(self) -> exp.Expression:
        case = exp.Case()
        there = exp.Not(this=_is_null(column(POSITION_COLUMN, self.target)))
        for number, clause in enumerate(self.clauses):
            tests: list[exp.Expression] = []
            if clause.kind is ClauseKind.NOT_MATCHED:
                tests.append(_is_null(column(POSITION_COLUMN, self.target)))
            elif clause.kind is ClauseKind.NOT_MATCHED_BY_SOURCE:
                tests.append(_is_null(column(_MARKER, self.source)))
            else:
                tests.append(there.copy())
                if self.has_by_source:
                    tests.append(exp.Not(this=_is_null(column(_MARKER, self.source))))
            if clause.condition is not None:
                inner = rename_qualifier(clause.condition, self.target, self.target)
                tests.append(rename_qualifier(inner, self.source, self.source))
            acts = clause.action is not ClauseAction.NOTHING
            outcome: exp.Expression = exp.Literal.number(number) if acts else exp.Null()
            test = and_all(tests)
            assert test is not None
            case = case.when(test, outcome, copy=False)
        return exp.Cast(this=case, to=exp.DataType.build("int"))

    def _over_joined(self, tree: exp.Expression) -> exp.Expression:
        for prefix, qualifier in (("t", self.target), ("s", self.source)):
            tree = rewrite_columns(
                tree,
                qualifier,
                lambda c, p=prefix: column(f"__hudi_sql_{p}_{c.name}", _JOINED),  # type: ignore[misc]
            )
        return tree

    # -- what the outer query answers

    def _outputs(
        self, *, is_returning: bool
    ) -> tuple[RowLayout, list[exp.Expression], list[exp.Expression], list[exp.Expression]]:
        updates = [clause for clause in self.clauses if clause.action is ClauseAction.UPDATE]
        assigned = {name for clause in updates for name in clause.values}
        moves = bool(assigned & self.facts.identity_columns)
        is_whole = moves or is_returning
        has_insert = any(clause.action is ClauseAction.INSERT for clause in self.clauses)
        names = tuple(n for n in self.facts.schema.names if is_whole or has_insert or n in assigned)
        values = [self._value(name, keep=is_whole or name in assigned) for name in names]
        stored = stored_columns(self.facts, assigned)
        ranking = self._ranking()
        layout = RowLayout(
            clauses=tuple(
                ClauseSpec(action=clause.action, assigned=frozenset(clause.values)) for clause in self.clauses
            ),
            values=names,
            stored=stored,
            has_ranking=bool(ranking),
            is_whole_row=is_whole,
            returned=tuple(item.name for item in self.carried),
        )
        return layout, values, [column(name, self.target) for name in stored], ranking

    def _value(self, name: str, *, keep: bool) -> exp.Expression:
        """What each clause puts into a column; `keep` asks for the stored value where a clause puts none."""
        branches: dict[int, exp.Expression] = {}
        for number, clause in enumerate(self.clauses):
            if name in clause.values:
                branches[number] = clause.values[name]
            elif keep and clause.action in (ClauseAction.UPDATE, ClauseAction.DELETE):
                branches[number] = column(name, self.target)
        return self._by_clause(branches)

    def _by_clause(self, branches: Mapping[int, exp.Expression]) -> exp.Expression:
        acting = [n for n, clause in enumerate(self.clauses) if clause.action is not ClauseAction.NOTHING]
        if not branches:
            return exp.Null()
        texts = {branch.sql() for branch in branches.values()}
        if len(texts) == 1 and set(acting) == branches.keys():
            return next(iter(branches.values())).copy()
        case = exp.Case()
        for number, branch in branches.items():
            test = exp.EQ(this=column(CLAUSE_COLUMN, _JOINED), expression=exp.Literal.number(number))
            case = case.when(test, branch.copy(), copy=False)
        return case

    def _ranking(self) -> list[exp.Expression]:
        """Ordering values of source rows, when each clause that acts on target rows has all of them."""
        result = []
        for name in self.facts.ordering_fields:
            branches: dict[int, exp.Expression] = {}
            for number, clause in enumerate(self.clauses):
                if clause.kind is not ClauseKind.MATCHED or clause.action is ClauseAction.NOTHING:
                    continue
                value = clause.values.get(name)
                if value is None:
                    value = self._source_ordering(name)
                if value is None:
                    return []
                branches[number] = value
            result.append(self._by_clause(branches))
        return result

    def _source_ordering(self, name: str) -> exp.Expression | None:
        for found in self.bound.source_schema:
            if found.name.lower() == name.lower() and name in self.facts.schema.names:
                if _is_comparable(found.type, self.facts.schema.field(name).type):
                    return column(found.name, self.source)
                return None
        return None


def _equalities(on: Sequence[exp.Expression], target: str) -> dict[str, exp.Expression]:
    """Target columns that ON equates with something that does not depend on the target."""
    found: dict[str, exp.Expression] = {}
    for condition in on:
        if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
            continue
        for mine, other in ((condition.this, condition.expression), (condition.expression, condition.this)):
            if not isinstance(mine, exp.Column) or mine.table.lower() != target.lower():
                continue
            if any(columns_of(other, target)) or other.find(exp.Query) is not None:
                continue
            if next(other.find_all(exp.Column), None) is not None:
                found.setdefault(mine.name, other)
            break
    return found


def _bare(tree: exp.Expression) -> exp.Expression:
    """What stands inside casts and parentheses."""
    while isinstance(tree, exp.Cast | exp.TryCast | exp.Paren):
        tree = tree.this
    return tree


def _is_same(left: exp.Expression, right: exp.Expression) -> bool:
    """Whether two expressions are one; quotes around names make no difference, they are resolved already."""
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        return left.name == right.name and left.table.lower() == right.table.lower()
    return bool(left == right)


def _is_null(tree: exp.Expression) -> exp.Expression:
    return exp.Is(this=tree, expression=exp.Null())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_same_kind(left: pa.DataType, right: pa.DataType) -> bool:
    both_int = pa.types.is_integer(left) and pa.types.is_integer(right)
    return bool(left == right) or bool(both_int) or (_is_text(left) and _is_text(right))


def _is_comparable(left: pa.DataType, right: pa.DataType) -> bool:
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if any(test(left) for test in numbers) and any(test(right) for test in numbers):
        return True
    return _is_same_kind(left, right) or (pa.types.is_timestamp(left) and pa.types.is_timestamp(right))
