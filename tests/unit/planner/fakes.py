"""A snapshot and keys over tables in memory, and short forms for bound statements."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from hudi_sql.planner.changes import Outcome, decide_changes
from hudi_sql.planner.lending import Lender
from hudi_sql.planner.model import DmlPlan, TableFacts
from hudi_sql.planner.relations import relation_of
from hudi_sql.sql.model import (
    Assignment,
    BoundMerge,
    BoundStatement,
    ClauseAction,
    ClauseKind,
    MergeClause,
    TableName,
)
from hudi_sql.storage.model.files import FileId, FileSlice, PartitionPath
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.read.positions import POSITION_COLUMN, SLICE_COLUMN

META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
ITEM = pa.schema([("id", pa.int32()), ("name", pa.string()), ("price", pa.float64()), ("ts", pa.int64())])
TARGET = TableName(parts=("item",))


def rows(schema: pa.Schema, *values: tuple[Any, ...]) -> pa.Table:
    columns = list(zip(*values, strict=True)) or [[] for _ in schema]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


class FakeSnapshot:
    """Each given table is a file slice of its own; `keys` are the key columns, joined by commas."""

    def __init__(self, *pieces: tuple[str, pa.Table], keys: Sequence[str] = ("id",)) -> None:
        self.table_schema = pieces[0][1].schema
        self.schema = pa.schema([*((name, pa.string()) for name in META), *self.table_schema])
        self._keys = keys
        self.config = SimpleNamespace(partition_fields=())
        self._slices = tuple(
            FileSlice(
                partition=PartitionPath(path),
                file_id=FileId(f"f{n}"),
                instant=InstantTime("1"),
                base_file=None,
            )
            for n, (path, _) in enumerate(pieces)
        )
        self._tables = {piece: table for piece, (_, table) in zip(self._slices, pieces, strict=True)}

    def slices(self, pruning: object = None) -> tuple[FileSlice, ...]:
        return self._slices

    def key_texts(self, table: pa.Table) -> pa.Array:
        return key_texts(table, self._keys)

    def scan_positions(
        self, columns: Sequence[str], *, slices: Sequence[FileSlice], predicate: pc.Expression | None = None
    ) -> pa.RecordBatchReader:
        parts = []
        for number, piece in enumerate(slices):
            table = self._tables[piece]
            size = table.num_rows
            meta = dict.fromkeys(META, pa.array(["x"] * size, pa.string()))
            meta["_hoodie_record_key"] = self.key_texts(table)
            meta["_hoodie_partition_path"] = pa.array([piece.partition] * size, pa.string())
            places = {
                SLICE_COLUMN: pa.array(np.full(size, number), pa.int32()),
                POSITION_COLUMN: pa.array(np.arange(size), pa.int64()),
            }
            parts.append(
                pa.table({**meta, **dict(zip(table.column_names, table.columns, strict=True)), **places})
            )
        whole = pa.concat_tables(parts) if parts else self._empty()
        if predicate is not None:
            whole = whole.filter(predicate)
        return whole.select([*columns, SLICE_COLUMN, POSITION_COLUMN]).to_reader()

    def scan(
        self,
        columns: Sequence[str] | None,
        predicate: pc.Expression | None,
        *,
        slices: Sequence[FileSlice] | None = None,
    ) -> pa.RecordBatchReader:
        names = list(self.schema.names if columns is None else columns)
        found = self.scan_positions(self.schema.names, slices=slices or self._slices).read_all()
        return (found if predicate is None else found.filter(predicate)).select(names).to_reader()

    def _empty(self) -> pa.Table:
        places = [(SLICE_COLUMN, pa.int32()), (POSITION_COLUMN, pa.int64())]
        return pa.schema([*self.schema, *places]).empty_table()


class FakeKeys:
    """Keys of a fake snapshot."""

    def __init__(self, snapshot: FakeSnapshot, facts: TableFacts) -> None:
        self._snapshot = snapshot
        self._facts = facts
        self.num_lookups = 0

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        return self._snapshot.slices()

    def record_keys(self, table: pa.Table) -> pa.Array:
        return self._snapshot.key_texts(table)

    def partition_paths(self, table: pa.Table) -> pa.Array:
        fields = self._facts.partition_fields
        return table[fields[0]].combine_chunks() if fields else pa.array([""] * table.num_rows, pa.string())

    def locate(
        self,
        keys: pa.Array,
        partitions: pa.Array,
        *,
        extra: Sequence[str] = (),
        ranges: pa.Table | None = None,
    ) -> pa.Table:
        self.num_lookups += 1
        names = ["_hoodie_record_key", "_hoodie_partition_path", *extra]
        found = self._snapshot.scan_positions(names, slices=self.slices).read_all()
        found = found.filter(pc.is_in(found["_hoodie_record_key"], value_set=keys))
        if not self._facts.has_global_index:
            found = found.filter(pc.is_in(found["_hoodie_partition_path"], value_set=partitions))
        return found.rename_columns(["key", "partition", *extra, "slice", "position"])

    def keys_at(self, places: Sequence[tuple[FileSlice, int]]) -> list[str]:
        return [
            self._snapshot.key_texts(self._snapshot._tables[piece])[position].as_py()
            for piece, position in places
        ]


def key_texts(table: pa.Table, names: Sequence[str]) -> pa.Array:
    parts = [pc.fill_null(table[name].cast(pa.string()), "__null__") for name in names]
    joined = pc.binary_join_element_wise(*parts, ",") if len(parts) > 1 else parts[0]
    return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def item() -> FakeSnapshot:
    """Table `item` of the field cases, in two files."""
    return FakeSnapshot(
        ("", rows(ITEM, (1, "a", 1.0, 10), (2, "b", 2.0, 10))), ("", rows(ITEM, (3, "c", 3.0, 10)))
    )


def facts(schema: pa.Schema = ITEM, **changed: Any) -> TableFacts:
    values: dict[str, Any] = {
        "label": "item",
        "schema": schema,
        "record_key_fields": ("id",),
        "partition_fields": (),
        "ordering_fields": ("ts",),
        "is_event_time": True,
        "has_global_index": False,
    }
    return TableFacts(**{**values, **changed})


def parse(text: str) -> exp.Expression:
    return sqlglot.parse_one(text, read="duckdb")


def column(name: str, table: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=name, quoted=True), table=exp.to_identifier(table))


def star(schema: pa.Schema = ITEM) -> tuple[Assignment, ...]:
    return tuple(Assignment(column=name, value=column(name, "s")) for name in schema.names)


def sets(**values: str) -> tuple[Assignment, ...]:
    return tuple(Assignment(column=name, value=parse(text)) for name, text in values.items())


def clause(
    action: ClauseAction,
    condition: str | None = None,
    assignments: tuple[Assignment, ...] = (),
    kind: ClauseKind = ClauseKind.MATCHED,
) -> MergeClause:
    return MergeClause(
        kind=kind,
        action=action,
        condition=None if condition is None else parse(condition),
        assignments=assignments,
    )


def merge(
    source: str, on: str, *clauses: MergeClause, schema: pa.Schema = ITEM, returning: str = ""
) -> BoundMerge:
    return BoundMerge(
        text="",
        tables={"item": TARGET},
        target=TARGET,
        alias="t",
        source=parse(source).subquery(),
        source_alias="s",
        source_schema=schema,
        on=parse(on),
        clauses=clauses,
        returning=tuple(parse(f"select {returning}").expressions) if returning else (),
    )


def values(*found: tuple[Any, ...]) -> str:
    """A query of rows of `item`."""
    lines = [
        f"({row[0]}, {_text(row[1])}, {_number(row[2], 'double')}, {_number(row[3], 'bigint')})"
        for row in found
    ]
    return (
        f"select cast(id as int) id, name, price, ts from (values {', '.join(lines)}) v(id, name, price, ts)"
    )


def _text(value: str | None) -> str:
    return "cast(null as varchar)" if value is None else f"'{value}'"


def _number(value: Any, kind: str) -> str:
    return f"cast({'null' if value is None else value} as {kind})"


def run(
    engine: Any,
    planner: Any,
    bound: BoundStatement,
    snapshot: FakeSnapshot,
    table: TableFacts,
    keys: FakeKeys | None = None,
) -> Outcome:
    lender = Lender(bound.tables, {"item": snapshot.schema}, first=1)
    plan: DmlPlan = planner(bound, table, snapshot, lender)
    sql = engine.render(plan.query, "duckdb")
    relations = {lent.name: relation_of(lent, snapshot) for lent in plan.lent}
    with engine.query(sql, relations=relations) as reader:
        found = reader.read_all()
    return decide_changes(found, plan, table, keys or FakeKeys(snapshot, table))


def after(outcome: Outcome, snapshot: FakeSnapshot) -> list[tuple[Any, ...]]:
    """Rows of the table after the changes, sorted by key."""
    names = snapshot.table_schema.names
    found: list[dict[str, Any]] = []
    changed = {} if outcome.changes is None else {item.slice: item for item in outcome.changes.slices}
    for piece in snapshot.slices():
        stored = snapshot._tables[piece].to_pylist()
        change = changed.get(piece)
        if change is not None:
            for position, new in zip(change.updated.tolist(), change.values.to_pylist(), strict=True):
                stored[position] |= new
            stored = [
                row for position, row in enumerate(stored) if position not in set(change.deleted.tolist())
            ]
        found += stored
    if outcome.changes is not None and outcome.changes.inserts is not None:
        found += outcome.changes.inserts.read_all().to_pylist()
    return sorted((tuple(row[name] for name in names) for row in found), key=repr)
