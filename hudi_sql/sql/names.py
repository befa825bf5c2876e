"""Names of columns: found in any case, kept as they are stored; and names of tables."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

from sqlglot import exp

from hudi_sql.errors import BindError, TableNotFoundError
from hudi_sql.sql.context import BindContext, TableInfo
from hudi_sql.sql.model import TableName
from hudi_sql.storage.schema.meta_columns import META_COLUMNS

__all__ = [
    "LOCATION_FUNCTION",
    "Scope",
    "column_of",
    "find_column",
    "hudi_tables",
    "is_meta",
    "named_tables",
    "qualify",
    "refuse_hidden_name",
    "table_name",
    "target_of",
    "unknown_column",
]

_LOCATION_SCHEMA = "hudi"
LOCATION_FUNCTION = "hudi_table"


def is_meta(name: str) -> bool:
    """Whether a name is one of Hudi's own columns."""
    return name.lower() in META_COLUMNS


def table_name(table: exp.Table) -> TableName:
    """The name that a table node stands for: dotted, or a location (`hudi.'uri'`, `hudi_table('uri')`)."""
    version = table.args.get("version")
    as_of = version.expression.name if version is not None and version.expression is not None else None
    inner = table.this
    if isinstance(inner, exp.Func):
        if inner.name.lower() == LOCATION_FUNCTION and inner.expressions:
            return TableName(location=inner.expressions[0].name, as_of=as_of)
        return TableName(parts=(inner.name,), as_of=as_of)
    parts = tuple(part.name for part in table.parts)
    if len(parts) == 2 and parts[0].lower() == _LOCATION_SCHEMA:
        return TableName(location=parts[1], as_of=as_of)
    return TableName(parts=parts, as_of=as_of)


def hudi_tables(tree: exp.Expression, context: BindContext) -> dict[str, TableName]:
    """Hudi tables that a tree reads, by key."""
    found = {}
    for table in named_tables(tree):
        name = table_name(table)
        if isinstance(table.this, exp.Func) and name.location is None:
            continue
        if name.key not in found and context.table_schema(name) is not None:
            found[name.key] = name
        elif name.as_of is not None and name.key not in found:
            raise BindError(
                f"{name} is no Hudi table and has no past",
                hint="TIMESTAMP AS OF is for Hudi tables.",
                table=str(name),
            )
    return found


def named_tables(node: exp.Expression, shadowed: frozenset[str] = frozenset()) -> Iterator[exp.Table]:
    """Tables that a tree names, without those that are common table expressions, its own or the `shadowed` ones."""
    with_ = node.args.get("with_")
    if isinstance(with_, exp.With):
        names = frozenset(cte.alias.lower() for cte in with_.expressions)
        seen = shadowed | names if with_.args.get("recursive") else shadowed
        for cte in with_.expressions:
            yield from named_tables(cte, seen)
            seen |= {cte.alias.lower()}
        shadowed = shadowed | names
    if isinstance(node, exp.Table) and not (len(node.parts) == 1 and node.name.lower() in shadowed):
        yield node
    for child in node.iter_expressions():
        if child is not with_:
            yield from named_tables(child, shadowed)


def target_of(table: exp.Expression, context: BindContext) -> tuple[TableName, TableInfo, str] | None:
    """The Hudi table that a statement changes, with the alias that its columns go by; None for other tables."""
    if not isinstance(table, exp.Table):
        return None
    name = table_name(table)
    info = context.table_schema(name)
    if info is None:
        if name.location is not None:
            raise TableNotFoundError(
                f"There is no Hudi table at {name}", hint="Check the location.", table=str(name)
            )
        return None
    if name.as_of is not None:
        raise BindError(
            f"{name} cannot be changed as of a time", hint="Leave TIMESTAMP AS OF out.", table=str(name)
        )
    return name, info, table.alias or (name.parts[-1] if name.parts else "target")


def find_column(name: str, names: Sequence[str]) -> str | None:
    """Stored spelling of a name: exactly, else the only one that differs by case.

    Raises:
        BindError: Several names differ by case alone, and none is written exactly so.
    """
    if name in names:
        return name
    found = [known for known in names if known.lower() == name.lower()]
    if len(found) > 1:
        raise BindError(
            f"The name {name} may be {' or '.join(found)}", hint="Write it as it is stored.", column=name
        )
    return found[0] if found else None


def unknown_column(name: str, names: Iterable[str], *, table: str, part: str | None = None) -> NoReturn:
    """Refuse a name, proposing near ones."""
    known = list(names)
    lowered = {item.lower(): item for item in known}
    near = [lowered[item] for item in difflib.get_close_matches(name.lower(), list(lowered), n=3, cutoff=0.5)]
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Columns are {', '.join(known)}."
    raise BindError(
        f"There is no column {name}", hint=hint, table=table, part=part, column=name, near=tuple(near)
    )


