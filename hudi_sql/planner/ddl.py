"""CREATE TABLE and DROP TABLE of Hudi tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hudi_sql.catalog.base import Catalog, TableEntry
from hudi_sql.config.write import WriteConfig
from hudi_sql.errors import BindError, ConfigError, TableExistsError, TableNotFoundError
from hudi_sql.sql.model import BoundCreateTable, BoundDropTable, TableName
from hudi_sql.sql.properties import NormalisedProperties, normalise_table_properties
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.properties.kinds import TableType, TimelineZone
from hudi_sql.storage.table import HudiTable

__all__ = ["CreateContext", "run_create", "run_drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateContext:
    """What a CREATE or DROP works on."""

    catalog: Catalog
    dialect: str
    settings: Mapping[str, str]
    """`hoodie.*` settings of the session."""
    storage_options: Mapping[str, str]
    open_table: Callable[[TableName], HudiTable]


def run_create(bound: BoundCreateTable, context: CreateContext) -> tuple[str, ...]:
    """Create a table, or name an existing one; gives notices for the user.

    Raises:
        TableExistsError: The name is taken.
        TableNotFoundError: No columns are declared and there is no Hudi table at the location.
        ConfigError: Declared properties contradict those of the existing table, or are unknown.
        BindError: Declared columns or partitions contradict those of the existing table.
        SchemaError: A column cannot be stored.
    """
    database, name = context.catalog.qualify(bound.name.parts)
    if context.catalog.find(bound.name.parts) is not None:
        if bound.if_not_exists:
            return ()
        raise TableExistsError(
            f"There is a table {name} already",
            hint="Drop it, choose another name, or say IF NOT EXISTS.",
            table=name,
        )
    properties = normalise_table_properties(bound.properties)
    settings = {**context.settings, **properties.settings}
    config = WriteConfig.parse(settings)
    location = bound.location or context.catalog.managed_location(database, name)
    entry = TableEntry(
        database=database,
        name=name,
        location=location,
        is_managed=bound.location is None,
        settings=properties.settings,
    )
    existing = _existing(location, context)
    if existing is not None:
        _check_same(bound, properties, existing, name)
    else:
        _create(bound, properties, entry, config, context)
    context.catalog.add(entry)
    return bound.notices


def run_drop(bound: BoundDropTable, context: CreateContext) -> None:
    """Forget a table; the files of a managed one, or of any with PURGE, go too.

    Raises:
        TableNotFoundError: There is no such table and the statement does not say IF EXISTS.
    """
    if bound.if_exists and context.catalog.find(bound.name.parts) is None:
        return
    entry = context.catalog.remove(bound.name.parts)
    if entry.is_managed or bound.purge:
        open_store(entry.location, context.storage_options).delete_tree("")


def _existing(location: str, context: CreateContext) -> HudiTable | None:
    try:
        return HudiTable.open(location, storage_options=context.storage_options)
    except TableNotFoundError:
        return None


def _check_same(
    bound: BoundCreateTable, properties: NormalisedProperties, table: HudiTable, name: str
) -> None:
    """What is declared about a table that exists has to be so: dropping it silently would mislead."""
    config = table.config
    pairs: tuple[tuple[str, Sequence[str], Sequence[str]], ...] = (
        ("primaryKey", properties.record_key_fields, config.record_key_fields),
        ("orderingFields", properties.ordering_fields, config.ordering_fields),
    )
    for key, declared, stored in pairs:
        if declared and _lower(declared) != _lower(stored):
            raise _conflict(key, ",".join(declared), ",".join(stored), name)
    if properties.table_type is not None and properties.table_type is not config.table_type:
        raise _conflict("type", properties.table_type.value, config.table_type.value, name)
    if properties.merge_mode is not None and properties.merge_mode is not config.merge_mode:
        raise _conflict(
            "hoodie.record.merge.mode", properties.merge_mode.value, config.merge_mode.value, name
        )
    if bound.schema is None:
        return
    stored_schema = table.schema
    declared_columns = {field.name.lower(): field.type for field in bound.schema}
    stored_columns = {field.name.lower(): field.type for field in stored_schema}
    if declared_columns != stored_columns:
        raise BindError(
            f"The declared columns of {name} are not those of the table at {table.location}: "
            f"{_columns(bound.schema)} against {_columns(stored_schema)}",
            hint="Leave the columns out to name the existing table.",
            table=name,
        )
    if _lower(bound.partition_fields) != _lower(config.partition_fields):
        raise BindError(
            f"{name} is declared as partitioned by ({', '.join(bound.partition_fields)}) and the table at "
            f"{table.location} is by ({', '.join(config.partition_fields)})",
            hint="Leave columns and partitions out to name the existing table.",
            table=name,
        )


def _create(
    bound: BoundCreateTable,
    properties: NormalisedProperties,
    entry: TableEntry,
    config: WriteConfig,
    context: CreateContext,
) -> None:
    schema, partition_fields = bound.schema, tuple(bound.partition_fields)
    keys, ordering = tuple(properties.record_key_fields), tuple(properties.ordering_fields)
    if bound.like is not None:
        source = context.open_table(bound.like)
        schema = source.schema
        partition_fields = partition_fields or source.config.partition_fields
        keys, ordering = keys or source.config.record_key_fields, ordering or source.config.ordering_fields
    if schema is None:
        raise TableNotFoundError(
            f"There is no Hudi table at {entry.location}, and no columns are declared for a new one",
            hint="Check the location, or declare the columns.",
            table=entry.name,
        )
    # Under its dialect a table is what Spark makes of the statement: the first write adds the metadata table.
    as_spark = context.dialect == "spark"
    HudiTable.create(
        entry.location,
        schema=schema,
        name=entry.name,
        database=entry.database,
        record_key_fields=_spelled(keys, schema),
        partition_fields=_spelled(partition_fields, schema),
        ordering_fields=_spelled(ordering, schema),
        merge_mode=properties.merge_mode,
        table_type=properties.table_type or TableType.COPY_ON_WRITE,
        payload_class=properties.payload_class,
        timeline_zone=None if as_spark else TimelineZone.UTC,
        properties=properties.table_properties,
        settings=replace(config, metadata_enable=False) if as_spark else config,
        storage_options=context.storage_options,
    )


def _spelled(names: Sequence[str], schema: pa.Schema) -> tuple[str, ...]:
    """Names as the schema spells them; unknown ones as they are, for storage to refuse."""
    known = {name.lower(): name for name in schema.names}
    result = []
    for name in names:
        top, dot, rest = name.partition(".")
        result.append(known.get(top.lower(), top) + dot + rest)
    return tuple(result)


def _conflict(key: str, declared: str, stored: str, name: str) -> ConfigError:
    return ConfigError(
        f"{name} is declared with {key} = {declared}, and the table has {stored}",
        hint="Leave it out, or declare what the table has.",
        table=name,
        setting=key,
    )


def _lower(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
