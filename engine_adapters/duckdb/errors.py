"""What DuckDB raises, as errors of the protocol: one line about the cause, nothing about the text that was run."""

from __future__ import annotations

import re

import duckdb

from engine_adapters.lending import LentErrors
from engine_adapters.protocol import EngineError, EngineQueryError
from engine_adapters.streams import one_line, remembered

__all__ = ["translate"]

# The text that DuckDB points into is ours, not the user's; overloads of `+` fill a screen.
_TAIL = re.compile(r"\s*(\n\s*LINE \d+:|\n\s*Candidate functions:).*", re.DOTALL)
_SYSTEM_NAME = re.compile(r"\s*Did you mean \"(pg_|sqlite_|duckdb_|information_schema\.)[^\"]*\"\?")
_OF_THE_SESSION = (duckdb.ConnectionException, duckdb.TransactionException, duckdb.ResourceInUseException)


def translate(error: BaseException, lent: LentErrors, *, at_bind: bool) -> BaseException:
    """The error to raise for what DuckDB raised: what a lent relation raised first, else one of the protocol."""
    known = remembered(error, lent)
    if known is not None:
        return known
    text = str(error).strip() or type(error).__name__
    is_syntax = isinstance(error, duckdb.ParserException) and "syntax error" in text
    message = one_line(_SYSTEM_NAME.sub("", _TAIL.sub("", text)))
    ours: EngineError
    if isinstance(error, _OF_THE_SESSION):
        ours = EngineError(message)
    else:
        ours = EngineQueryError(message, at_bind=at_bind, is_syntax=is_syntax)
    ours.__cause__ = error
    return ours
