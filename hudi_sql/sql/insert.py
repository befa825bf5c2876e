"""INSERT INTO."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from hudi_sql.errors import BindError, UnsupportedStatementError
from hudi_sql.sql.context import BindContext, TableInfo
from hudi_sql.sql.model import BoundInsert, StoreAssignment, TableName
from hudi_sql.sql.names import LOCATION_FUNCTION, find_column, hudi_tables, is_meta, target_of, unknown_column
from hudi_sql.sql.types import cast_for_store, check_store_assignment, spark_cast_for_store
from hudi_sql.sql.values import check_duplicates, default_to_null
from hudi_sql.storage.schema.meta_columns import META_COLUMNS

__all__ = ["bind_insert"]

_SOURCE = "__hudi_sql_q"


def bind_insert(tree: exp.Insert, text: str, context: BindContext) -> BoundInsert | None:
    """Bind an INSERT into a Hudi table; None for other tables.

    Raises:
        BindError: Columns are unknown, repeated, too few or too many, or a type does not fit.
        UnsupportedStatementError: A clause that is not supported.
    """
    into = _location_call(tree.this)
    columns_node = into.expressions if isinstance(into, exp.Schema) else []
    table = into.this if isinstance(into, exp.Schema) else into
    found = target_of(table, context)
    if found is None:
        return None
    name, info, _ = found
    _refuse(tree, str(name))
    on_conflict = _on_conflict(tree, name)
    static, dynamic = _partition(table.args.get("partition"), info, str(name))
    query = _query(tree, str(name))
    if not tree.args.get("by_name"):
        _name_items(query)
    tables = hudi_tables(query, context)
    given = context.describe(query)
    skip = _leading_meta(given)
    if tree.args.get("by_name"):
        columns, positions = _by_name(given, info.schema, static, str(name))
    else:
        named = [_column(node, info.schema, str(name)) for node in columns_node]
        check_duplicates(named, table=str(name), part="the column list")
        columns = tuple(named) or _positional(info, static, dynamic)
        columns = tuple(column for column in columns if column not in static)
        if len(given) != len(columns) and len(given) - skip == len(columns):
            positions = list(range(skip, len(given)))
        else:
            positions = list(range(len(given)))
        if len(positions) != len(columns):
            raise BindError(
                f"INSERT gives {len(positions)} columns for {len(columns)} of {name}",
                hint=f"It takes {', '.join(columns)}; name the columns if you give fewer.",
                table=str(name),
            )
    rule = StoreAssignment.SPARK_ANSI if context.dialect == "spark" else StoreAssignment.ENGINE
    for column, position in zip(columns, positions, strict=True):
        check_store_assignment(
            given.field(position).type, info.schema.field(column).type, rule, column=column, table=str(name)
        )
    return BoundInsert(
        text=text,
        tables=tables,
        target=name,
        columns=columns,
        query=_cast_query(query, columns, positions, given=given, schema=info.schema, rule=rule),
        static_partition=static,
        store_assignment=rule,
        on_conflict=on_conflict,
    )


def _location_call(into: exp.Expression) -> exp.Expression:
    """`hudi_table('uri')` after INTO, which reads like a table with a list of columns."""
    if (
        isinstance(into, exp.Schema)
        and len(into.expressions) == 1
        and into.this.name.lower() == LOCATION_FUNCTION
    ):
        argument = into.expressions[0]
        if isinstance(argument, exp.Literal) and argument.is_string:
            return exp.Table(this=exp.Anonymous(this=LOCATION_FUNCTION, expressions=[argument.copy()]))
    return into


def _query(tree: exp.Insert, table: str) -> exp.Expression:
    query = tree.expression
    if query is None and isinstance(tree.args.get("source"), exp.Table):
        query = exp.Select(expressions=[exp.Star()]).from_(tree.args["source"].copy())
    if query is None:
        raise BindError("INSERT has no rows", hint="Give VALUES or a query.", table=table)
    query = query.copy()
    for row in query.find_all(exp.Tuple):
        if isinstance(row.parent, exp.Values):
            row.set("expressions", [default_to_null(item) for item in row.expressions])
    with_ = tree.args.get("with_")
    if with_ is not None:
        if isinstance(query, exp.Values):
            return query
        own = query.args.get("with_")
        merged = with_.copy()
        if own is not None:
            merged.set("expressions", [*merged.expressions, *own.expressions])
        query.set("with_", merged)
    assert isinstance(query, exp.Expression)
    return query


def _name_items(query: exp.Expression) -> None:
    """Give what a query selects names of its own: only positions count, and an engine may refuse equal names."""
    if isinstance(query, exp.Subquery):
        _name_items(query.this)
    elif isinstance(query, exp.SetOperation):
        _name_items(query.this)
        _name_items(query.expression)
    elif isinstance(query, exp.Select):
        seen: set[str] = set()
        items: list[exp.Expression] = []
        for number, item in enumerate(query.expressions):
            name = item.alias_or_name.lower() if isinstance(item, exp.Column | exp.Alias) else ""
            if item.is_star or (name and name not in seen):
                seen.add(name)
                items.append(item)
            else:
                alias = exp.Identifier(this=f"__hudi_sql_c{number}", quoted=True)
                items.append(exp.Alias(this=item.unalias(), alias=alias))
        query.set("expressions", items)


def _cast_query(
    query: exp.Expression,
    columns: tuple[str, ...],
    positions: list[int],
    *,
    given: pa.Schema,
    schema: pa.Schema,
    rule: StoreAssignment,
) -> exp.Expression:
    """The query's columns, under names of our own, cast to the stored types."""
    # Columns are called as they are stored, so that an engine's message about a value names its column.
    called = {position: column for column, position in zip(columns, positions, strict=True)}
    names = [
        exp.Identifier(this=called.get(number, f"__hudi_sql_c{number}"), quoted=True)
        for number in range(len(given))
    ]
    alias = exp.TableAlias(this=exp.Identifier(this=_SOURCE, quoted=True), columns=names)
    source: exp.Expression
    if isinstance(query, exp.Values):
        source = query.copy()
        source.set("alias", alias)
    else:
        inner = query.this if isinstance(query, exp.Subquery) else query
        source = exp.Subquery(this=inner.copy(), alias=alias)
    items: list[exp.Expression] = []
    for column, position in zip(columns, positions, strict=True):
        value = exp.Column(
            this=exp.Identifier(this=called[position], quoted=True),
            table=exp.Identifier(this=_SOURCE, quoted=True),
        )
        stored = schema.field(column).type
        if rule is StoreAssignment.SPARK_ANSI:
            cast = spark_cast_for_store(value, stored, given.field(position).type)
        else:
            cast = cast_for_store(value, stored)
        items.append(exp.Alias(this=cast, alias=exp.Identifier(this=column, quoted=True)))
    return exp.Select(expressions=items).from_(source)


