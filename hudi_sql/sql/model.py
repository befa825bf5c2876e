"""Bound statements: names resolved, types known, no engine and no file touched.

Expressions stay sqlglot trees in which
- a column of the target is `exp.Column(this=<stored spelling>, table=<target alias>)`,
- a column of the source is `exp.Column(this=<source's spelling>, table=<source alias>)`,
- a Hudi table inside a query is still the `exp.Table` that the user wrote; `tables` of the statement says which
  table it is (keyed by `id` of the node is not safe over copies: by its dotted name in lower case, unquoted).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa
from sqlglot import exp

__all__ = [
    "Assignment",
    "BoundCreateTable",
    "BoundDelete",
    "BoundDropTable",
    "BoundInsert",
    "BoundMerge",
    "BoundPassThrough",
    "BoundSelect",
    "BoundSet",
    "BoundStatement",
    "BoundUpdate",
    "ClauseAction",
    "ClauseKind",
    "MergeClause",
    "StoreAssignment",
    "TableName",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    """A table as the user names it: a dotted name, or a location (`hudi.'uri'`, `hudi_table('uri')`)."""

    parts: tuple[str, ...] = ()
    location: str | None = None
    as_of: str | None = None
    """Text of a `TIMESTAMP AS OF` literal."""

    @property
    def key(self) -> str:
        """How the statement's `tables` mapping names it."""
        base = self.location if self.location is not None else ".".join(self.parts).lower()
        return f"{base}@{self.as_of}" if self.as_of is not None else base

    def __str__(self) -> str:
        return self.location if self.location is not None else ".".join(self.parts)


class StoreAssignment(Enum):
    """Which casts may stand between a value and the column that stores it."""

    ENGINE = "engine"
    """The engine's own cast (duckdb and datafusion dialects)."""
    SPARK_ANSI = "spark-ansi"
    """Spark's INSERT: text to number, date, boolean and the like is refused before anything runs."""
    SPARK_CAST = "spark-cast"
    """Spark's UPDATE and MERGE: an ANSI CAST at run time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """`column = value`. A column of a struct may be assigned by path."""

    column: str
    """Stored spelling of the top-level column."""
    path: tuple[str, ...] = ()
    """Fields below the column, when only part of a struct is assigned."""
    value: exp.Expression


class ClauseKind(Enum):
    """When a MERGE clause applies."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class ClauseAction(Enum):
    """What a MERGE clause does."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """One WHEN clause. Stars are already expanded to assignments (INSERT: columns not named are absent → NULL)."""

    kind: ClauseKind
    action: ClauseAction
    condition: exp.Expression | None = None
    assignments: tuple[Assignment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundStatement:
    """What all statements have."""

    text: str
    """As the user wrote it."""
    tables: Mapping[str, TableName] = field(default_factory=dict)
    """Hudi tables that the statement reads (the target of DML included), by `TableName.key`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSelect(BoundStatement):
    """A query over at least one Hudi table."""

    query: exp.Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPassThrough(BoundStatement):
    """A statement that touches no Hudi table: it goes to the engine as it is.

    `rendered` is its text in the engine's dialect when the session's dialect is another one, else `text`.
    """

    tree: exp.Expression | None = None
    """The statement with values in the places of its parameters."""
    rendered: exp.Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSet(BoundStatement):
    """`SET hoodie.x = y`, a setting of this session."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCreateTable(BoundStatement):
    """CREATE TABLE … USING hudi, or the registration of an existing location when `schema` is None."""

    name: TableName
    schema: pa.Schema | None
    """Declared columns in storage types, partition columns last. Field metadata may hold `comment`."""
    partition_fields: tuple[str, ...]
    location: str | None
    properties: Mapping[str, str]
    """TBLPROPERTIES / OPTIONS as written."""
    if_not_exists: bool
    comment: str | None = None
    notices: tuple[str, ...] = ()
    """What the user should hear: TINYINT stored as INT and the like."""
    like: TableName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDropTable(BoundStatement):
    """DROP TABLE of a Hudi table."""

    name: TableName
    if_exists: bool
    purge: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInsert(BoundStatement):
    """INSERT INTO: the query's columns go to `columns` by position; other columns are NULL."""

    target: TableName
    columns: tuple[str, ...]
    query: exp.Expression
    static_partition: Mapping[str, exp.Expression] = field(default_factory=dict)
    """`PARTITION (p = 'v')`: values for columns that the query does not give."""
    store_assignment: StoreAssignment = StoreAssignment.ENGINE
    on_conflict: str | None = None
    """`ignore` or `replace` where the statement says so (OR IGNORE, ON CONFLICT DO NOTHING, OR REPLACE)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundUpdate(BoundStatement):
    """UPDATE … SET … [FROM …] [WHERE …]."""

    target: TableName
    alias: str
    assignments: tuple[Assignment, ...]
    where: exp.Expression | None = None
    from_: exp.Expression | None = None
    """FROM items (joins included) as a tree that can stand after FROM."""
    with_: exp.Expression | None = None
    returning: tuple[exp.Expression, ...] = ()
    store_assignment: StoreAssignment = StoreAssignment.ENGINE


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundDelete(BoundStatement):
    """DELETE FROM … [USING …] [WHERE …]."""

    target: TableName
    alias: str
    where: exp.Expression | None = None
    using: exp.Expression | None = None
    with_: exp.Expression | None = None
    returning: tuple[exp.Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundMerge(BoundStatement):
    """MERGE INTO. Clauses in written order; the first whose condition holds acts."""

    target: TableName
    alias: str
    source: exp.Expression
    """A table, subquery or table function that can stand after FROM, without its alias."""
    source_alias: str
    source_schema: pa.Schema
    """Columns of the source, meta columns already left out."""
    on: exp.Expression
    clauses: tuple[MergeClause, ...]
    with_: exp.Expression | None = None
    returning: tuple[exp.Expression, ...] = ()
    store_assignment: StoreAssignment = StoreAssignment.ENGINE
