"""The schema of a table as of a timeline (base file notes §7)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from hudi_sql.errors import SchemaError, UnsupportedTableError
from hudi_sql.storage.base_file.reader import open_base_file
from hudi_sql.storage.file_system_view import FileSystemView
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.commit import OperationType
from hudi_sql.storage.properties.table_config import TableConfig
from hudi_sql.storage.schema.avro_arrow import arrow_schema_from_avro, avro_schema_from_arrow
from hudi_sql.storage.schema.meta_columns import META_COLUMNS, without_meta_columns
from hudi_sql.storage.timeline.read import read_commit
from hudi_sql.storage.timeline.timeline import Timeline

__all__ = ["TableSchema", "load_table_schema"]

_KEEP_SCHEMA = frozenset(
    {OperationType.CLUSTER, OperationType.COMPACT, OperationType.INDEX, OperationType.LOG_COMPACT}
)
_OPERATION_COLUMN = "_hoodie_operation"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """A table's columns, without meta columns, in Arrow and as commits state them."""

    arrow: pa.Schema
    commit_json: str
    """Avro JSON for the next commit: that of the last one where there is one."""


def load_table_schema(
    store: Store, config: TableConfig, timeline: Timeline, view: FileSystemView
) -> TableSchema:
    """Find the schema: of the newest completed commit that states one, else as created, else of a data file.

    Raises:
        SchemaError: Nothing tells the schema.
        UnsupportedTableError: Columns go by ids, not names (schema on read).
    """
    for instant in reversed(timeline.completed_writes):
        commit = read_commit(store, config, instant)
        if commit.operation in _KEEP_SCHEMA or not commit.schema_json:
            continue
        _check_history(commit.extra.get("latest_schema"))
        return _with_dropped_columns(_of_commit(commit.schema_json, config), config)
    if config.create_schema_json:
        arrow = _own_columns(arrow_schema_from_avro(config.create_schema_json))
        found = TableSchema(arrow=arrow, commit_json=avro_schema_from_arrow(arrow, config.name))
        return _with_dropped_columns(found, config)
    for base in view.latest_base_files():
        with open_base_file(store, base) as reader:
            stated = reader.avro_schema_json
            arrow = _own_columns(arrow_schema_from_avro(stated) if stated else reader.schema)
        found = TableSchema(arrow=arrow, commit_json=avro_schema_from_arrow(arrow, config.name))
        return _with_dropped_columns(found, config)
    raise SchemaError(
        "The table has no schema: no commit, no data file and no created columns",
        table=store.uri,
        hint="Create it with columns, or write to it with Hudi first.",
    )


def _of_commit(schema_json: str, config: TableConfig) -> TableSchema:
    schema = arrow_schema_from_avro(schema_json)
    own = _own_columns(schema)
    # Schema evolution on Spark leaves the meta columns in what it commits; they are not the table's own.
    is_clean = len(own) == len(schema)
    return TableSchema(
        arrow=own, commit_json=schema_json if is_clean else avro_schema_from_arrow(own, config.name)
    )


def _with_dropped_columns(found: TableSchema, config: TableConfig) -> TableSchema:
    """Add the partition columns that only paths hold: commits state the columns of the files.

    Hudi takes them for text and puts them last (TableSchemaResolver); the created columns know their types.
    """
    if not config.drop_partition_columns:
        return found
    created = (
        arrow_schema_from_avro(config.create_schema_json) if config.create_schema_json else pa.schema([])
    )
    arrow = found.arrow
    for name in config.partition_fields:
        if name not in arrow.names:
            index = created.get_field_index(name)
            arrow = arrow.append(created.field(index) if index >= 0 else pa.field(name, pa.string()))
    return TableSchema(arrow=arrow, commit_json=found.commit_json)


def _own_columns(schema: pa.Schema) -> pa.Schema:
    own = without_meta_columns(schema)
    index = own.get_field_index(_OPERATION_COLUMN)
    own = own if index < 0 or META_COLUMNS[0] not in schema.names else own.remove(index)
    return own.remove_metadata()


def _check_history(internal_schema: str | None) -> None:
    if internal_schema:
        raise UnsupportedTableError(
            "The table's columns were renamed, dropped or moved by schema on read, and go by ids since",
            property="hoodie.schema.on.read.enable",
            value="true",
            hint="Read it with Hudi, or copy it into a new table.",
        )