def refuse_hidden_name(parts: Sequence[str], *, table: str, alias: str, part: str | None) -> None:
    """Refuse `t.x` in a statement that calls the table t something else.

    Raises:
        BindError: With the name that it has there.
    """
    own = table.rsplit(".", maxsplit=1)[-1]
    if len(parts) > 1 and parts[0].lower() == own.lower() != alias.lower():
        raise BindError(
            f"{own} is called {alias} in this statement",
            hint=f"Write {alias}.{'.'.join(parts[1:])}.",
            table=table,
            part=part,
            column=parts[-1],
        )


class Scope:
    """Relations whose columns an expression may use, by alias."""

    def __init__(self, table: str) -> None:
        self.table = table
        self._relations: dict[str, tuple[str, tuple[str, ...] | None]] = {}

    def add(self, alias: str, names: Sequence[str] | None) -> Scope:
        """Let columns of a relation be used; None where its columns are the engine's business."""
        self._relations[alias.lower()] = (alias, None if names is None else tuple(names))
        return self

    @property
    def first_alias(self) -> str:
        """Alias of the relation that was added first: the target, where there is one."""
        return next(iter(self._relations.values()))[0]

    def resolve(self, column: exp.Column, part: str | None) -> exp.Column | None:
        """The column spelled and qualified; None where only the engine can tell.

        Raises:
            BindError: No relation, or more than one, has the column.
        """
        name, qualifier = column.name, column.table
        if qualifier:
            known = self._relations.get(qualifier.lower())
            if known is None or known[1] is None:
                return None
            stored = find_column(name, known[1])
            if stored is None:
                unknown_column(name, known[1], table=self.table, part=part)
            return column_of(stored, known[0])
        found = []
        is_open = False
        for alias, names in self._relations.values():
            if names is None:
                is_open = True
            elif (stored := find_column(name, names)) is not None:
                found.append((alias, stored))
        if len(found) > 1:
            raise BindError(
                f"The column {name} is in {' and in '.join(alias for alias, _ in found)}",
                hint=f"Write {found[0][0]}.{name} or {found[1][0]}.{name}.",
                table=self.table,
                part=part,
                column=name,
            )
        if found:
            return column_of(found[0][1], found[0][0])
        if not is_open:
            everything = [item for _, names in self._relations.values() for item in names or ()]
            unknown_column(name, everything, table=self.table, part=part)
        return None


def column_of(name: str, alias: str) -> exp.Column:
    """A resolved column."""
    return exp.Column(
        this=exp.Identifier(this=name, quoted=True), table=exp.Identifier(this=alias, quoted=True)
    )


def qualify(tree: exp.Expression, scope: Scope, *, part: str | None = None) -> exp.Expression:
    """Copy an expression with its columns resolved. Names inside subqueries that are not qualified stay."""
    holder = exp.Paren(this=tree.copy())
    for column in list(_own_columns(holder, is_inner=False)):
        inner = column[1]
        node = column[0]
        parts = [piece.name for piece in node.parts]
        if inner and not node.table:
            continue
        new = _as_field(parts, scope, part) if len(parts) > 1 and not inner else None
        if new is None:
            new = scope.resolve(node, part)
        if new is not None:
            node.replace(new)
    whole = holder.this
    whole.pop()
    assert isinstance(whole, exp.Expression)
    return whole


def _as_field(parts: list[str], scope: Scope, part: str | None) -> exp.Expression | None:
    """`st.a` where `st` is no relation but a column: a field of a struct."""
    if parts[0].lower() in scope._relations:  # noqa: SLF001  # one module
        if len(parts) == 2:
            return None
        base = scope.resolve(exp.column(parts[1], table=parts[0]), part)
        rest = parts[2:]
    else:
        if all(names is None for _, names in scope._relations.values()):  # noqa: SLF001
            return None
        try:
            base = scope.resolve(exp.column(parts[0]), part)
        except BindError:
            if any(names is None for _, names in scope._relations.values()):  # noqa: SLF001
                return None
            refuse_hidden_name(parts, table=scope.table, alias=scope.first_alias, part=part)
            raise
        rest = parts[1:]
    if base is None:
        return None
    result: exp.Expression = base
    for name in rest:
        result = exp.Dot(this=result, expression=exp.Identifier(this=name, quoted=True))
    return result


def _own_columns(node: exp.Expression, *, is_inner: bool) -> Iterator[tuple[exp.Column, bool]]:
    if isinstance(node, exp.Column):
        yield node, is_inner
        return
    for child in node.iter_expressions():
        yield from _own_columns(child, is_inner=is_inner or isinstance(child, exp.Select))
