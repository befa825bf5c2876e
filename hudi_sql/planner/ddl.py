"""CREATE TABLE and DROP TABLE of Hudi tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

import pyarrow as pa

from hudi_sql.catalog.base import Catalog, TableEntry
from hudi_sql.config.key import check_known
from hudi_sql.config.write import known_setting_names
from hudi_sql.errors import BindError, ConfigError, TableExistsError, TableNotFoundError
from hudi_sql.sql.ddl import NormalisedProperties, normalise_table_properties
from hudi_sql.sql.model import BoundCreateTable, BoundDropTable, TableName
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.table import HudiTable

__all__ = ["run_create", "run_drop"]
