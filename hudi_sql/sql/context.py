"""What binding asks of its surroundings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from hudi_sql.sql.model import TableName

__all__ = ["BindContext", "TableInfo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInfo:
    """What binding must know of a Hudi table."""

    schema: pa.Schema
    """Without meta columns."""
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...]
    ordering_fields: tuple[str, ...]


class BindContext(Protocol):
    """Names and types that a statement may refer to. Asking runs no query."""

    @property
    def dialect(self) -> str:
        """In which the statement is written."""

    def table_schema(self, name: TableName) -> TableInfo | None:
        """A Hudi table; None for names that are not Hudi tables."""

    def describe(self, query: exp.Expression) -> pa.Schema:
        """Columns of a query, over Hudi tables or the engine's own."""
