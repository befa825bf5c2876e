"""CREATE TABLE … USING hudi and DROP TABLE."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from hudi_sql.errors import BindError, UnsupportedStatementError
from hudi_sql.sql.model import BoundCreateTable, BoundDropTable, TableName
from hudi_sql.sql.names import find_column, is_meta, table_name, unknown_column
from hudi_sql.sql.types import storage_type

__all__ = ["bind_create", "bind_drop", "is_hudi_create", "refuse_other_formats"]


def is_hudi_create(tree: exp.Create) -> bool:
    """Whether a CREATE makes or names a Hudi table."""
    return any(
        isinstance(item, exp.FileFormatProperty) and item.name.lower() == "hudi" for item in _properties(tree)
    )


def refuse_other_formats(tree: exp.Create) -> None:
    """Refuse CREATE TABLE … USING something else: engines have no such clause, and would say so in other words.

    Raises:
        UnsupportedStatementError: With the format.
    """
    for item in _properties(tree):
        if isinstance(item, exp.FileFormatProperty) and str(tree.args.get("kind")).upper() == "TABLE":
            raise UnsupportedStatementError(
                f"CREATE TABLE … USING {item.name} is not supported",
                hint="Write USING hudi, or leave USING out for a table of the engine.",
                part=f"USING {item.name}",
            )


def bind_create(tree: exp.Create, text: str, dialect: str) -> BoundCreateTable:
    """Bind CREATE TABLE … USING hudi.

    Raises:
        UnsupportedStatementError: A clause that Hudi tables do not have.
        BindError: A column is declared twice or missing.
        SchemaError: A type that cannot be stored.
    """
    target = tree.this
    declared = isinstance(target, exp.Schema)
    table = target.this if declared else target
    name = table_name(table)
    if tree.args.get("replace"):
        raise _unsupported("CREATE OR REPLACE", "Drop the table first.", str(name))
    if tree.expression is not None and not isinstance(tree.expression, exp.LikeProperty):
        raise _unsupported("CREATE TABLE … AS", "Create the table, then INSERT INTO it.", str(name))
    notices: list[str] = []
    fields = _fields(target.expressions, dialect, str(name), notices) if declared else []
    clauses = _Clauses(str(name), dialect, fields, notices)
    for item in _properties(tree):
        clauses.take(item)
    partitions = clauses.partitions
    if dialect == "spark":
        # Spark's tables have their partition columns last, in the order of PARTITIONED BY.
        by_name = {field.name: field for field in fields}
        fields = [field for field in fields if field.name not in partitions]
        fields += [by_name[name] for name in partitions]
    return BoundCreateTable(
        text=text,
        name=name,
        schema=pa.schema(fields) if fields else None,
        partition_fields=partitions,
        location=clauses.location,
        properties=clauses.properties,
        if_not_exists=bool(tree.args.get("exists")),
        comment=clauses.comment,
        notices=tuple(notices),
        like=clauses.like,
    )


class _Clauses:
    """What stands after the columns of a CREATE TABLE."""

    def __init__(self, table: str, dialect: str, fields: list[pa.Field], notices: list[str]) -> None:
        self._table, self._dialect, self._fields, self._notices = table, dialect, fields, notices
        self.properties: dict[str, str] = {}
        self.location: str | None = None
        self.comment: str | None = None
        self.like: TableName | None = None
        self.partitions: tuple[str, ...] = ()

    def take(self, item: exp.Expression) -> None:
        """Read one clause. Raises `UnsupportedStatementError`."""
        if isinstance(item, exp.LocationProperty):
            self.location = item.this.name
            if not self.location.strip():
                raise BindError(
                    "LOCATION is empty", hint="Give a path or a URI.", table=self._table, part="LOCATION"
                )
        elif isinstance(item, exp.SchemaCommentProperty):
            self.comment = item.this.name
        elif isinstance(item, exp.PartitionedByProperty):
            self.partitions = _partitions(item, self._fields, self._dialect, self._table, self._notices)
        elif isinstance(item, exp.LikeProperty):
            self.like = table_name(item.this)
        elif isinstance(item, exp.OptionsProperty):
            self.properties |= {pair.this.name: pair.args["value"].name for pair in item.expressions}
        elif type(item) is exp.Property:
            self.properties[_key(item.this)] = item.args["value"].name
        elif not isinstance(item, exp.FileFormatProperty | exp.ClusteredByProperty):
            raise _unsupported(item.sql(self._dialect), "Leave it out.", self._table)


def bind_drop(tree: exp.Drop, table: exp.Expression, text: str) -> BoundDropTable:
    """Bind DROP TABLE of a Hudi table."""
    assert isinstance(table, exp.Table)
    return BoundDropTable(
        text=text,
        name=table_name(table),
        if_exists=bool(tree.args.get("exists")),
        purge=bool(tree.args.get("purge")) or text.rstrip(" ;\n").lower().endswith(" purge"),
    )


def _properties(tree: exp.Create) -> list[exp.Expression]:
    found = tree.args.get("properties")
    return list(found.expressions) if found is not None else []


def _key(node: exp.Expression) -> str:
    if isinstance(node, exp.Dot | exp.Column):
        return node.sql()
    return node.name


def _fields(columns: list[exp.Expression], dialect: str, table: str, notices: list[str]) -> list[pa.Field]:
    fields: list[pa.Field] = []
    for column in columns:
        if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
            raise _unsupported(column.sql(dialect), "State keys as the property primaryKey.", table)
        fields.append(_field(column, dialect, table, notices))
    for field in fields:
        if is_meta(field.name):
            raise BindError(
                f"{field.name} is a column of Hudi's own",
                hint="Choose another name.",
                table=table,
                column=field.name,
            )
        if sum(other.name.lower() == field.name.lower() for other in fields) > 1:
            raise BindError(
                f"The column {field.name} is declared more than once",
                hint="Names that differ by case alone are one name.",
                table=table,
                column=field.name,
            )
    return fields


def _field(column: exp.ColumnDef, dialect: str, table: str, notices: list[str]) -> pa.Field:
    nullable, metadata = True, None
    for constraint in column.args.get("constraints") or ():
        kind = constraint.args["kind"]
        if isinstance(kind, exp.NotNullColumnConstraint):
            nullable = bool(kind.args.get("allow_null"))
        elif isinstance(kind, exp.CommentColumnConstraint):
            metadata = {"comment": kind.this.name}
        else:
            raise _unsupported(f"{column.name} {constraint.sql(dialect)}", "Leave it out.", table)
    stored = storage_type(column.args["kind"], dialect=dialect, column=column.name, notices=notices)
    return pa.field(column.name, stored, nullable=nullable, metadata=metadata)


def _partitions(
    item: exp.PartitionedByProperty, fields: list[pa.Field], dialect: str, table: str, notices: list[str]
) -> tuple[str, ...]:
    result = []
    for part in item.this.expressions:
        if isinstance(part, exp.ColumnDef) and part.args.get("kind") is not None:
            fields.extend(_fields([part], dialect, table, notices))
            result.append(part.name)
            continue
        if not isinstance(part, exp.Identifier | exp.Column | exp.ColumnDef):
            raise _unsupported(
                f"PARTITIONED BY {part.sql(dialect)}",
                "Partition by columns; add one that holds the value.",
                table,
            )
        stored = find_column(part.name, [field.name for field in fields])
        if stored is None:
            unknown_column(part.name, [field.name for field in fields], table=table, part="PARTITIONED BY")
        result.append(stored)
    return tuple(result)


def _unsupported(what: str, hint: str, table: str) -> UnsupportedStatementError:
    return UnsupportedStatementError(
        f"{what} is not supported for Hudi tables", hint=hint, table=table, part=what
    )
