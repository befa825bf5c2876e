"""MERGE INTO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from hudi_sql.errors import BindError, UnsupportedStatementError
from hudi_sql.sql.context import BindContext, TableInfo
from hudi_sql.sql.model import (
    Assignment,
    BoundMerge,
    ClauseAction,
    ClauseKind,
    MergeClause,
    StoreAssignment,
    TableName,
)
from hudi_sql.sql.names import (
    Scope,
    column_of,
    find_column,
    hudi_tables,
    is_meta,
    qualify,
    target_of,
    unknown_column,
)
from hudi_sql.sql.spark_typing import SparkTyper
from hudi_sql.sql.update import returning_items
from hudi_sql.sql.values import (
    assignments,
    cast_assignments,
    check_condition,
    check_duplicates,
    resolved_value,
)
from hudi_sql.storage.schema.meta_columns import META_COLUMNS

__all__ = ["bind_merge"]

_UNNAMED = "__hudi_sql_source"
_ACTION = "merge_action"


def bind_merge(tree: exp.Merge, text: str, context: BindContext) -> BoundMerge | None:
    """Bind a MERGE into a Hudi table; None for other tables.

    Raises:
        BindError: Names are unknown or ambiguous, a star misses a column, a clause may not stand where it stands.
    """
    found = target_of(tree.this, context)
    if found is None:
        return None
    name, info, alias = found
    return _MergeBinder(tree, text, context, name=name, info=info, alias=alias).bind()


class _MergeBinder:
    def __init__(
        self,
        tree: exp.Merge,
        text: str,
        context: BindContext,
        *,
        name: TableName,
        info: TableInfo,
        alias: str,
    ) -> None:
        self.tree, self.text, self.context = tree, text, context
        self.name, self.table, self.info, self.alias = name, str(name), info, alias
        self.with_ = tree.args.get("with_")
        self.source: exp.Expression = tree.args["using"].copy()
        self.source_alias = self.source.alias_or_name or _UNNAMED
        if self.source_alias.lower() == alias.lower():
            raise BindError(
                f"Source and target are both called {alias}",
                hint="Give the source another alias.",
                table=self.table,
            )
        self.source_schema = self._describe()
        columns = [*META_COLUMNS, *info.schema.names]
        source_names = self.source_schema.names
        self.target_only = Scope(self.table).add(alias, columns)
        self.source_only = Scope(self.table).add(self.source_alias, source_names)
        self.both = Scope(self.table).add(alias, columns).add(self.source_alias, source_names)
        self.on: exp.Expression = exp.Boolean(this=True)

    def bind(self) -> BoundMerge:
        self.on = self._on()
        whens = self.tree.args["whens"].expressions
        self._check_order(whens)
        returning = self.tree.args.get("returning")
        scope = Scope(self.table).add(self.alias, [*META_COLUMNS, *self.info.schema.names, _ACTION])
        scope.add(self.source_alias, self.source_schema.names)
        tables = {**hudi_tables(self.tree, self.context), self.name.key: self.name}
        clauses = self._cast([self._clause(when) for when in whens])
        return BoundMerge(
            text=self.text,
            tables=tables,
            target=self.name,
            alias=self.alias,
            source=self.source,
            source_alias=self.source_alias,
            source_schema=self.source_schema,
            on=self.on,
            clauses=clauses,
            with_=None if self.with_ is None else self.with_.copy(),
            returning=returning_items(returning, self.info, self.alias, scope),
            store_assignment=StoreAssignment.SPARK_CAST
            if self.context.dialect == "spark"
            else StoreAssignment.ENGINE,
        )

    def _cast(self, clauses: Sequence[MergeClause]) -> tuple[MergeClause, ...]:
        """Clauses with their values cast to what stores them."""
        groups = [clause.assignments for clause in clauses]
        if self.context.dialect == "spark":
            typer = SparkTyper(
                self.tree.this,
                self.alias,
                [self.source],
                with_=self.with_,
                schema=self.info.schema,
                table=self.table,
                context=self.context,
            )
            conditions = [
                (f"WHEN {clause.kind.value.upper()} AND", clause.condition)
                for clause in clauses
                if clause.condition is not None
            ]
            groups = typer.check(groups, [("ON", self.on), *conditions])
        else:
            groups = [cast_assignments(group, self.info.schema) for group in groups]
        return tuple(
            replace(clause, assignments=group) for clause, group in zip(clauses, groups, strict=True)
        )

    def _describe(self) -> pa.Schema:
        query = exp.Select(expressions=[exp.Star()]).from_(self.source.copy())
        if self.with_ is not None:
            query.set("with_", self.with_.copy())
        found = self.context.describe(query)
        kept = [field for field in found if not is_meta(field.name)]
        for field in kept:
            if sum(other.name == field.name for other in kept) > 1:
                raise BindError(
                    f"The source has several columns {field.name}",
                    hint="Give them different names.",
                    table=self.table,
                    column=field.name,
                )
        return pa.schema(kept)

    def _on(self) -> exp.Expression:
        columns = self.tree.args.get("using_cond")
        if columns:
            pairs = []
            for node in columns if isinstance(columns, list) else [columns]:
                mine = find_column(node.name, self.info.schema.names)
                other = find_column(node.name, self.source_schema.names)
                if mine is None or other is None:
                    names = self.info.schema.names if mine is None else self.source_schema.names
                    unknown_column(node.name, names, table=self.table, part="USING")
                pairs.append(
                    exp.EQ(this=column_of(mine, self.alias), expression=column_of(other, self.source_alias))
                )
            on: exp.Expression = pairs[0]
            for pair in pairs[1:]:
                on = exp.And(this=on, expression=pair)
            return on
        node = self.tree.args.get("on")
        if not isinstance(node, exp.Expression):
            raise BindError("MERGE has no ON", hint="Say which rows match.", table=self.table)
        check_condition(node, self.context.dialect, table=self.table, part="ON")
        return qualify(node, self.both, part="ON")

    def _check_order(self, whens: Sequence[exp.Expression]) -> None:
        if not whens:
            raise BindError("MERGE has no WHEN clause", hint="Say what is to be done.", table=self.table)
        if self.context.dialect != "spark":
            return
        order = {ClauseKind.MATCHED: 0, ClauseKind.NOT_MATCHED: 1, ClauseKind.NOT_MATCHED_BY_SOURCE: 2}
        kinds = [_kind(when) for when in whens]
        ranks = [order[kind] for kind in kinds]
        if ranks != sorted(ranks):
            raise BindError(
                "WHEN MATCHED clauses come before WHEN NOT MATCHED ones",
                hint="Change the order of the clauses.",
                table=self.table,
            )
        for number, when in enumerate(whens[:-1]):
            if when.args.get("condition") is None and kinds[number] is kinds[number + 1]:
                raise BindError(
                    f"Only the last {kinds[number].value} clause may have no condition",
                    hint="Give the earlier ones a condition.",
                    table=self.table,
                )

    def _clause(self, when: exp.Expression) -> MergeClause:
        kind = _kind(when)
        part = f"WHEN {kind.value.upper()}"
        scope = {
            ClauseKind.MATCHED: self.both,
            ClauseKind.NOT_MATCHED: self.source_only,
            ClauseKind.NOT_MATCHED_BY_SOURCE: self.target_only,
        }[kind]
        condition = when.args.get("condition")
        if condition is not None:
            self._check_side(condition, kind, part)
            condition = qualify(condition, scope, part=part)
        action, given = self._action(when.args["then"], kind, scope, part)
        return MergeClause(kind=kind, action=action, condition=condition, assignments=given)

    def _check_side(self, node: exp.Expression, kind: ClauseKind, part: str) -> None:
        other = {
            ClauseKind.NOT_MATCHED: (self.alias, "target"),
            ClauseKind.NOT_MATCHED_BY_SOURCE: (self.source_alias, "source"),
        }.get(kind)
        if other is None:
            return
        for column in node.find_all(exp.Column):
            if column.table.lower() == other[0].lower() and column.find_ancestor(exp.Select) is None:
                raise BindError(
                    f"{column.sql()} is a column of the {other[1]}, which has no row in {part}",
                    hint=f"Use columns of the {'source' if other[1] == 'target' else 'target'}.",
                    table=self.table,
                    part=part,
                    column=column.name,
                )

    def _action(
        self, then: exp.Expression, kind: ClauseKind, scope: Scope, part: str
    ) -> tuple[ClauseAction, tuple[Assignment, ...]]:
        if isinstance(then, exp.Insert):
            if kind is not ClauseKind.NOT_MATCHED:
                raise BindError(
                    f"{part} cannot INSERT", hint="Use UPDATE or DELETE.", table=self.table, part=part
                )
            return ClauseAction.INSERT, self._insert(then, part)
        if isinstance(then, exp.Update):
            if kind is ClauseKind.NOT_MATCHED:
                raise BindError(f"{part} cannot UPDATE", hint="Use INSERT.", table=self.table, part=part)
            return ClauseAction.UPDATE, self._update(then, kind, scope, part)
        word = then.name.upper()
        if word == "DELETE" and kind is not ClauseKind.NOT_MATCHED:
            return ClauseAction.DELETE, ()
        if word == "DO NOTHING":
            return ClauseAction.NOTHING, ()
        raise UnsupportedStatementError(
            f"{part} THEN {then.sql()} is not supported",
            hint="Use UPDATE, DELETE, INSERT or DO NOTHING.",
            table=self.table,
            part=part,
        )

    def _update(self, then: exp.Update, kind: ClauseKind, scope: Scope, part: str) -> tuple[Assignment, ...]:
        pairs = then.args.get("expressions") or []
        if not isinstance(pairs, list):
            raise BindError(
                f"{part} has an UPDATE without SET", hint="Write UPDATE SET *.", table=self.table, part=part
            )
        if kind is not ClauseKind.MATCHED and (not pairs or isinstance(pairs[0], exp.Star)):
            raise BindError(
                f"{part} has no source row to take values from",
                hint="Name the columns.",
                table=self.table,
                part=part,
            )
        if not pairs:
            return self._by_position(part)
        if isinstance(pairs[0], exp.Star):
            return self._star(pairs[0], part)
        for pair in pairs:
            if isinstance(pair, exp.EQ):
                self._check_side(pair.expression, kind, part)
        return assignments(pairs, self.info.schema, self.alias, scope, table=self.table, part=part)

    def _insert(self, then: exp.Insert, part: str) -> tuple[Assignment, ...]:
        names, values = then.this, then.expression
        if isinstance(names, exp.Star):
            return self._star(names, part)
        # The parser leaves False where a bare INSERT has no values, and reads BY NAME as a list of columns.
        if not values and names is None:
            return self._by_position(part)
        if not values:
            raise UnsupportedStatementError(
                f"{part} THEN {then.sql()} is not supported",
                hint="INSERT * goes by name, INSERT alone by position; or give columns and VALUES.",
                table=self.table,
                part=part,
            )
        row = values.expressions[0] if isinstance(values, exp.Values) else values
        given = list(row.expressions) if isinstance(row, exp.Tuple) else [row]
        listed = (
            [item.name for item in names.expressions] if names is not None else list(self.info.schema.names)
        )
        columns = []
        for name in listed:
            stored = find_column(name, self.info.schema.names)
            if stored is None:
                unknown_column(name, self.info.schema.names, table=self.table, part=part)
            columns.append(stored)
        check_duplicates(columns, table=self.table, part=part)
        if len(columns) != len(given):
            raise BindError(
                f"INSERT gives {len(given)} values for {len(columns)} columns",
                hint="Give one value for each column.",
                table=self.table,
                part=part,
            )
        for item in given:
            self._check_side(item, ClauseKind.NOT_MATCHED, part)
        missing = [key for key in self.info.record_key_fields if key.split(".")[0] not in columns]
        if missing:
            raise BindError(
                f"INSERT gives no value for the key column {missing[0]}",
                hint=f"Add {missing[0]} to the columns.",
                table=self.table,
                part=part,
                column=missing[0],
            )
        return tuple(
            Assignment(
                column=name,
                value=resolved_value(item, self.source_only, part),
            )
            for name, item in zip(columns, given, strict=True)
        )

    def _star(self, star: exp.Star, part: str) -> tuple[Assignment, ...]:
        """Columns by name, whatever their order; a column that only ON gives is taken from there."""
        left_out = {item.name.lower() for item in star.args.get("except_") or ()}
        result = []
        for field in self.info.schema:
            if field.name.lower() in left_out:
                continue
            other = find_column(field.name, self.source_schema.names)
            value = self._from_on(field.name) if other is None else column_of(other, self.source_alias)
            if value is None:
                raise BindError(
                    f"The source has no column {field.name}, which * asks for",
                    hint=f"Its columns are {', '.join(self.source_schema.names)}.",
                    table=self.table,
                    part=part,
                    column=field.name,
                )
            result.append(Assignment(column=field.name, value=value))
        return tuple(result)

    def _by_position(self, part: str) -> tuple[Assignment, ...]:
        """DuckDB's bare UPDATE and INSERT: the source's columns in their order."""
        if len(self.source_schema) != len(self.info.schema):
            raise BindError(
                f"The source has {len(self.source_schema)} columns and {self.table} has {len(self.info.schema)}",
                hint="Write SET * or INSERT * to go by name.",
                table=self.table,
                part=part,
            )
        return tuple(
            Assignment(column=field.name, value=column_of(name, self.source_alias))
            for field, name in zip(self.info.schema, self.source_schema.names, strict=True)
        )

    def _from_on(self, name: str) -> exp.Expression | None:
        for condition in self.on.find_all(exp.EQ):
            for mine, other in (
                (condition.this, condition.expression),
                (condition.expression, condition.this),
            ):
                if (
                    isinstance(mine, exp.Column)
                    and mine.table == self.alias
                    and mine.name == name
                    and isinstance(other, exp.Column)
                    and other.table == self.source_alias
                ):
                    return other.copy()
        return None


def _kind(when: exp.Expression) -> ClauseKind:
    if when.args.get("matched"):
        return ClauseKind.MATCHED
    return ClauseKind.NOT_MATCHED_BY_SOURCE if when.args.get("source") else ClauseKind.NOT_MATCHED
