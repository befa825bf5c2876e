"""Which tables we write: what cannot be kept right is refused before an instant is requested (design decision 10)."""

from __future__ import annotations

import re

from hudi_sql.errors import UnsupportedTableError
from hudi_sql.storage.model.commit import CommitMetadata
from hudi_sql.storage.model.files import FileSlice
from hudi_sql.storage.properties.table_config import KeyGeneratorType, MergeMode, TableConfig, TableType

__all__ = ["MAINTAINED_PARTITIONS", "check_slices_writable", "check_table_writable"]

MAINTAINED_PARTITIONS = frozenset({"files", "column_stats", "partition_stats", "record_index"})
"""Metadata partitions that every commit of ours keeps right."""

_KEY_GENERATORS = frozenset(
    {
        KeyGeneratorType.SIMPLE,
        KeyGeneratorType.COMPLEX,
        KeyGeneratorType.NON_PARTITION,
        KeyGeneratorType.AUTO_RECORD,
    }
)
_BUCKET_FILE_ID = re.compile(r"000\d{5}-[0-9a-f-]*")
"""The bucket's number, in eight digits, stands for the first part of a UUID (`BucketIdentifier`); bucket numbers stay
small."""


def check_table_writable(config: TableConfig, newest: CommitMetadata | None, table: str) -> None:
    """Refuse tables with features that a write of ours would break.

    Args:
        config: The table's properties.
        newest: Metadata of the newest completed commit.
        table: Name for messages.

    Raises:
        UnsupportedTableError: Naming the property and its value.
    """
    for key, value, problem in _problems(config, newest):
        raise UnsupportedTableError(
            f"The table cannot be written: {problem}",
            property=key,
            value=value,
            hint="Write it with Spark, or wait for a release that keeps this feature right. Reading may work.",
            table=table,
            part=f"{key}={value}",
        )


def check_slices_writable(slices: tuple[FileSlice, ...], table: str) -> None:
    """Refuse file groups that only a writer with a bucket index may add rows to, and slices with logs.

    Args:
        slices: All of one or several partitions.
        table: How messages call the table.
    """
    for piece in slices:
        if piece.log_files:
            raise UnsupportedTableError(
                f"File group {piece.file_id} has log files, which only writes to Merge-on-Read tables can handle",
                property="hoodie.table.type",
                value="MERGE_ON_READ",
                table=table,
                hint="Run a compaction first.",
            )
    # One UUID in 42,000 looks like a bucket; in a table of buckets all of them do.
    if slices and all(_BUCKET_FILE_ID.fullmatch(piece.file_id) for piece in slices):
        raise UnsupportedTableError(
            f"File group {slices[0].file_id} is a bucket of a bucket index, into which rows must be hashed",
            property="hoodie.index.type",
            value="BUCKET",
            table=table,
            hint="Write the table with the engine that made it.",
        )


def _problems(config: TableConfig, newest: CommitMetadata | None) -> list[tuple[str, str, str]]:
    raw = config.raw
    found: list[tuple[str, str, str]] = []

    def add(condition: bool, key: str, value: object, problem: str) -> None:
        if condition:
            found.append((key, str(value), problem))

    add(config.version != 9, "hoodie.table.version", config.version, "only version 9 is written so far")
    add(
        config.table_type is not TableType.COPY_ON_WRITE,
        "hoodie.table.type",
        config.table_type.value,
        "only Copy-on-Write tables are written so far",
    )
    add(
        config.key_generator not in _KEY_GENERATORS,
        "hoodie.table.keygenerator.type",
        config.key_generator_class or config.key_generator.value,
        "its key generator is not known here",
    )
    add(
        config.merge_mode is MergeMode.CUSTOM,
        "hoodie.record.merge.mode",
        config.payload_class or config.merge_mode.value,
        "its records are merged by code of its own",
    )
    add(
        config.partial_update_mode is not None,
        "hoodie.table.partial.update.mode",
        config.partial_update_mode,
        "partial updates are not merged here yet",
    )
    for key in raw:
        add(
            key.startswith("hoodie.record.merge.property."),
            key,
            raw[key],
            "its merge has parameters that are not known here",
        )
    add(config.cdc_enabled, "hoodie.table.cdc.enabled", "true", "its change log cannot be written yet")
    add(
        not config.populate_meta_fields,
        "hoodie.populate.meta.fields",
        "false",
        "tables without meta columns are not written yet",
    )
    add(
        config.drop_partition_columns,
        "hoodie.datasource.write.drop.partition.columns",
        "true",
        "files without partition columns are not written yet",
    )
    add(
        config.base_file_format != "PARQUET" or config.has_multiple_base_file_formats,
        "hoodie.table.base.file.format",
        config.base_file_format,
        "only Parquet base files are written",
    )
    add(
        config.bootstrap_base_path is not None,
        "hoodie.bootstrap.base.path",
        config.bootstrap_base_path,
        "bootstrapped tables are not written",
    )
    add(
        raw.get("hoodie.allow.operation.metadata.field") == "true",
        "hoodie.allow.operation.metadata.field",
        "true",
        "the operation column is not written",
    )
    for partition in sorted(
        (config.metadata_partitions | config.metadata_partitions_inflight) - MAINTAINED_PARTITIONS
    ):
        key = "hoodie.table.metadata.partitions"
        add(True, key, partition, f"its metadata partition {partition} cannot be kept right")
    for partition in sorted(config.metadata_partitions_inflight & MAINTAINED_PARTITIONS):
        key = "hoodie.table.metadata.partitions.inflight"
        add(True, key, partition, f"its metadata partition {partition} is being built")
    if newest is not None and newest.extra.get("latest_schema"):
        add(
            True,
            "hoodie.schema.on.read.enable",
            "true",
            "its schema has a history of renamed or dropped columns",
        )
    return found
