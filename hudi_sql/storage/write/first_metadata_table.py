"""The metadata table of a table that has none yet: made with the table, or by the first write to it, as Spark does."""

from __future__ import annotations

import pyarrow as pa

from hudi_sql.config.write import WriteConfig
from hudi_sql.storage.base_file.statistics import indexed_columns
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.metadata.bootstrap import bootstrap_metadata_table
from hudi_sql.storage.metadata.slices import METADATA_FOLDER
from hudi_sql.storage.properties.table_config import TableConfig, load_table_config
from hudi_sql.storage.timeline.timeline import load_timeline
from hudi_sql.storage.transaction.locks.provider import open_lock

__all__ = ["add_metadata_table", "ensure_metadata_table"]


def add_metadata_table(
    store: Store, config: TableConfig, schema: pa.Schema, settings: WriteConfig
) -> TableConfig:
    """Give a table without any instant the metadata table that the settings ask for.

    To be called where nobody else writes: the table is new, or its lock is held.

    Args:
        store: The table.
        config: Its properties.
        schema: Its columns, without meta columns.
        settings: Which indexes, over which columns.

    Returns:
        The properties as they are now.
    """
    if not settings.metadata_enable:
        return config
    columns = indexed_columns(
        schema, listed=settings.column_stats_columns, max_columns=settings.column_stats_max_columns
    )
    return bootstrap_metadata_table(
        store,
        config,
        columns=columns if settings.column_stats_enable else (),
        with_partition_stats=bool(config.partition_fields) and settings.partition_stats_enable,
    )


def ensure_metadata_table(
    store: Store, config: TableConfig, schema: pa.Schema, settings: WriteConfig
) -> TableConfig:
    """Make the metadata table before the first write, if there is none. A table with instants stays as it is.

    Returns:
        The properties as they are now.

    Raises:
        LockError: Another writer holds the lock.
    """
    if not settings.metadata_enable or not _has_none(config) or load_timeline(store, config).instants:
        return config
    lock = open_lock(store, settings.lock)
    lock.acquire()
    try:
        now = load_table_config(store)
        if not _has_none(now) or load_timeline(store, now).instants:
            return config  # the transaction finds out what another writer did
        # What is there unannounced is of a writer that died at this very step.
        store.delete_tree(METADATA_FOLDER)
        return add_metadata_table(store, now, schema, settings)
    finally:
        lock.release()


def _has_none(config: TableConfig) -> bool:
    return not config.metadata_partitions and not config.metadata_partitions_inflight
