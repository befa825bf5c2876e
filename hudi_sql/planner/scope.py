"""The tables of one statement, each read at one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from engine_adapters.protocol import Engine, Relation
from hudi_sql.planner.model import LentTable, TableFacts
from hudi_sql.planner.relations import relation_of
from hudi_sql.sql.model import TableName
from hudi_sql.storage.properties.index_definitions import load_index_definitions
from hudi_sql.storage.properties.kinds import MergeMode
from hudi_sql.storage.read.snapshot import Snapshot
from hudi_sql.storage.table import HudiTable

__all__ = ["OpenRows", "StatementScope", "table_facts"]

_RECORD_INDEX = "record_index"


class OpenRows:
    """Rows of a query that end for the engine once closed, whoever still holds this object (a traceback may)."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader: pa.RecordBatchReader | None = reader

    def __iter__(self) -> OpenRows:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._reader is None:
            raise StopIteration
        try:
            return self._reader.read_next_batch()
        except StopIteration:
            self.close()
            raise

    def read_all(self) -> pa.Table:
        """Drain what is left."""
        reader, self._reader = self._reader, None
        assert reader is not None
        with reader:
            return reader.read_all()

    def close(self) -> None:
        """Let go of the rows."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


class StatementScope:
    """Opens the Hudi tables of a statement at its start, and holds what the engine is lent besides.

    Args:
        engine: Runs the queries.
        dialect: In which the statement was written.
        open_table: Finds a table by the name in the statement.
        objects: Python objects of the caller that the statement names, by name.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        dialect: str,
        open_table: Callable[[TableName], HudiTable],
        objects: Mapping[str, Any],
    ) -> None:
        self.engine = engine
        self.dialect = dialect
        self.objects = dict(objects)
        self._open_table = open_table
        self._tables: dict[str, HudiTable] = {}
        self._snapshots: dict[str, Snapshot] = {}
        self._rows: list[OpenRows] = []

    def query(self, tree: exp.Expression, relations: Mapping[str, Any]) -> OpenRows:
        """Run a query; `close` ends its rows if nobody has read them to the end."""
        rows = OpenRows(self.engine.query(self.engine.render(tree, self.dialect), relations=relations))
        self._rows.append(rows)
        return rows

    def close(self) -> None:
        """End what is still being read: an engine with open rows takes no other query."""
        while self._rows:
            self._rows.pop().close()

    def table(self, name: TableName) -> HudiTable:
        """The table of a name, opened once in a statement."""
        key = name.key.split("@")[0]
        if key not in self._tables:
            self._tables[key] = self._open_table(name)
        return self._tables[key]

    def snapshot(self, name: TableName) -> Snapshot:
        """The table as it was at the start of the statement, or at the time that the name gives."""
        if name.key not in self._snapshots:
            self._snapshots[name.key] = self.table(name).snapshot(name.as_of)
        return self._snapshots[name.key]

    def schemas(self, tables: Mapping[str, TableName]) -> dict[str, pa.Schema]:
        """Columns of tables, meta columns first, by key."""
        return {key: self.snapshot(name).schema for key, name in tables.items()}

    def relations(self, lent: Iterable[LentTable], tables: Mapping[str, TableName]) -> dict[str, Relation]:
        """What a query is to be lent: tables under reserved names, objects under their own."""
        found: dict[str, Any] = dict(self.objects)
        for table in lent:
            found[table.name] = relation_of(table, self.snapshot(tables[table.key]))
        return found


def table_facts(label: str, snapshot: Snapshot, dialect: str = "duckdb") -> TableFacts:
    """What planning must know of a table."""
    config = snapshot.config
    return TableFacts(
        label=label,
        schema=snapshot.table_schema,
        record_key_fields=tuple(config.record_key_fields),
        partition_fields=tuple(config.partition_fields),
        ordering_fields=tuple(config.ordering_fields),
        is_event_time=config.merge_mode is MergeMode.EVENT_TIME_ORDERING and bool(config.ordering_fields),
        has_global_index=_has_global_index(snapshot),
        has_positional_structs=dialect == "spark",
    )


def _has_global_index(snapshot: Snapshot) -> bool:
    """Whether a record index spans all partitions; one by partition has the same name and says so in its options."""
    if _RECORD_INDEX not in snapshot.config.metadata_partitions:
        return False
    definition = load_index_definitions(snapshot.store, snapshot.config).get(_RECORD_INDEX)
    return definition is None or definition.options.get("isPartitioned", "false").lower() != "true"
