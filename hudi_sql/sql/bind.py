"""Statements with their names resolved."""

from __future__ import annotations

import re

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from hudi_sql.errors import UnsupportedStatementError
from hudi_sql.sql.context import BindContext
from hudi_sql.sql.ddl import bind_create, bind_drop, is_hudi_create, refuse_other_formats
from hudi_sql.sql.insert import bind_insert
from hudi_sql.sql.merge import bind_merge
from hudi_sql.sql.model import BoundPassThrough, BoundSelect, BoundSet, BoundStatement, TableName
from hudi_sql.sql.names import hudi_tables, table_name
from hudi_sql.sql.parse import Parsed
from hudi_sql.sql.update import bind_delete, bind_update

__all__ = ["bind"]

_OWN_WORDS = ("hoodie.", "hudi_sql.")
_LATER = {"CALL", "DESCRIBE", "DESC", "SHOW", "ALTER", "REFRESH", "MSCK", "ANALYZE", "OPTIMIZE", "EXPLAIN"}
_EXPLAIN = re.compile(r"\s*explain\s+((analyze|verbose)\b\s*|\([^)]*\)\s*)*", re.IGNORECASE)


def bind(parsed: Parsed, context: BindContext) -> BoundStatement:
    """Resolve the names of a statement. Runs no query.

    Raises:
        BindError: A name or type does not fit.
        UnsupportedStatementError: The statement, or a clause of it, is not supported for Hudi tables.
    """
    tree, text = parsed.tree, parsed.text
    bound: BoundStatement | None = None
    if isinstance(tree, exp.Set):
        bound = _set(text, context)
    elif isinstance(tree, exp.Create) and is_hudi_create(tree):
        bound = bind_create(tree, text, context.dialect)
    elif isinstance(tree, exp.Create):
        refuse_other_formats(tree)
    elif isinstance(tree, exp.Drop) and (table := _dropped(tree)) is not None and _is_hudi(table, context):
        bound = bind_drop(tree, table, text)
    elif isinstance(tree, exp.Insert):
        bound = bind_insert(tree, text, context)
    elif isinstance(tree, exp.Update):
        bound = bind_update(tree, text, context)
    elif isinstance(tree, exp.Delete):
        bound = bind_delete(tree, text, context)
    elif isinstance(tree, exp.Merge):
        bound = bind_merge(tree, text, context)
    if bound is not None:
        return bound
    return _other(tree, text, context)


def _other(tree: exp.Expression, text: str, context: BindContext) -> BoundStatement:
    if isinstance(tree, exp.Command):
        word = tree.name.upper() or text.split(maxsplit=1)[0].upper()
        if context.dialect == "spark" or word == "CALL" or " using hudi" in f" {text.lower()}":
            raise UnsupportedStatementError(
                f"{word} is not supported", hint=_INSTEAD.get(word, _SUPPORTED), part=word
            )
        if word == "EXPLAIN":
            _refuse_plans_of_hudi(text, context)
        return BoundPassThrough(text=text)
    tables = hudi_tables(tree, context)
    if isinstance(tree, exp.Query | exp.Values):
        if tables:
            return BoundSelect(text=text, tables=tables, query=_spelled(tree, tables, context))
    elif tables:
        raise _unsupported(tree, text, tables)
    return BoundPassThrough(text=text, tree=tree, rendered=tree if context.dialect == "spark" else None)


_INSTEAD = {
    "TRUNCATE": "Write DELETE FROM the table.",
    "ALTER": "Change the schema with Spark; it is followed from then on.",
    "DESCRIBE": "session.table('name').schema has the columns.",
    "DESC": "session.table('name').schema has the columns.",
    "EXPLAIN": "result.write of the statement tells what it read and wrote.",
    "COPY": "Write session.sql('SELECT …').to_arrow_reader() with pyarrow.",
    "CREATE": "Take session.sql('SELECT …').to_arrow_table() and register it under a name.",
}
_SUPPORTED = "Supported are CREATE TABLE, DROP TABLE, INSERT, UPDATE, DELETE, MERGE, SELECT and SET."
_DML = exp.Insert | exp.Update | exp.Delete | exp.Merge


def _unsupported(tree: exp.Expression, text: str, tables: dict[str, TableName]) -> UnsupportedStatementError:
    word = text.split(maxsplit=1)[0].upper()
    table = str(next(iter(tables.values())))
    if isinstance(tree, _DML):
        return UnsupportedStatementError(
            f"{tree.key.upper()} of a table of the engine cannot read Hudi tables",
            hint="Take session.sql('SELECT …').to_arrow_table(), register it and read that.",
            table=table,
            part=word,
        )
    return UnsupportedStatementError(
        f"{word} is not supported for Hudi tables",
        hint=_INSTEAD.get(word, _SUPPORTED),
        table=table,
        part=word,
    )


def _refuse_plans_of_hudi(text: str, context: BindContext) -> None:
    """The engine alone cannot plan what it does not hold; its own statements it may explain."""
    statement = _EXPLAIN.sub("", text)
    try:
        tree = parse_one(statement, dialect=context.dialect)
    except SqlglotError:
        return
    tables = hudi_tables(tree, context) if isinstance(tree, exp.Expression) else {}
    if tables:
        raise _unsupported(exp.Command(this="EXPLAIN"), text, tables)


def _dropped(tree: exp.Drop) -> exp.Expression | None:
    """The table of DROP TABLE; None where it is another kind, or several."""
    tables = tree.args.get("tables") or ([tree.this] if tree.this is not None else [])
    return tables[0] if len(tables) == 1 and str(tree.args.get("kind")).upper() == "TABLE" else None


def _is_hudi(node: exp.Expression, context: BindContext) -> bool:
    return isinstance(node, exp.Table) and context.table_schema(table_name(node)) is not None


def _set(text: str, context: BindContext) -> BoundSet | None:
    body = text.strip().rstrip(";").strip()[3:].strip()
    key, _, value = body.partition("=")
    key, value = key.strip(), value.strip()
    if not key.startswith(_OWN_WORDS) and context.dialect != "spark":
        return None
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return BoundSet(text=text, key=key, value=value)


def _spelled(tree: exp.Expression, tables: dict[str, TableName], context: BindContext) -> exp.Expression:
    """Spell unquoted columns of Hudi tables as they are stored: an engine may fold them to another name."""
    stored: dict[str, str] = {}
    for name in tables.values():
        info = context.table_schema(name)
        schema: pa.Schema = info.schema if info is not None else pa.schema([])
        stored |= {column.lower(): column for column in schema.names if column.lower() != column}
    if not stored:
        return tree
    copy = tree.copy()
    for column in copy.find_all(exp.Column):
        identifier = column.this
        if isinstance(identifier, exp.Identifier) and not identifier.args.get("quoted"):
            spelled = stored.get(identifier.name.lower())
            if spelled is not None:
                identifier.replace(exp.Identifier(this=spelled, quoted=True))
    return copy
