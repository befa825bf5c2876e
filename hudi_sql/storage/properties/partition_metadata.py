"""`.hoodie_partition_metadata`: the file that makes a folder a partition (properties notes §7)."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
from pyarrow import parquet as pq

from hudi_sql.errors import ObjectExistsError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.files import PartitionPath
from hudi_sql.storage.model.instant import InstantTime
from hudi_sql.storage.properties.java_properties import encode_properties
from hudi_sql.storage.properties.properties_file import java_date

__all__ = ["PARTITION_METADATA_FILES", "ensure_partition_metadata"]

_NAME = ".hoodie_partition_metadata"
PARTITION_METADATA_FILES = frozenset({_NAME, f"{_NAME}.parquet", f"{_NAME}.orc"})
"""Names under which the file may be found."""


def ensure_partition_metadata(
    store: Store, partition: PartitionPath, instant: InstantTime, *, use_base_format: bool = False
) -> None:
    """Write the partition's file unless it has one. Before the first data file: readers skip folders without.

    Args:
        store: The table.
        partition: Relative path; empty for a table without partitions.
        instant: The instant that writes to the partition first.
        use_base_format: `hoodie.partition.metafile.use.base.format`: an empty Parquet file instead of a text.
    """
    prefix = f"{partition}/" if partition else ""
    if any(store.exists(f"{prefix}{name}") for name in (_NAME, f"{_NAME}.parquet")):
        return
    depth = len(partition.split("/")) if partition else 0
    values = {"commitTime": str(instant), "partitionDepth": str(depth)}
    try:
        if use_base_format:
            store.create(f"{prefix}{_NAME}.parquet", _empty_parquet(values))
        else:
            comments = ("partition metadata", java_date(datetime.now(tz=UTC)))
            store.create(f"{prefix}{_NAME}", encode_properties(values, comments=comments))
    except ObjectExistsError:
        return  # another task or writer was first; what it wrote is as good


def _empty_parquet(values: dict[str, str]) -> bytes:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, pa.schema([]), store_schema=False) as writer:
        writer.add_key_value_metadata(values)
    return bytes(sink.getvalue())
