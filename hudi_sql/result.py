"""What `Session.sql` gives back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from engine_adapters.protocol import EngineError, EngineQueryError
from hudi_sql.errors import BindError, EngineFailureError, MissingDependencyError, SqlSyntaxError

__all__ = ["DML_SCHEMA", "Result", "WriteResult", "engine_errors"]

DML_SCHEMA = pa.schema(
    [
        ("num_affected_rows", pa.int64()),
        ("num_inserted_rows", pa.int64()),
        ("num_updated_rows", pa.int64()),
        ("num_deleted_rows", pa.int64()),
        ("num_ignored_rows", pa.int64()),
        ("instant", pa.string()),
    ]
)
"""The one row of a statement that changes rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """What a statement changed and what that took."""

    num_inserted_rows: int = 0
    num_updated_rows: int = 0
    num_deleted_rows: int = 0
    num_ignored_rows: int = 0
    """Rows left alone: older than the stored ones, or dropped by the policy of the statement."""
    instant: str | None = None
    """Requested time of the commit; None when nothing changed and no commit was made."""
    num_files: int = 0
    num_bytes: int = 0
    partitions: tuple[str, ...] = ()
    index_used: str = "scan"
    """How rows were found: `scan` of pruned files."""
    phases_ms: Mapping[str, float] = field(default_factory=dict)
    lock_held_ms: float = 0.0
    num_attempts: int = 1
    """How often the statement was evaluated; more than once after conflicts with other writers."""
    notices: tuple[str, ...] = ()

    @property
    def num_affected_rows(self) -> int:
        """Rows inserted, updated or deleted."""
        return self.num_inserted_rows + self.num_updated_rows + self.num_deleted_rows

    def to_row(self) -> pa.Table:
        """One row of `DML_SCHEMA`."""
        values = [
            self.num_affected_rows,
            self.num_inserted_rows,
            self.num_updated_rows,
            self.num_deleted_rows,
            self.num_ignored_rows,
            self.instant,
        ]
        return pa.table([[value] for value in values], schema=DML_SCHEMA)


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn errors of an engine into errors of this package, with the engine's own as the cause.

    Raises:
        BindError: The engine refused a name, type or function of the statement.
        SqlSyntaxError: The engine cannot read the statement.
        EngineFailureError: The query failed while it ran, or the engine cannot run any now.
    """
    try:
        yield
    except EngineQueryError as exc:
        cause = exc.__cause__ or exc
        message = _without_reserved_names(str(exc))
        if exc.is_syntax:
            raise SqlSyntaxError(
                f"The engine cannot read the statement: {message}", hint="Check its spelling."
            ) from cause
        if exc.at_bind:
            raise BindError(
                f"The engine does not accept the statement: {message}",
                hint="Check names, types and functions against the engine's SQL.",
            ) from cause
        raise EngineFailureError(
            f"The engine failed to run the query: {message}",
            hint="Look at the data that the statement reads.",
        ) from cause
    except EngineError as exc:
        raise EngineFailureError(
            f"The engine cannot work now: {_without_reserved_names(str(exc))}",
            hint="Finish or roll back what is open on its connection, or attach another one.",
        ) from (exc.__cause__ or exc)


_OF_A_SOURCE = re.compile(r"\"?__hudi_sql_s_(\w+)\"?")
_IN_A_SOURCE = re.compile(r" when casting from source column \"?_?_hudi_sql_\w+\"?")
_RESERVED = re.compile(r"\"?_?_hudi_sql_\w+\"?")


def _without_reserved_names(message: str) -> str:
    """An engine's words without names that the user did not write."""
    message = _IN_A_SOURCE.sub("", _OF_A_SOURCE.sub(r"\1", message))
    return _RESERVED.sub("a column of the rewritten query", message)


