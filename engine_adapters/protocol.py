"""All that the core knows of a query engine.

An adapter runs SELECT queries over the engine's own relations and over relations that the caller lends for one
query, Arrow in and Arrow out. It knows nothing of Hudi.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

__all__ = ["Capabilities", "Engine", "EngineError", "EngineQueryError", "EngineSettings", "Relation"]


class EngineError(Exception):
    """An engine could not do what it was asked; the engine's own error is the cause.

    Raised itself where the session is to blame and not the query: it is closed, in use, or its transaction failed.
    """


class EngineQueryError(EngineError):
    """A query was refused (`at_bind` true: names, types, syntax) or failed while it ran.

    The message is one line of the engine's words, without the text of the query.
    """

    def __init__(self, message: str, *, at_bind: bool, is_syntax: bool = False) -> None:
        super().__init__(message)
        self.at_bind = at_bind
        self.is_syntax = is_syntax

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_query_error, (str(self), self.at_bind, self.is_syntax)


def _rebuild_query_error(message: str, at_bind: bool, is_syntax: bool) -> EngineQueryError:
    return EngineQueryError(message, at_bind=at_bind, is_syntax=is_syntax)


@runtime_checkable
class Relation(Protocol):
    """A lazy table lent to the engine. It may be scanned any number of times, from any thread."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    def scan(self, columns: Sequence[str] | None, predicate: pc.Expression | None) -> pa.RecordBatchReader:
        """Stream some columns of the rows for which `predicate` is true, exactly: the engine does not filter again.

        `columns` None means all; it may be empty, batches then carry only a length.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the planner must know about an engine."""

    has_python_variables: bool
    """Whether unknown names may be the caller's Python variables."""
    is_case_sensitive: bool
    """Whether unquoted identifiers must be rendered exactly as the relation spells them."""
    has_transactions: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What an engine that we open ourselves may use; None leaves it to the engine."""

    threads: int | None = None
    memory_limit_bytes: int | None = None
    temp_folder: str | None = None


class Engine(Protocol):
    """One engine session: owned (`connect`) or the user's (`attach`)."""

    @property
    def name(self) -> str:
        """`duckdb` or `datafusion`."""

    @property
    def sql_dialect(self) -> str:
        """Name of the sqlglot dialect in which queries for this engine are rendered."""

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""

    def render(self, tree: exp.Expression, source_dialect: str) -> str:
        """Write a query in this engine's SQL, keeping the meaning it has in the dialect it was written in.

        `exp.TryCast` of the spark dialect gives NULL for what cannot be cast, `exp.Cast` fails.
        Raises `EngineQueryError` (at bind) for functions that would silently mean something else here.
        """

    def has_relation(self, parts: Sequence[str]) -> bool:
        """Whether the engine itself knows a table or view of this (possibly qualified) name."""

    def describe(self, sql: str, *, relations: Mapping[str, Relation], parameters: Any = None) -> pa.Schema:
        """Bind a SELECT without running it and give its columns. Raises `EngineQueryError`."""

    def query(
        self, sql: str, *, relations: Mapping[str, Relation], parameters: Any = None
    ) -> pa.RecordBatchReader:
        """Run a SELECT and stream its rows.

        `relations` are visible under their names (reserved by the caller) for this query alone and are gone,
        on success and on failure, when the reader is exhausted, closed or dropped. One result may be open at a
        time: drain or close it before the next query. Raises `EngineQueryError`, from the reader too; what a
        lent relation raised comes out as it was raised.
        """

    def execute(
        self, sql: str, *, relations: Mapping[str, Relation], parameters: Any = None
    ) -> pa.RecordBatchReader:
        """Run any statement of the engine itself (the user's own tables and settings), rows if it has any."""

    def register(self, name: str, data: Any) -> None:
        """Keep a user's object (Arrow, pandas, polars, dataset, reader) under a name until unregistered."""

    def unregister(self, name: str) -> None:
        """Forget a registered object."""

    def close(self) -> None:
        """Release what this adapter opened; the user's own connection stays open."""
