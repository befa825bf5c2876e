"""Changes to query trees that respect the scopes of names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from sqlglot import exp

__all__ = ["and_all", "columns_of", "conjuncts", "quoted", "rename_qualifier", "rewrite_columns"]

Replace = Callable[[exp.Column], "exp.Expression | None"]


def quoted(name: str) -> exp.Identifier:
    """Give an identifier that every engine takes as it is spelled."""
    return exp.Identifier(this=name, quoted=True)


def conjuncts(condition: exp.Expr | None) -> list[exp.Expression]:
    """Split a condition at its ANDs."""
    if condition is None:
        return []
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        return [*conjuncts(inner.this), *conjuncts(inner.expression)]
    return [cast("exp.Expression", inner)]


def and_all(conditions: list[exp.Expression]) -> exp.Expression | None:
    """Join conditions by AND; None when there are none."""
    if not conditions:
        return None
    whole: exp.Expression = exp.paren(conditions[0])
    for condition in conditions[1:]:
        whole = exp.And(this=whole, expression=exp.paren(condition))
    return whole


def columns_of(tree: exp.Expression, qualifier: str) -> Iterator[exp.Column]:
    """All columns of a relation that a tree mentions, those in correlated subqueries included."""
    if isinstance(tree, exp.Column):
        if tree.table.lower() == qualifier.lower():
            yield tree
        return
    if _shadows(tree, qualifier):
        return
    for child in tree.iter_expressions():
        yield from columns_of(child, qualifier)


def rewrite_columns(tree: exp.Expression, qualifier: str, replace: Replace) -> exp.Expression:
    """Copy a tree with the columns of one relation replaced.

    A subquery that gives the same name to a relation of its own keeps its columns.
    """
    copy = tree.copy()
    for column in list(columns_of(copy, qualifier)):
        new = replace(column)
        if new is None:
            continue
        if column is copy:
            return new
        column.replace(new)
    return copy


def rename_qualifier(tree: exp.Expression, old: str, new: str) -> exp.Expression:
    """Copy a tree with a relation's columns qualified by another name, both parts quoted."""
    return rewrite_columns(tree, old, lambda column: exp.Column(this=quoted(column.name), table=quoted(new)))


def _shadows(tree: exp.Expression, qualifier: str) -> bool:
    if not isinstance(tree, exp.Select):
        return False
    sources: list[exp.Expression] = []
    from_ = tree.args.get("from_")
    if from_ is not None:
        sources.append(from_.this)
    sources.extend(join.this for join in tree.args.get("joins") or ())
    sources.extend(lateral for lateral in tree.args.get("laterals") or ())
    for source in sources:
        sources_of_table = [source, *(join.this for join in source.args.get("joins") or ())]
        if any(item.alias_or_name.lower() == qualifier.lower() for item in sources_of_table):
            return True
    return False
