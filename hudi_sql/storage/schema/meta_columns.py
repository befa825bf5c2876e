"""The five meta columns that stand first in every base file (base file notes §2)."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["META_COLUMNS", "META_FIELDS", "with_meta_columns", "without_meta_columns"]

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""Names, in the order they have in files."""

META_FIELDS: tuple[pa.Field, ...] = tuple(pa.field(name, pa.string()) for name in META_COLUMNS)


def with_meta_columns(schema: pa.Schema) -> pa.Schema:
    """Put the meta columns first; those that a schema has already are not repeated."""
    return pa.schema([*META_FIELDS, *without_meta_columns(schema)], metadata=schema.metadata)


def without_meta_columns(schema: pa.Schema) -> pa.Schema:
    """Leave the meta columns out.

    Example:
        >>> without_meta_columns(pa.schema([*META_FIELDS, pa.field("id", pa.int32())])).names
        ['id']
    """
    return pa.schema([field for field in schema if field.name not in META_COLUMNS], metadata=schema.metadata)
