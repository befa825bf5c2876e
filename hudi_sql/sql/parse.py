"""SQL text → statements of the session's dialect, each with its own text."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace

from sqlglot import exp, parse_one
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from hudi_sql.errors import SqlSyntaxError, UnsupportedStatementError

__all__ = ["Parsed", "split_and_parse"]

# sqlglot warns about each statement that it keeps as text; what becomes of those is decided in `bind`.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


_MISSING_END = re.compile(r"Missing (\S+) from (\d+):")
_TOKEN = re.compile(r"<Token token_type: [^,]*, text: (.*?), line: .*?>")
_KEYWORD = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>")
_CLAUSES = {"Paren": "An expression in parentheses", "Whens": "MERGE without WHEN", "EQ": "A comparison"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """One statement."""

    text: str
    tree: exp.Expression
    """An `exp.Command` where only the first word is known."""

    def with_tree(self, tree: exp.Expression) -> Parsed:
        """The same statement after a rewrite of its tree."""
        return replace(self, tree=tree)


def split_and_parse(text: str, dialect: str) -> list[Parsed]:
    """Split a text at its semicolons and parse each statement.

    Raises:
        SqlSyntaxError: A statement is none of the dialect; `.sql`, `.start` and `.end` show the spot.
        UnsupportedStatementError: The statement uses a clause that is known and not supported.
    """
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError as exc:
        found = _MISSING_END.match(str(exc.__cause__ or ""))
        end, line = (found.group(1), int(found.group(2))) if found else ("", 1)
        at = sum(len(part) + 1 for part in text.split("\n")[: line - 1])
        raise SqlSyntaxError(
            f"A quote or comment that begins on line {line} does not end: {end} is missing"
            if found
            else f"The text cannot be read as SQL from {text[:10]!r} on",
            hint="Check quotes and comments.",
            sql=text,
            start=at,
            end=len(text),
        ) from exc
    return [_parse(piece, dialect) for piece in _pieces(text, tokens)]


def _in_words(description: str) -> str:
    """What the parser says, without the names of its classes."""
    text = _TOKEN.sub(r"'\1'", description)
    found = _KEYWORD.match(text)
    if found:
        return f"{_CLAUSES.get(found.group(1), found.group(1).upper())} is not complete"
    return text.replace("Invalid expression / Unexpected token", "Unexpected text")


def _pieces(text: str, tokens: list[Token]) -> list[str]:
    """Texts between semicolons; comments and quotes are the tokenizer's business."""
    pieces: list[str] = []
    start: int | None = None
    end = 0
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            if start is not None:
                pieces.append(text[start : end + 1])
            start = None
            continue
        if start is None:
            start = token.start
        end = token.end
    if start is not None:
        pieces.append(text[start : max(end + 1, len(text.rstrip()))] if not pieces else text[start : end + 1])
    return pieces


def _parse(text: str, dialect: str) -> Parsed:
    if " ".join(text.split()[:3]).lower() == "merge with schema":
        raise UnsupportedStatementError(
            "MERGE WITH SCHEMA EVOLUTION is not supported",
            hint="Add the columns to the table first, then MERGE without these words.",
            part="WITH SCHEMA EVOLUTION",
        )
    try:
        tree = parse_one(text, read=dialect)
    except RecursionError as exc:
        raise SqlSyntaxError(
            "The statement is nested too deeply",
            hint="Register long lists of values as a table and join it.",
            sql=text,
            start=0,
            end=len(text),
        ) from exc
    except SqlglotError as exc:
        found = exc.errors[0] if isinstance(exc, ParseError) and exc.errors else {}
        line, column = int(found.get("line") or 1), int(found.get("col") or 1)
        at = sum(len(part) + 1 for part in text.split("\n")[: line - 1]) + column - 1
        spot = str(found.get("highlight") or text[max(0, at - 10) : at + 10])
        raise SqlSyntaxError(
            f"{_in_words(str(found.get('description') or exc))} at line {line}, column {column}, near {spot!r}",
            hint=f"Statements are read in the {dialect} dialect.",
            sql=text,
            start=max(0, at - len(spot)),
            end=at,
        ) from exc
    assert isinstance(tree, exp.Expression)
    return Parsed(text=text, tree=tree)
