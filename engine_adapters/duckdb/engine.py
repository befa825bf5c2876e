"""DuckDB: an own in-memory database, or the user's connection.

Facts of DuckDB 2.0 that shape this: a connection with an open result refuses every other call; a query sees registered
objects, temp objects, variables and uncommitted rows only on the very connection they belong to; a Python dataset that
is scanned must apply pushed filters itself. So everything runs on the one connection, and what we lend to a query is
registered under reserved names and gone afterwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from engine_adapters.duckdb.errors import translate
from engine_adapters.duckdb.spark_rules import render
from engine_adapters.lending import LentDataset, LentErrors
from engine_adapters.protocol import Capabilities, EngineSettings, Relation
from engine_adapters.streams import guarded_reader

__all__ = ["DuckDBEngine"]

_BATCH_ROWS = 122_880  # one row group of DuckDB's own
_RELATIONS = """
    SELECT lower(database_name), lower(schema_name), database_name IN ('temp', 'system')
        OR (database_name = current_database() AND list_contains(current_schemas(true), schema_name))
    FROM (
        SELECT database_name, schema_name, table_name AS name FROM duckdb_tables()
        UNION ALL SELECT database_name, schema_name, view_name FROM duckdb_views()
    )
    WHERE lower(name) = $1
"""
"""Where tables, views and registered objects of a name are, and whether they are found without saying where."""


class DuckDBEngine:
    """The engine protocol over one DuckDB connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, is_owned: bool) -> None:
        self._connection = connection
        self._is_owned = is_owned
        self._registered: set[str] = set()

    @classmethod
    def connect(cls, settings: EngineSettings | None = None) -> DuckDBEngine:
        """Open an in-memory database of our own."""
        options: dict[str, Any] = {}
        if settings is not None:
            if settings.threads is not None:
                options["threads"] = settings.threads
            if settings.memory_limit_bytes is not None:
                options["memory_limit"] = f"{settings.memory_limit_bytes}B"
            if settings.temp_folder is not None:
                options["temp_directory"] = settings.temp_folder
        connection = duckdb.connect(":memory:", config=options)
        # Names that are Python variables are resolved by the caller, whose frame this is not.
        connection.execute("SET python_enable_replacements = false")
        # One meaning of texts without an offset, wherever the process runs.
        connection.execute("SET TimeZone = 'UTC'")
        return cls(connection, is_owned=True)

    @classmethod
    def attach(cls, connection: duckdb.DuckDBPyConnection) -> DuckDBEngine:
        """Work on the user's connection: all it holds can be read, and none of it is changed."""
        return cls(connection, is_owned=False)

    @property
    def name(self) -> str:
        """`duckdb`."""
        return "duckdb"

    @property
    def sql_dialect(self) -> str:
        """Name of the sqlglot dialect of this engine."""
        return "duckdb"

    @property
    def capabilities(self) -> Capabilities:
        """Names match without regard to case; Python variables can be sources; there are transactions."""
        return Capabilities(has_python_variables=True, is_case_sensitive=False, has_transactions=True)

    def render(self, tree: exp.Expression, source_dialect: str) -> str:
        """Write a query in DuckDB's SQL."""
        return render(tree, source_dialect)

    def has_relation(self, parts: Sequence[str]) -> bool:
        """Whether DuckDB has a table, view or registered object of this name."""
        if not 1 <= len(parts) <= 3:
            return False
        *qualifier, name = (part.lower() for part in parts)
        # A query that fails would end the user's transaction, so the catalogue is asked and the name not tried.
        try:
            found = self._connection.sql(_RELATIONS, params=[name]).fetchall()
        except duckdb.Error:
            # Whatever is wrong with the connection, the statement itself will tell.
            return True
        if not qualifier:
            return any(is_visible for _, _, is_visible in found)
        if len(qualifier) == 2:
            return tuple(qualifier) in {(database, schema) for database, schema, _ in found}
        return any(qualifier[0] in (database, schema) for database, schema, _ in found)

    def describe(self, sql: str, *, relations: Mapping[str, Relation], parameters: Any = None) -> pa.Schema:
        """Bind a query: a lazy relation knows its columns and reads nothing."""
        lent = LentErrors()
        self._lend(relations, lent)
        try:
            relation = self._connection.sql(sql, **_parameters(parameters))
            # LIMIT 0 is answered without a scan, and its Arrow schema is the one that rows will have.
            return relation.limit(0).to_arrow_table().schema
        except Exception as error:
            raise translate(error, lent, at_bind=True) from error
        finally:
            self._take_back(relations)

    def query(
        self, sql: str, *, relations: Mapping[str, Relation], parameters: Any = None
    ) -> pa.RecordBatchReader:
        """Run a query and stream its rows."""
        lent = LentErrors()
        self._lend(relations, lent)
        try:
            relation = self._connection.sql(sql, **_parameters(parameters))
        except Exception as error:
            self._take_back(relations)
            raise translate(error, lent, at_bind=True) from error
        if relation is None:
            self._take_back(relations)
            return pa.RecordBatchReader.from_batches(pa.schema([]), iter(()))
        try:
            reader = relation.to_arrow_reader(_BATCH_ROWS)
        except Exception as error:
            self._take_back(relations)
            raise translate(error, lent, at_bind=False) from error

        def end() -> None:
            reader.close()
            self._take_back(relations)

        return guarded_reader(reader.schema, _batches(reader), lent, on_end=end, translate=translate)

    def execute(
        self, sql: str, *, relations: Mapping[str, Relation], parameters: Any = None
    ) -> pa.RecordBatchReader:
        """Run any statement of DuckDB's own; a statement without rows gives none."""
        return self.query(sql, relations=relations, parameters=parameters)

    def register(self, name: str, data: Any) -> None:
        """Keep a user's object under a name."""
        try:
            self._connection.register(name, data)
        except Exception as error:
            raise translate(error, LentErrors(), at_bind=True) from error
        self._registered.add(name)

    def unregister(self, name: str) -> None:
        """Forget a registered object."""
        try:
            self._connection.unregister(name)
        except Exception as error:
            raise translate(error, LentErrors(), at_bind=True) from error
        self._registered.discard(name)

    def close(self) -> None:
        """Close our own connection, or take back what was registered on the user's."""
        if self._is_owned:
            self._connection.close()
            return
        self._take_back(tuple(self._registered))
        self._registered.clear()

    def _lend(self, relations: Mapping[str, Relation], lent: LentErrors) -> None:
        done = []
        try:
            for name, relation in relations.items():
                is_lazy = isinstance(relation, Relation)
                self._connection.register(name, LentDataset(relation, lent) if is_lazy else relation)
                done.append(name)
        except Exception as error:
            self._take_back(done)
            raise translate(error, lent, at_bind=True) from error

    def _take_back(self, names: Sequence[str] | Mapping[str, Relation]) -> None:
        # A connection that the user closed holds nothing any more; a transaction that failed takes it all back itself.
        with contextlib.suppress(duckdb.ConnectionException, duckdb.TransactionException):
            for name in names:
                self._connection.unregister(name)


def _parameters(parameters: Any) -> dict[str, Any]:
    return {} if parameters is None else {"params": parameters}


def _batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    yield from reader
