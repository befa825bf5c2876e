"""Pieces that statements share: stored values, assignments, checked conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from hudi_sql.errors import BindError
from hudi_sql.sql.model import Assignment
from hudi_sql.sql.names import Scope, find_column, is_meta, qualify, refuse_hidden_name, unknown_column
from hudi_sql.sql.types import cast_for_store

__all__ = [
    "assignments",
    "cast_assignments",
    "check_condition",
    "check_duplicates",
    "default_to_null",
    "is_default",
    "refuse_aggregates",
    "resolved_value",
]


def is_default(node: exp.Expression) -> bool:
    """Whether a value is the word DEFAULT."""
    if isinstance(node, exp.Column):
        return node.name.upper() == "DEFAULT" and not node.table and not node.this.args.get("quoted")
    return isinstance(node, exp.Var) and node.name.upper() == "DEFAULT"


def default_to_null(node: exp.Expression) -> exp.Expression:
    """Hudi columns have no defaults: DEFAULT is NULL."""
    return exp.Null() if is_default(node) else node


def resolved_value(node: exp.Expression, scope: Scope, part: str) -> exp.Expression:
    """A value with its names resolved, not cast yet."""
    value = default_to_null(node)
    refuse_aggregates(value, table=scope.table, part=part)
    return qualify(value, scope, part=part)


def cast_assignments(given: tuple[Assignment, ...], schema: pa.Schema) -> tuple[Assignment, ...]:
    """Assignments with the engine's own casts to what stores them."""
    result = []
    for item in given:
        kind = schema.field(item.column).type
        for name in item.path:
            kind = kind.field(name).type
        result.append(replace(item, value=cast_for_store(item.value, kind)))
    return tuple(result)


def assignments(
    pairs: Sequence[exp.Expression], schema: pa.Schema, target: str, scope: Scope, *, table: str, part: str
) -> tuple[Assignment, ...]:
    """`column = value` pairs of UPDATE and MERGE; values are not cast yet.

    Raises:
        BindError: A column is unknown, assigned twice, or Hudi's own.
    """
    if not pairs:
        raise BindError(f"{part} assigns nothing", hint="Write column = value.", table=table, part=part)
    result = []
    for pair in pairs:
        if not isinstance(pair, exp.EQ):
            raise BindError(
                f"{pair.sql()} assigns nothing", hint="Write column = value.", table=table, part=part
            )
        for left, right in _split(pair, table, part):
            result.append(_assignment(left, right, schema, target, scope, table=table, part=part))
    seen: list[tuple[str, ...]] = []
    for item in result:
        path = (item.column, *item.path)
        if any(path[: len(other)] == other or other[: len(path)] == path for other in seen):
            raise BindError(
                f"{'.'.join(path)} is assigned more than once",
                hint="Assign it once.",
                table=table,
                part=part,
                column=item.column,
            )
        seen.append(path)
    return tuple(result)


def _split(pair: exp.EQ, table: str, part: str) -> list[tuple[exp.Expression, exp.Expression]]:
    left, right = pair.this, pair.expression
    if not isinstance(left, exp.Tuple):
        return [(left, right)]
    if not isinstance(right, exp.Tuple) or len(left.expressions) != len(right.expressions):
        raise BindError(
            f"{pair.sql()} does not give one value for each column",
            hint="Write (a, b) = (x, y), or a = x, b = y.",
            table=table,
            part=part,
        )
    return list(zip(left.expressions, right.expressions, strict=True))


def _assignment(
    left: exp.Expression,
    right: exp.Expression,
    schema: pa.Schema,
    target: str,
    scope: Scope,
    *,
    table: str,
    part: str,
) -> Assignment:
    names = [piece.name for piece in left.parts] if isinstance(left, exp.Column | exp.Dot) else [left.name]
    if len(names) > 1 and names[0].lower() == target.lower() and find_column(names[0], schema.names) is None:
        names = names[1:]
    if is_meta(names[0]):
        raise BindError(
            f"{names[0]} is a column of Hudi's own and cannot be assigned",
            hint="Assign the columns that it is made of.",
            table=table,
            part=part,
            column=names[0],
        )
    column = find_column(names[0], schema.names)
    if column is None:
        refuse_hidden_name(names, table=table, alias=target, part=part)
        unknown_column(names[0], schema.names, table=table, part=part)
    kind = schema.field(column).type
    path = []
    for name in names[1:]:
        fields = (
            [kind.field(number).name for number in range(kind.num_fields)] if pa.types.is_struct(kind) else []
        )
        field = find_column(name, fields)
        if field is None:
            unknown_column(name, fields, table=table, part=part)
        path.append(field)
        kind = kind.field(field).type
    return Assignment(column=column, path=tuple(path), value=resolved_value(right, scope, part))


def check_duplicates(names: Sequence[str], *, table: str, part: str) -> None:
    """Refuse a name that stands twice in a list of columns."""
    for name in names:
        if sum(other.lower() == name.lower() for other in names) > 1:
            raise BindError(
                f"The column {name} is listed more than once",
                hint="List it once.",
                table=table,
                part=part,
                column=name,
            )


def refuse_aggregates(node: exp.Expression, *, table: str, part: str) -> None:
    """Refuse sum(x) and the like over the rows of the statement itself: there is one value for each row.

    Raises:
        BindError: With the function.
    """
    for call in node.find_all(exp.AggFunc):
        if not any(isinstance(above, exp.Query | exp.Window) for above in _above(call, node)):
            raise BindError(
                f"{call.sql()} is an aggregate, which {part} cannot have",
                hint="Write a subquery: (SELECT … FROM …).",
                table=table,
                part=part,
            )


def _above(node: exp.Expr, top: exp.Expr) -> Iterator[exp.Expr]:
    while node is not top and node.parent is not None:
        node = node.parent
        yield node


def check_condition(node: exp.Expression, dialect: str, *, table: str, part: str) -> None:
    """Refuse an aggregate, and a bare NULL where the dialect does: it is no boolean."""
    refuse_aggregates(node, table=table, part=part)
    if dialect == "spark" and isinstance(node.unnest(), exp.Null):
        raise BindError(
            f"{part} NULL is no condition", hint="Write a boolean expression.", table=table, part=part
        )