class Result:
    """Rows of the last statement, read once as a stream or as often as wanted once held.

    Example:
        >>> Result.of_table(pa.table({"a": [1, 2]})).fetchall()
        [(1,), (2,)]
    """

    def __init__(
        self, reader: pa.RecordBatchReader | None, table: pa.Table | None, write: WriteResult | None
    ) -> None:
        self._reader = reader
        self._table = table
        self._write = write
        self._rows: Iterator[tuple[Any, ...]] | None = None
        source = reader if reader is not None else table
        self._schema: pa.Schema = pa.schema([]) if source is None else source.schema

    @classmethod
    def of_table(cls, table: pa.Table, write: WriteResult | None = None) -> Result:
        """Give rows that are there already."""
        return cls(None, table, write)

    @classmethod
    def of_reader(cls, reader: pa.RecordBatchReader) -> Result:
        """Give rows as the engine computes them."""
        return cls(reader, None, None)

    @property
    def write(self) -> WriteResult | None:
        """What the statement changed; None for a query."""
        return self._write

    @property
    def schema(self) -> pa.Schema:
        """Columns and their types."""
        return self._schema

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._schema.names)

    def to_arrow_table(self) -> pa.Table:
        """Read all rows into memory; may be called again."""
        if self._table is None:
            reader, self._reader = self._reader, None
            if reader is None:
                raise EngineFailureError(
                    "The rows of this result were read as a stream already", hint="Run the statement again."
                )
            with engine_errors():
                self._table = reader.read_all()
        return self._table

    def to_arrow_reader(self) -> pa.RecordBatchReader:
        """Stream the rows. The stream of a query can be taken once, and ends when another statement runs."""
        if self._table is not None:
            return self._table.to_reader()
        reader, self._reader = self._reader, None
        if reader is None:
            raise EngineFailureError(
                "The rows of this result were read as a stream already", hint="Run the statement again."
            )
        return pa.RecordBatchReader.from_batches(reader.schema, _translated(reader))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow_reader().__arrow_c_stream__(requested_schema)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that `fetchone` has not given yet, as tuples of Python values."""
        rows = self._iterate()
        return list(rows)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Next row, or None after the last one."""
        return next(self._iterate(), None)

    def df(self) -> Any:
        """Rows as a pandas data frame."""
        return _optional(lambda: self.to_arrow_table().to_pandas(), "pandas")

    def pl(self) -> Any:
        """Rows as a polars data frame."""

        def convert() -> Any:
            import polars  # noqa: ICN001, PLC0415  # an optional package

            return polars.from_arrow(self.to_arrow_table())

        return _optional(convert, "polars")

    def show(self, max_rows: int = 20) -> None:
        """Print the first rows as a table."""
        print(self.format(max_rows))  # noqa: T201  # printing is what it is for

    def format(self, max_rows: int = 20) -> str:
        """Lay the first rows out as text."""
        return _layout(self.to_arrow_table(), max_rows)

    def hold(self) -> None:
        """Read what is left into memory, so that the engine is free for another statement."""
        if self._reader is not None:
            self.to_arrow_table()

    def __repr__(self) -> str:
        state = f"{self._table.num_rows} rows" if self._table is not None else "not read yet"
        return f"<Result {', '.join(self.columns)}: {state}>"

    def _iterate(self) -> Iterator[tuple[Any, ...]]:
        if self._rows is None:
            table = self.to_arrow_table()
            columns = [column.to_pylist() for column in table.columns]
            self._rows = iter(zip(*columns, strict=True)) if columns else iter(())
        return self._rows


def _translated(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    with engine_errors():
        yield from reader


def _optional(convert: Callable[[], Any], package: str) -> Any:
    try:
        return convert()
    except ImportError as exc:
        raise MissingDependencyError(
            f"{package} is not installed", hint=f"Install hudi_sql[{package}].", package=package
        ) from exc


def _layout(table: pa.Table, max_rows: int) -> str:
    head = table.slice(0, max_rows)
    columns = [
        [name, *("NULL" if value is None else str(value) for value in column.to_pylist())]
        for name, column in zip(table.column_names, head.columns, strict=True)
    ]
    if not columns:
        return "(no columns)"
    widths = [max(map(len, column)) for column in columns]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]
    lines.insert(1, "-+-".join("-" * width for width in widths))
    rest = table.num_rows - head.num_rows
    lines.append(f"({table.num_rows} rows{f', {rest} not shown' if rest > 0 else ''})")
    return "\n".join(lines)
