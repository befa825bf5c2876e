"""Hudi tables inside a query → relations lent to the engine under reserved names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from sqlglot import exp

from hudi_sql.planner.model import LentTable, lent_name
from hudi_sql.planner.pruning import prune_select
from hudi_sql.planner.rewrite import quoted
from hudi_sql.sql.model import TableName

__all__ = ["Lender", "named_tables", "table_key", "table_name_of"]

_LOCATION_SCHEMA = "hudi"
_LOCATION_FUNCTION = "hudi_table"


def table_name_of(table: exp.Table) -> TableName:
    """The name that a table node stands for: dotted, or a location (`hudi.'uri'`, `hudi_table('uri')`)."""
    version = table.args.get("version")
    as_of = version.expression.name if version is not None and version.expression is not None else None
    function = table.this
    if isinstance(function, exp.Func):
        if function.name.lower() == _LOCATION_FUNCTION and function.expressions:
            return TableName(location=function.expressions[0].name, as_of=as_of)
        return TableName(parts=(function.name,), as_of=as_of)
    parts = tuple(part.name for part in table.parts)
    if len(parts) == 2 and parts[0].lower() == _LOCATION_SCHEMA:
        return TableName(location=parts[1], as_of=as_of)
    return TableName(parts=parts, as_of=as_of)


def table_key(table: exp.Table) -> str:
    """`TableName.key` of a table node."""
    return table_name_of(table).key


def named_tables(tree: exp.Expression) -> Iterator[exp.Table]:
    """Tables that a statement names, without those that are its own common table expressions."""
    return _unshadowed(tree, frozenset())


def _unshadowed(node: exp.Expression, shadowed: frozenset[str]) -> Iterator[exp.Table]:
    with_ = node.args.get("with_")
    if isinstance(with_, exp.With):
        names = frozenset(cte.alias.lower() for cte in with_.expressions)
        seen = shadowed | names if with_.args.get("recursive") else shadowed
        for cte in with_.expressions:
            yield from _unshadowed(cte, seen)
            seen |= {cte.alias.lower()}
        shadowed = shadowed | names
    if isinstance(node, exp.Table) and not (len(node.parts) == 1 and node.name.lower() in shadowed):
        yield node
    for child in node.iter_expressions():
        if child is not with_:
            yield from _unshadowed(child, shadowed)


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
        for table in list(_unshadowed(tree, shadowed)):
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
