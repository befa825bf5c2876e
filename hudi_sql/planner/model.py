"""Plans: what an engine has to answer, and what its rows mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from hudi_sql.sql.model import ClauseAction
from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.model.files import FileSlice, PartitionPath
from hudi_sql.storage.read.predicate import Predicate

__all__ = [
    "CLAUSE_COLUMN",
    "ClauseSpec",
    "DmlPlan",
    "LentTable",
    "RowLayout",
    "TableFacts",
    "lent_name",
    "ranking_name",
    "returned_name",
    "stored_name",
    "value_name",
]

CLAUSE_COLUMN = "__hudi_sql_clause"
"""int32: index, in written order, of the clause that acts on the row."""


def lent_name(index: int) -> str:
    """Reserved name under which a Hudi table is lent to one query."""
    return f"__hudi_sql_t{index}"


def value_name(index: int) -> str:
    """Column of change rows: what the clause puts into the table's column."""
    return f"__hudi_sql_v{index}"


def stored_name(index: int) -> str:
    """Column of change rows: what the table's column holds now."""
    return f"__hudi_sql_o{index}"


def ranking_name(index: int) -> str:
    """Column of change rows: ordering value by which a source row wins over others for the same target row."""
    return f"__hudi_sql_r{index}"


def returned_name(index: int) -> str:
    """Column of change rows that only RETURNING needs."""
    return f"__hudi_sql_x{index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What planning must know of the target."""

    label: str
    """How messages call the table."""
    schema: pa.Schema
    """Without meta columns."""
    record_key_fields: tuple[str, ...]
    """Empty for a keyless table."""
    partition_fields: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    is_event_time: bool
    """Whether a lower ordering value loses against the stored row."""
    has_global_index: bool
    """Whether a key is unique in the whole table, not only in its partition."""
    has_positional_structs: bool = False
    """Whether the statement's structs take the stored names in their order, as Spark does it."""

    @property
    def identity_fields(self) -> tuple[str, ...]:
        """Columns whose change moves a row: keys and partitions."""
        return tuple(dict.fromkeys((*self.record_key_fields, *self.partition_fields)))

    @property
    def identity_columns(self) -> frozenset[str]:
        """Top-level columns of the identity fields, which may be nested."""
        return frozenset(name.split(".")[0] for name in self.identity_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class LentTable:
    """A Hudi table that a query sees under a reserved name."""

    name: str
    key: str
    """`TableName.key` of the table."""
    predicate: Predicate | None = None
    """Rows for which this is not true are not needed; files without others are left out."""
    columns: tuple[str, ...] | None = None
    """Columns that the query needs; None means all."""
    slices: tuple[FileSlice, ...] | None = None
    """The target of a change: rows come with slice and position, slices counted in this tuple."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseSpec:
    """One clause, as far as its rows need it."""

    action: ClauseAction
    assigned: frozenset[str] = frozenset()
    """Top-level columns that get a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLayout:
    """What the columns of change rows are, beside slice, position and clause."""

    clauses: tuple[ClauseSpec, ...]
    values: tuple[str, ...] = ()
    """Table columns with a new value, in the order of `value_name`."""
    stored: tuple[str, ...] = ()
    """Table columns whose stored value is given, in the order of `stored_name`."""
    has_ranking: bool = False
    """Whether there is an ordering value of the source row for each ordering field."""
    is_whole_row: bool = False
    """Whether `values` are all columns of the table, for updated and deleted rows too."""
    returned: tuple[str, ...] = ()
    """Names of further columns, in the order of `returned_name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DmlPlan:
    """One statement that changes rows: the query to run and how to read its answer."""

    operation: OperationType
    query: exp.Expression
    lent: tuple[LentTable, ...]
    layout: RowLayout
    slices: tuple[FileSlice, ...] = ()
    read_partitions: tuple[PartitionPath, ...] | None = None
    keys_checked_by_on: bool = False
    """Whether a row that matched nothing has, by the condition itself, a key that the table does not hold."""
    returning: tuple[exp.Expression, ...] = ()
    alias: str = ""
    """Name of the target inside `returning`."""
    returned_from: Mapping[str, str] = field(default_factory=dict)
