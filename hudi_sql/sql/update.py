"""UPDATE and DELETE."""

from __future__ import annotations

from sqlglot import exp

from hudi_sql.errors import UnsupportedStatementError
from hudi_sql.sql.context import BindContext, TableInfo
from hudi_sql.sql.model import BoundDelete, BoundUpdate, StoreAssignment, TableName
from hudi_sql.sql.names import Scope, hudi_tables, qualify, target_of
from hudi_sql.sql.spark_typing import SparkTyper
from hudi_sql.sql.values import assignments, cast_assignments, check_condition
from hudi_sql.storage.schema.meta_columns import META_COLUMNS

__all__ = ["bind_delete", "bind_update", "returning_items", "target_scope"]


def bind_update(tree: exp.Update, text: str, context: BindContext) -> BoundUpdate | None:
    """Bind an UPDATE of a Hudi table; None for other tables."""
    found = target_of(tree.this, context)
    if found is None:
        return None
    name, info, alias = found
    _refuse(tree, "UPDATE", str(name))
    source = tree.args.get("from_")
    items = [source.this] if source is not None else []
    scope = target_scope(str(name), info, alias, items, with_=tree.args.get("with_"), context=context)
    values = assignments(tree.expressions, info.schema, alias, scope, table=str(name), part="SET")
    where = _where(tree, scope, context, str(name))
    if context.dialect == "spark":
        (values,) = _typer(tree, found, items, context).check(
            [values], [] if where is None else [("WHERE", where)]
        )
    else:
        values = cast_assignments(values, info.schema)
    return BoundUpdate(
        text=text,
        tables=_tables(tree, name, context),
        target=name,
        alias=alias,
        assignments=values,
        where=where,
        from_=items[0].copy() if items else None,
        with_=_copy(tree.args.get("with_")),
        returning=returning_items(tree.args.get("returning"), info, alias, scope),
        store_assignment=StoreAssignment.SPARK_CAST if context.dialect == "spark" else StoreAssignment.ENGINE,
    )


def bind_delete(tree: exp.Delete, text: str, context: BindContext) -> BoundDelete | None:
    """Bind a DELETE from a Hudi table; None for other tables."""
    found = target_of(tree.this, context)
    if found is None:
        return None
    name, info, alias = found
    _refuse(tree, "DELETE", str(name))
    items = list(tree.args.get("using") or ())
    scope = target_scope(str(name), info, alias, items, with_=tree.args.get("with_"), context=context)
    using: exp.Expression | None = None
    if items:
        using = items[0].copy() if len(items) == 1 else exp.Tuple(expressions=[item.copy() for item in items])
    where = _where(tree, scope, context, str(name))
    if context.dialect == "spark" and where is not None:
        _typer(tree, found, items, context).check([], [("WHERE", where)])
    return BoundDelete(
        text=text,
        tables=_tables(tree, name, context),
        target=name,
        alias=alias,
        where=where,
        using=using,
        with_=_copy(tree.args.get("with_")),
        returning=returning_items(tree.args.get("returning"), info, alias, scope),
    )


def target_scope(
    table: str,
    info: TableInfo,
    alias: str,
    items: list[exp.Expression],
    *,
    with_: exp.Expression | None,
    context: BindContext,
) -> Scope:
    """The target's columns, meta columns included, and those of the relations beside it."""
    scope = Scope(table).add(alias, [*META_COLUMNS, *info.schema.names])
    if items:
        query = exp.Select(expressions=[exp.Star()]).from_(items[0].copy())
        for item in items[1:]:
            query.append("joins", exp.Join(this=item.copy()))
        if with_ is not None:
            query.set("with_", with_.copy())
        names = context.describe(query).names
        qualifiers = _qualifiers(items)
        if len(qualifiers) == 1:
            scope.add(qualifiers[0], names)
        else:
            # Which relation has which column is told by the engine; here it matters only that one has it.
            for qualifier in qualifiers:
                scope.add(qualifier, None)
    return scope


def _qualifiers(items: list[exp.Expression]) -> list[str]:
    found = []
    for item in items:
        found.append(item.alias_or_name)
        found.extend(join.this.alias_or_name for join in item.args.get("joins") or ())
    return found


def returning_items(
    node: exp.Expression | None, info: TableInfo, alias: str, scope: Scope
) -> tuple[exp.Expression, ...]:
    """Expressions of RETURNING; a star is the target's columns."""
    result: list[exp.Expression] = []
    for item in node.expressions if node is not None else ():
        inner = item.this if isinstance(item, exp.Column) else item
        if isinstance(inner, exp.Star):
            result.extend(
                exp.Column(
                    this=exp.Identifier(this=name, quoted=True), table=exp.Identifier(this=alias, quoted=True)
                )
                for name in info.schema.names
            )
        else:
            result.append(qualify(item, scope, part="RETURNING"))
    return tuple(result)


def _typer(
    tree: exp.Expression,
    target: tuple[TableName, TableInfo, str],
    items: list[exp.Expression],
    context: BindContext,
) -> SparkTyper:
    name, info, alias = target
    return SparkTyper(
        tree.this,
        alias,
        items,
        with_=tree.args.get("with_"),
        schema=info.schema,
        table=str(name),
        context=context,
    )


def _where(tree: exp.Expression, scope: Scope, context: BindContext, table: str) -> exp.Expression | None:
    where = tree.args.get("where")
    if where is None:
        return None
    check_condition(where.this, context.dialect, table=table, part="WHERE")
    return qualify(where.this, scope, part="WHERE")


def _tables(tree: exp.Expression, name: TableName, context: BindContext) -> dict[str, TableName]:
    return {**hudi_tables(tree, context), name.key: name}


def _copy(node: exp.Expression | None) -> exp.Expression | None:
    return None if node is None else node.copy()


def _refuse(tree: exp.Expression, verb: str, table: str) -> None:
    for key in ("order", "limit"):
        if tree.args.get(key):
            raise UnsupportedStatementError(
                f"{verb} with {key.upper()} is not supported for Hudi tables",
                hint="Choose the rows by a condition: WHERE key IN (SELECT … ORDER BY … LIMIT …).",
                table=table,
                part=key.upper(),
            )
