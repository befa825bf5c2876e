"""Pieces that UPDATE, DELETE and MERGE plans share: the target with positions, values, RETURNING."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from hudi_sql.planner.model import TableFacts, lent_name, returned_name, stored_name, value_name
from hudi_sql.planner.rewrite import columns_of, quoted
from hudi_sql.sql.model import Assignment
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN

__all__ = [
    "TARGET",
    "aliased",
    "column",
    "needed_columns",
    "position_columns",
    "returning_columns",
    "select_of",
    "stored_columns",
    "target_table",
    "values_of",
    "with_alias",
]

TARGET = lent_name(0)
"""The target of a change is always the first relation that a query is lent."""


def column(name: str, qualifier: str) -> exp.Column:
    """A column spelled exactly."""
    return exp.Column(this=quoted(name), table=quoted(qualifier))


def aliased(expression: exp.Expression, name: str) -> exp.Alias:
    """An output column with a reserved name."""
    return exp.Alias(this=expression, alias=quoted(name))


def with_alias(source: exp.Expression, alias: str, columns: Sequence[str] = ()) -> exp.Expression:
    """Give a FROM item its name, and names to its columns where it has none of its own."""
    item = source.copy()
    if isinstance(item, exp.Select | exp.SetOperation):
        item = exp.Subquery(this=item)
    own = item.args.get("alias")
    names = list(own.args.get("columns") or ()) if isinstance(own, exp.TableAlias) else []
    if columns and not names:
        names = [quoted(name) for name in columns]
    item.set("alias", exp.TableAlias(this=quoted(alias), columns=names or None))
    return item


def target_table(alias: str) -> exp.Table:
    """The target as a FROM item."""
    return exp.Table(this=quoted(TARGET), alias=exp.TableAlias(this=quoted(alias)))


def position_columns(alias: str) -> list[exp.Expression]:
    """Where a row lives."""
    return [aliased(column(name, alias), name) for name in (SLICE_COLUMN, POSITION_COLUMN)]


def values_of(assignments: Sequence[Assignment], schema: pa.Schema, alias: str) -> dict[str, exp.Expression]:
    """One expression for each assigned top-level column; assignments to fields of structs are put together."""
    whole: dict[str, exp.Expression] = {}
    parts: dict[str, dict[tuple[str, ...], exp.Expression]] = {}
    for assignment in assignments:
        if assignment.path:
            parts.setdefault(assignment.column, {})[assignment.path] = assignment.value
        else:
            whole[assignment.column] = assignment.value
    for name, fields in parts.items():
        whole[name] = _rebuilt(column(name, alias), schema.field(name).type, fields)
    return whole


def _rebuilt(
    stored: exp.Expression, kind: pa.DataType, parts: Mapping[tuple[str, ...], exp.Expression]
) -> exp.Expression:
    fields = []
    for number in range(kind.num_fields):
        name = kind.field(number).name
        inner = {path[1:]: value for path, value in parts.items() if path[0] == name}
        # DataFusion gives what lies under a NULL struct, which is no value of any row.
        is_null = exp.Is(this=stored.copy(), expression=exp.Null())
        field = exp.Bracket(this=stored.copy(), expressions=[exp.Literal.string(name)])
        old = exp.Case().when(is_null, exp.Null(), copy=False).else_(field, copy=False)
        if () in inner:
            value = inner[()]
        elif inner:
            value = _rebuilt(old, kind.field(number).type, inner)
        else:
            value = old
        fields.append(exp.PropertyEQ(this=quoted(name), expression=value.copy()))
    return exp.Struct(expressions=fields)


def stored_columns(facts: TableFacts, assigned: Iterable[str]) -> tuple[str, ...]:
    """Stored values that the rules compare with new ones, when these columns are assigned."""
    names = set(assigned)
    wanted = [name for name in facts.schema.names if name in facts.identity_columns & names]
    ordering = {name.split(".")[0] for name in facts.ordering_fields}
    if facts.is_event_time and ordering & names:
        wanted.extend(name for name in facts.schema.names if name in ordering and name not in wanted)
    return tuple(wanted)


def select_of(
    values: Sequence[exp.Expression], stored: Sequence[exp.Expression], returned: Sequence[exp.Expression]
) -> list[exp.Expression]:
    """Output columns under their reserved names."""
    return [
        *(aliased(item.copy(), value_name(number)) for number, item in enumerate(values)),
        *(aliased(item.copy(), stored_name(number)) for number, item in enumerate(stored)),
        *(aliased(item.copy(), returned_name(number)) for number, item in enumerate(returned)),
    ]


def needed_columns(query: exp.Select, alias: str, schema: pa.Schema) -> tuple[str, ...]:
    """Columns of the target that a query over it mentions, in the order of its full schema.

    A name without a relation, which only subqueries still have, may be one of them.
    """
    named = {found.name for part in query.iter_expressions() for found in columns_of(part, alias)}
    bare = {found.name.lower() for found in query.find_all(exp.Column) if not found.table}
    return tuple(name for name in schema.names if name in named or name.lower() in bare)


def _named_apart(items: Sequence[exp.Expression]) -> list[exp.Expression]:
    """Give the second of two columns of one name another: an engine may refuse them."""
    seen: set[str] = set()
    result = []
    for item in items:
        name = item.alias_or_name
        if not name or isinstance(item, exp.Star):
            result.append(item)
            continue
        unique, number = name, 0
        while unique.lower() in seen:
            number += 1
            unique = f"{name}_{number}"
        seen.add(unique.lower())
        inner = item.this if isinstance(item, exp.Alias) else item
        result.append(aliased(inner, unique))
    return result


def returning_columns(
    returning: Sequence[exp.Expression], alias: str
) -> tuple[tuple[exp.Expression, ...], list[exp.Expression]]:
    """Split RETURNING: expressions over the target alone, and what must be carried along for the rest.

    Columns of other relations become columns of the target with reserved names.
    """
    carried: list[exp.Expression] = []
    result = []
    for item in returning:
        copy = item.copy()
        for found in list(copy.find_all(exp.Column)):
            if not found.table or found.table.lower() == alias.lower():
                continue
            new = column(returned_name(len(carried)), alias)
            carried.append(found.copy())
            if found is copy:
                copy = aliased(new, found.name)
            else:
                found.replace(new)
        result.append(copy)
    return tuple(_named_apart(result)), carried
