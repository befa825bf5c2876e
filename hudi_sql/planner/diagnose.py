"""Why an engine refused a statement, where we can tell better than it, which sees neither our tables nor the text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Sequence

from sqlglot import exp

from hudi_sql.errors import BindError, HudiSqlError, TableNotFoundError, UnsupportedStatementError
from hudi_sql.sql.names import named_tables, table_name

__all__ = ["explain_refusal", "missing_target", "missing_values", "unknown_table"]

_MISSING = re.compile(r"not found|does not exist|doesn't exist", re.IGNORECASE)


def explain_refusal(
    text: str,
    tree: exp.Expression | None,
    message: str,
    *,
    is_known: Callable[[Sequence[str]], bool],
    names: Iterable[str],
) -> HudiSqlError | None:
    """The error to raise instead of the engine's own; None where its words are the best there are.

    Args:
        text: The statement as it was written.
        tree: The statement.
        message: What the engine said.
        is_known: Whether a table of a name exists, as a Hudi table or in the engine.
        names: Tables of the session, to propose.
    """
    if tree is None or not _MISSING.search(message):
        return None
    if isinstance(tree, exp.Command | exp.Pragma | exp.Show):
        return _command_on_hudi(text, names)
    for table in _tables(tree):
        name = table_name(table)
        # A name that no catalogue has may be a file that the engine reads: its message has to be about it.
        if name.parts and name.parts[-1].lower() in message.lower() and not is_known(name.parts):
            return unknown_table(name.parts, names, is_target=table is _target(tree))
    return None


def missing_target(
    tree: exp.Expression | None, is_known: Callable[[Sequence[str]], bool]
) -> Sequence[str] | None:
    """The table that a statement would change, where there is none of its name."""
    table = _target(tree) if tree is not None else None
    if table is None:
        return None
    parts = table_name(table).parts
    return parts if parts and not is_known(parts) else None


def unknown_table(parts: Sequence[str], names: Iterable[str], *, is_target: bool) -> HudiSqlError:
    """The refusal of a name that is no table anywhere: as what is changed, or as a source."""
    written = ".".join(parts)
    known: Collection[str] = list(names)
    near = difflib.get_close_matches(written, known, n=3)
    name_it = f"Name a Hudi table first: CREATE TABLE {written} USING hudi LOCATION '…'"
    hint = name_it + ("." if is_target else ", or register a source of this name.")
    if near:
        hint = f"Did you mean {' or '.join(near)}?"
    kind = TableNotFoundError if is_target else BindError
    return kind(
        f"There is no table {written}, neither a Hudi table of this session nor one of the engine",
        hint=hint,
        table=written,
        near=tuple(near),
    )


def missing_values(tree: exp.Expression) -> BindError | None:
    """Refuse a statement with parameters to which no values were given."""
    marks = list(tree.find_all(exp.Placeholder))
    if not marks:
        return None
    return BindError(
        f"The statement has {len(marks)} parameters and no values were given",
        hint="Give them as the second argument of sql(); of several statements, the last one gets them.",
    )


def _command_on_hudi(text: str, names: Iterable[str]) -> UnsupportedStatementError | None:
    """A statement of the engine's own about a table that is ours."""
    for name in names:
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE):
            word = text.split(maxsplit=1)[0].upper()
            return UnsupportedStatementError(
                f"{word} is not supported for Hudi tables",
                hint=f"session.table({name!r}) tells schema, settings and timeline.",
                table=name,
                part=word,
            )
    return None


def _tables(tree: exp.Expression) -> list[exp.Table]:
    return [table for table in named_tables(tree) if not isinstance(table.this, exp.Func)]


def _target(tree: exp.Expression) -> exp.Table | None:
    """The table of a statement that changes rows, or of DROP TABLE."""
    if isinstance(tree, exp.Drop):
        is_table = str(tree.args.get("kind")).upper() == "TABLE" and not tree.args.get("exists")
        tables = tree.args.get("tables") or [tree.this]
        table = tables[0] if is_table and len(tables) == 1 else None
    elif isinstance(tree, exp.Insert | exp.Update | exp.Delete | exp.Merge):
        table = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    else:
        return None
    return table if isinstance(table, exp.Table) and not isinstance(table.this, exp.Func) else None