def _column(node: exp.Expression, schema: pa.Schema, table: str) -> str:
    if is_meta(node.name):
        raise BindError(
            f"{node.name} is a column of Hudi's own and cannot be given",
            hint="Leave it out.",
            table=table,
            column=node.name,
        )
    stored = find_column(node.name, schema.names)
    if stored is None:
        unknown_column(node.name, schema.names, table=table, part="the column list")
    return stored


def _positional(
    info: TableInfo, static: dict[str, exp.Expression], dynamic: tuple[str, ...]
) -> tuple[str, ...]:
    names = [name for name in info.schema.names if name not in static and name not in dynamic]
    return (*names, *dynamic)


def _leading_meta(given: pa.Schema) -> int:
    return len(META_COLUMNS) if tuple(given.names[: len(META_COLUMNS)]) == tuple(META_COLUMNS) else 0


def _by_name(
    given: pa.Schema, schema: pa.Schema, static: dict[str, exp.Expression], table: str
) -> tuple[tuple[str, ...], list[int]]:
    columns, positions = [], []
    for position, name in enumerate(given.names):
        if is_meta(name):
            continue
        stored = find_column(name, schema.names)
        if stored is None:
            unknown_column(name, schema.names, table=table, part="BY NAME")
        columns.append(stored)
        positions.append(position)
    check_duplicates(columns, table=table, part="BY NAME")
    missing = [name for name in schema.names if name not in columns and name not in static]
    if missing:
        raise BindError(
            f"BY NAME gives no column {missing[0]}",
            hint="Give every column of the table, or list the columns.",
            table=table,
            column=missing[0],
        )
    return tuple(columns), positions


def _partition(
    node: exp.Expression | None, info: TableInfo, table: str
) -> tuple[dict[str, exp.Expression], tuple[str, ...]]:
    static: dict[str, exp.Expression] = {}
    dynamic: list[str] = []
    for item in node.expressions if node is not None else ():
        column = item.this if isinstance(item, exp.EQ) else item
        stored = find_column(column.name, info.partition_fields)
        if stored is None:
            unknown_column(column.name, info.partition_fields, table=table, part="PARTITION")
        if isinstance(item, exp.EQ):
            static[stored] = cast_for_store(item.expression.copy(), info.schema.field(stored).type)
        else:
            dynamic.append(stored)
    missing = [name for name in info.partition_fields if node is not None and name not in (*static, *dynamic)]
    if missing:
        raise BindError(
            f"PARTITION says nothing of {missing[0]}",
            hint=f"Name {', '.join(info.partition_fields)}.",
            table=table,
            part="PARTITION",
            column=missing[0],
        )
    return static, tuple(dynamic)


def _on_conflict(tree: exp.Insert, name: TableName) -> str | None:
    alternative = str(tree.args.get("alternative") or "").lower()
    if alternative in ("replace", "ignore"):
        return alternative
    if tree.args.get("ignore"):
        return "ignore"
    conflict = tree.args.get("conflict")
    if conflict is None:
        return None
    if "NOTHING" in str(conflict.args.get("action") or "").upper():
        return "ignore"
    raise UnsupportedStatementError(
        "ON CONFLICT DO UPDATE is not supported for Hudi tables",
        hint="Use MERGE.",
        table=str(name),
        part="ON CONFLICT",
    )


def _refuse(tree: exp.Insert, table: str) -> None:
    for key, what, hint in (
        ("overwrite", "INSERT OVERWRITE", "DELETE the rows, then INSERT."),
        ("where", "REPLACE WHERE", "DELETE the rows, then INSERT."),
        ("returning", "RETURNING of INSERT", "Query the table afterwards."),
    ):
        if tree.args.get(key):
            raise UnsupportedStatementError(
                f"{what} is not supported for Hudi tables", hint=hint, table=table, part=what
            )
