"""Creating a table: properties, folders, and an empty metadata table. No instant is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import SchemaError, TableExistsError, TableNotFoundError, UnsupportedTableError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.properties.kinds import MergeMode, TableType, TimelineZone, infer_key_generator
from hudi_sql.storage.properties.table_config import TableConfig, create_table_config, load_table_config
from hudi_sql.storage.schema.avro_arrow import avro_schema_from_arrow
from hudi_sql.storage.schema.names import check_storable
from hudi_sql.storage.write.first_metadata_table import add_metadata_table

__all__ = ["create_table"]

_PAYLOADS = {
    "org.apache.hudi.common.model.DefaultHoodieRecordPayload": MergeMode.EVENT_TIME_ORDERING,
    "org.apache.hudi.common.model.EventTimeAvroPayload": MergeMode.EVENT_TIME_ORDERING,
    "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload": MergeMode.COMMIT_TIME_ORDERING,
}
"""Payload classes that amount to a merge mode and nothing else (properties notes §4)."""


def create_table(
    store: Store,
    *,
    schema: pa.Schema,
    name: str,
    database: str = "default",
    record_key_fields: Sequence[str] = (),
    partition_fields: Sequence[str] = (),
    ordering_fields: Sequence[str] = (),
    merge_mode: MergeMode | None = None,
    table_type: TableType = TableType.COPY_ON_WRITE,
    payload_class: str | None = None,
    timeline_zone: TimelineZone | None = TimelineZone.UTC,
    properties: Mapping[str, str] | None = None,
    settings: WriteConfig | None = None,
) -> TableConfig:
    """Create a table of version 9 in an empty or foreign folder.

    Args:
        store: Where the table is to be.
        schema: Columns, without meta columns; partition columns included.
        name: Of the table.
        database: Of the table; part of its checksum.
        record_key_fields: Columns (or fields of structs, dotted) of the record key; none: keys are generated.
        partition_fields: Columns that make the partition path.
        ordering_fields: Columns that decide between versions of a record.
        merge_mode: Event time where there are ordering fields, else commit time, unless given.
        table_type: Copy-on-Write or Merge-on-Read.
        payload_class: An older way to state the merge mode.
        timeline_zone: Of its instants; None leaves it unsaid, as Spark does, which means each writer's own.
        properties: Further `hoodie.*` table properties, kept as they are.
        settings: Decide about the metadata table.

    Raises:
        SchemaError: A column cannot be stored, or a field is none of the columns.
        TableExistsError: There is a table already.
        UnsupportedTableError: The payload class is none that we can merge by.
    """
    check_storable(schema)
    for role, fields in (
        ("primaryKey", record_key_fields),
        ("PARTITIONED BY", partition_fields),
        ("preCombineField", ordering_fields),
    ):
        for field in fields:
            _check_field(schema, field, role)
    _check_absent(store)
    mode = merge_mode or _mode(payload_class, ordering_fields)
    table = {
        "hoodie.table.name": name,
        "hoodie.database.name": database,
        "hoodie.table.type": table_type.value,
        "hoodie.table.version": "9",
        "hoodie.table.initial.version": "9",
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "archived",
        "hoodie.table.format": "native",
        "hoodie.record.merge.mode": mode.value,
        "hoodie.table.keygenerator.type": infer_key_generator(
            tuple(record_key_fields), ",".join(partition_fields)
        ).value,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        # Spark's converter of CREATE TABLE puts null last; both orders mean the same.
        "hoodie.table.create.schema": avro_schema_from_arrow(schema, name),
        **(dict(properties or {})),
    }
    for key, fields in (
        ("hoodie.table.recordkey.fields", record_key_fields),
        ("hoodie.table.partition.fields", partition_fields),
        ("hoodie.table.ordering.fields", ordering_fields),
    ):
        if fields:
            table[key] = ",".join(fields)
    if timeline_zone is not None:
        table.setdefault("hoodie.table.timeline.timezone", timeline_zone.value)
    if payload_class is not None:
        table["hoodie.table.legacy.payload.class"] = payload_class
    config = create_table_config(store, table)
    return add_metadata_table(store, config, schema, settings or WriteConfig())


def _mode(payload_class: str | None, ordering_fields: Sequence[str]) -> MergeMode:
    if payload_class is None:
        return MergeMode.EVENT_TIME_ORDERING if ordering_fields else MergeMode.COMMIT_TIME_ORDERING
    if payload_class not in _PAYLOADS:
        raise UnsupportedTableError(
            f"Tables with the payload class {payload_class} are not created",
            property="hoodie.datasource.write.payload.class",
            value=payload_class,
            hint=f"Use hoodie.record.merge.mode, or one of {', '.join(sorted(_PAYLOADS))}.",
        )
    return _PAYLOADS[payload_class]


def _check_absent(store: Store) -> None:
    try:
        load_table_config(store)
    except TableNotFoundError:
        return
    raise TableExistsError(
        "There is a Hudi table at this location already",
        table=store.uri,
        hint="Name it by CREATE TABLE … USING hudi LOCATION without columns.",
    )


def _check_field(schema: pa.Schema, path: str, role: str) -> None:
    kind: pa.DataType | None = None
    for number, part in enumerate(path.split(".")):
        if number == 0:
            index = schema.get_field_index(part)
            kind = schema.field(index).type if index >= 0 else None
        else:
            position = kind.get_field_index(part) if kind is not None and pa.types.is_struct(kind) else -1
            kind = kind.field(position).type if kind is not None and position >= 0 else None
        if kind is None:
            raise SchemaError(
                f"{role} names {path}, which is no column of the table",
                hint=f"Columns: {', '.join(schema.names)}.",
                part=role,
                column=path,
            )
    if pa.types.is_nested(kind):
        raise SchemaError(
            f"{role} names {path}, which has the type {kind}",
            hint="Keys, partitions and ordering need a column with a plain value.",
            part=role,
            column=path,
        )
