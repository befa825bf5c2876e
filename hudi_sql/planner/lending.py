"""Hudi tables inside a query → relations lent to the engine under reserved names."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from hudi_sql.planner.model import LentTable, lent_name
from hudi_sql.planner.pruning import prune_select
from hudi_sql.planner.rewrite import quoted
from hudi_sql.sql.model import TableName
from hudi_sql.sql.names import named_tables, table_name

__all__ = ["Lender", "table_key"]


def table_key(table: exp.Table) -> str:
    """`TableName.key` of a table node."""
    return table_name(table).key


class Lender:
    """Replaces tables in the trees of one statement; each place gets a relation of its own."""

    def __init__(
        self, tables: Mapping[str, TableName], schemas: Mapping[str, pa.Schema], *, first: int = 0
    ) -> None:
        self._tables = tables
        self._schemas = schemas
        self._next = first
        self._shadowed: frozenset[str] = frozenset()
        self.lent: list[LentTable] = []

    def shadow(self, with_: exp.Expression | None) -> None:
        """Let the common table expressions of the statement hide tables in all its parts."""
        if isinstance(with_, exp.With):
            self._shadowed = frozenset(cte.alias.lower() for cte in with_.expressions)

    def lend_with(self, with_: exp.Expression) -> exp.Expression:
        """Copy the WITH clause of a statement; an expression sees those before it."""
        copy = with_.copy()
        seen = self._shadowed if copy.args.get("recursive") else frozenset()
        for cte in copy.expressions:
            self._lend_in(cte, seen)
            seen |= {cte.alias.lower()}
        return copy

    def lend(self, tree: exp.Expression) -> exp.Expression:
        """Copy a tree with its Hudi tables replaced; names of common table expressions hide tables."""
        copy = tree.copy()
        self._lend_in(copy, self._shadowed)
        return copy

    def _lend_in(self, tree: exp.Expression, shadowed: frozenset[str]) -> None:
        for table in list(named_tables(tree, shadowed)):
            if table_key(table) in self._tables:
                self._replace(table)
        _unqualify(tree, {table.key for table in self.lent})

    def _replace(self, node: exp.Table) -> None:
        key = table_key(node)
        name = lent_name(self._next)
        self._next += 1
        schema = self._schemas.get(key)
        predicate = prune_select(node, schema) if schema is not None else None
        self.lent.append(LentTable(name=name, key=key, predicate=predicate))
        if not node.alias and not isinstance(node.this, exp.Func):
            own = exp.Identifier(this=node.this.name, quoted=node.this.args.get("quoted"))
            node.set("alias", exp.TableAlias(this=own))
        node.set("this", quoted(name))
        for part in ("db", "catalog", "version", "when"):
            node.set(part, None)


def _unqualify(tree: exp.Expression, keys: set[str]) -> None:
    """Columns qualified by schema (`default.t.id`) lose it: the relation that stands in has one name."""
    names = {key.split("@")[0].split(".")[-1] for key in keys if "." in key}
    if not names:
        return
    for column in tree.find_all(exp.Column):
        if column.args.get("db") is not None and column.table.lower() in names:
            column.set("db", None)
            column.set("catalog", None)
