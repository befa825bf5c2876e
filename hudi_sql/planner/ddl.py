"""CREATE TABLE and DROP TABLE of Hudi tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudi_sql.catalog.base import Catalog, TableEntry
from hudi_sql.config.write import WriteConfig, known_setting_names
from hudi_sql.errors import BindError, ConfigError, TableExistsError, TableNotFoundError
from hudi_sql.sql.model import BoundCreateTable, BoundDropTable, TableName
from hudi_sql.sql.properties import NormalisedProperties, normalise_table_properties
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.properties.kinds import MergeMode, TableType
from hudi_sql.storage.table import HudiTable

__all__ = ["CreateContext", "run_create", "run_drop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateContext:
    """What a CREATE or DROP works on."""

    catalog: Catalog
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
