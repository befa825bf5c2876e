"""Settings of writes: `hoodie.*` texts in, one frozen value out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hudi_sql.config.key import (
    ConfigKey,
    check_known,
    choice,
    non_negative_float,
    non_negative_int,
    on_off,
    text,
)
from hudi_sql.config.lock import LOCK_KEYS, HeartbeatConfig, LockConfig
from hudi_sql.errors import ConfigError

__all__ = [
    "WRITE_KEYS",
    "DuplicatePolicy",
    "InsertOperation",
    "OverwriteMode",
    "WriteConfig",
    "known_setting_names",
]


class DuplicatePolicy(Enum):
    """What an INSERT does with keys that the table has already."""

    NONE = "none"
    DROP = "drop"
    FAIL = "fail"


class InsertOperation(Enum):
    """The operation that INSERT INTO stands for."""

    INSERT = "insert"
    UPSERT = "upsert"
    BULK_INSERT = "bulk_insert"


class OverwriteMode(Enum):
    """What INSERT OVERWRITE without a PARTITION clause replaces."""

    STATIC = "STATIC"
    DYNAMIC = "DYNAMIC"


def _codec(value: str) -> str:
    codec = value.lower()
    if codec not in ("zstd", "gzip", "snappy", "lz4", "brotli", "uncompressed", "none"):
        raise ValueError("it must be one of zstd, gzip, snappy, lz4, brotli, uncompressed")
    return "none" if codec == "uncompressed" else codec


def _names(value: str) -> tuple[str, ...]:
    return tuple(name for part in value.split(",") if (name := part.strip()))


def _positive_int(value: str) -> int:
    number = non_negative_int(value)
    if number == 0:
        raise ValueError("it must be above zero")
    return number


MAX_FILE_SIZE = ConfigKey(
    name="hoodie.parquet.max.file.size",
    parse=_positive_int,
    default=125_829_120,
    doc="Target size of a base file, in bytes.",
)
SMALL_FILE_LIMIT = ConfigKey(
    name="hoodie.parquet.small.file.limit",
    parse=non_negative_int,
    default=104_857_600,
    doc="Inserts go into base files below this size, in bytes; 0 turns that off.",
)
BLOCK_SIZE = ConfigKey(
    name="hoodie.parquet.block.size",
    parse=_positive_int,
    default=125_829_120,
    doc="Target size of a Parquet row group, in bytes.",
)
PAGE_SIZE = ConfigKey(
    name="hoodie.parquet.page.size",
    parse=_positive_int,
    default=1_048_576,
    doc="Target size of a Parquet page, in bytes.",
)
COMPRESSION = ConfigKey(
    name="hoodie.parquet.compression.codec",
    parse=_codec,
    default="zstd",
    doc="Parquet codec of base files.",
)
DICTIONARY = ConfigKey(
    name="hoodie.parquet.dictionary.enabled",
    parse=on_off,
    default=True,
    doc="Whether base files use dictionary encoding.",
)
RECORD_SIZE = ConfigKey(
    name="hoodie.copyonwrite.record.size.estimate",
    parse=_positive_int,
    default=1024,
    doc="Bytes that a row is taken to need until a commit tells better.",
)
RECORD_SIZE_THRESHOLD = ConfigKey(
    name="hoodie.record.size.estimation.threshold",
    parse=non_negative_float,
    default=1.0,
    doc="A commit tells the size of a row when it wrote more than this part of the small-file limit.",
)
AUTO_SPLIT = ConfigKey(
    name="hoodie.copyonwrite.insert.auto.split",
    parse=on_off,
    default=True,
    doc="Whether new file groups get as many rows as fit into the target size.",
)
SPLIT_ROWS = ConfigKey(
    name="hoodie.copyonwrite.insert.split.size",
    parse=_positive_int,
    default=500_000,
    doc="Rows of a new file group when automatic splitting is off.",
)
METADATA_ENABLE = ConfigKey(
    name="hoodie.metadata.enable",
    parse=on_off,
    default=True,
    doc="Whether a new table gets a metadata table.",
)
COLUMN_STATS_ENABLE = ConfigKey(
    name="hoodie.metadata.index.column.stats.enable",
    parse=on_off,
    default=True,
    doc="Whether a new table keeps value ranges of its files.",
)
COLUMN_STATS_COLUMNS: ConfigKey[tuple[str, ...]] = ConfigKey(
    name="hoodie.metadata.index.column.stats.column.list",
    parse=_names,
    default=(),
    doc="Columns whose ranges are kept; the first ones of the schema unless given.",
)
COLUMN_STATS_MAX_COLUMNS = ConfigKey(
    name="hoodie.metadata.index.column.stats.max.columns.to.index",
    parse=non_negative_int,
    default=32,
    doc="How many columns have ranges when no list is given.",
)
PARTITION_STATS_ENABLE = ConfigKey(
    name="hoodie.metadata.index.partition.stats.enable",
    parse=on_off,
    default=True,
    doc="Whether a new partitioned table keeps value ranges of its partitions.",
)
RECORD_INDEX_ENABLE: ConfigKey[bool | None] = ConfigKey(
    name="hoodie.metadata.global.record.level.index.enable",
    parse=on_off,
    default=None,
    doc="Whether a new table keeps the place of every key; by the kind of its keys unless given.",
    aliases=("hoodie.metadata.record.index.enable",),
)
BLOOM_ENTRIES = ConfigKey(
    name="hoodie.index.bloom.num_entries",
    parse=_positive_int,
    default=60_000,
    doc="Keys that a Bloom filter of a base file is sized for, at most.",
)
BLOOM_FPP = ConfigKey(
    name="hoodie.index.bloom.fpp",
    parse=non_negative_float,
    default=1e-9,
    doc="False positives of a Bloom filter.",
)
BLOOM_MAX_ENTRIES = ConfigKey(
    name="hoodie.bloom.index.filter.dynamic.max.entries",
    parse=_positive_int,
    default=100_000,
    doc="Keys up to which a dynamic Bloom filter grows.",
)
DUP_POLICY: ConfigKey[DuplicatePolicy | None] = ConfigKey(
    name="hoodie.datasource.insert.dup.policy",
    parse=choice(DuplicatePolicy),
    default=None,
    doc="What INSERT does with keys that the table has; by dialect unless given.",
)
INSERT_OPERATION: ConfigKey[InsertOperation | None] = ConfigKey(
    name="hoodie.spark.sql.insert.into.operation",
    parse=choice(InsertOperation),
    default=None,
    doc="The operation that INSERT INTO stands for.",
    aliases=("hoodie.datasource.write.operation",),
)
COMBINE_BEFORE_INSERT = ConfigKey(
    name="hoodie.combine.before.insert",
    parse=on_off,
    default=False,
    doc="Whether rows of one key inside an INSERT are merged first.",
)
OVERWRITE_MODE: ConfigKey[OverwriteMode | None] = ConfigKey(
    name="hoodie.datasource.overwrite.mode",
    parse=choice(OverwriteMode),
    default=None,
    doc="What INSERT OVERWRITE without a PARTITION clause replaces; by dialect unless given.",
)
ORDERING_FIELDS: ConfigKey[tuple[str, ...]] = ConfigKey(
    name="hoodie.table.ordering.fields",
    parse=_names,
    default=(),
    doc="Ordering fields of a table, where a statement names them.",
    aliases=("hoodie.datasource.write.precombine.field", "hoodie.table.precombine.field"),
)
MERGE_MODE: ConfigKey[str] = ConfigKey(
    name="hoodie.record.merge.mode",
    parse=text,
    default="",
    doc="Merge mode of a table, where a statement names it.",
    aliases=("hoodie.write.record.merge.mode",),
)
PARALLELISM = ConfigKey(
    name="hoodie.upsert.shuffle.parallelism",
    parse=non_negative_int,
    default=0,
    doc="File groups that are written at once; 0 is as many as there are processors.",
    aliases=("hoodie.insert.shuffle.parallelism",),
)

WRITE_KEYS: tuple[ConfigKey[object], ...] = (
    MAX_FILE_SIZE,
    SMALL_FILE_LIMIT,
    BLOCK_SIZE,
    PAGE_SIZE,
    COMPRESSION,
    DICTIONARY,
    RECORD_SIZE,
    RECORD_SIZE_THRESHOLD,
    AUTO_SPLIT,
    SPLIT_ROWS,
    METADATA_ENABLE,
    COLUMN_STATS_ENABLE,
    COLUMN_STATS_COLUMNS,
    COLUMN_STATS_MAX_COLUMNS,
    PARTITION_STATS_ENABLE,
    RECORD_INDEX_ENABLE,
    BLOOM_ENTRIES,
    BLOOM_FPP,
    BLOOM_MAX_ENTRIES,
    DUP_POLICY,
    INSERT_OPERATION,
    COMBINE_BEFORE_INSERT,
    OVERWRITE_MODE,
    ORDERING_FIELDS,
    MERGE_MODE,
    PARALLELISM,
)  # type: ignore[assignment]  # keys of several value types stand in one tuple; a frozen key only gives values

_ACCEPTED = (
    # Spark's own writers need these to write the way we always do; a script may set them; we take no notice.
    "hoodie.write.concurrency.mode",
    "hoodie.clean.failed.writes.policy",
    "hoodie.cleaner.policy.failed.writes",
    "hoodie.write.markers.type",
    "hoodie.write.lock.client.num_retries",
    "hoodie.write.lock.client.wait_time_ms_between_retry",
    "hoodie.write.lock.num_retries",
    "hoodie.write.lock.wait_time_ms_between_retry",
    "hoodie.parquet.compression.ratio",
    "hoodie.merge.allow.duplicate.on.inserts",
    "hoodie.embed.timeline.server",
)


def known_setting_names() -> tuple[str, ...]:
    """Give every setting name that a write takes, older spellings included."""
    keys = (*WRITE_KEYS, *LOCK_KEYS)
    return (*(name for key in keys for name in key.names), *_ACCEPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteConfig:
    """How a commit writes. The defaults are those of Hudi, but for the codec (zstd).

    Example:
        >>> WriteConfig.parse({"hoodie.parquet.max.file.size": "1000000"}).max_file_size_bytes
        1000000
    """

    max_file_size_bytes: int = MAX_FILE_SIZE.default
    small_file_limit_bytes: int = SMALL_FILE_LIMIT.default
    block_size_bytes: int = BLOCK_SIZE.default
    page_size_bytes: int = PAGE_SIZE.default
    compression: str = COMPRESSION.default
    dictionary: bool = True
    record_size_bytes: int = RECORD_SIZE.default
    record_size_threshold: float = RECORD_SIZE_THRESHOLD.default
    auto_split: bool = True
    split_rows: int = SPLIT_ROWS.default
    metadata_enable: bool = True
    column_stats_enable: bool = True
    column_stats_columns: tuple[str, ...] = ()
    column_stats_max_columns: int = COLUMN_STATS_MAX_COLUMNS.default
    partition_stats_enable: bool = True
    record_index_enable: bool | None = None
    bloom_entries: int = BLOOM_ENTRIES.default
    bloom_fpp: float = BLOOM_FPP.default
    bloom_max_entries: int = BLOOM_MAX_ENTRIES.default
    dup_policy: DuplicatePolicy | None = None
    insert_operation: InsertOperation | None = None
    combine_before_insert: bool = False
    overwrite_mode: OverwriteMode | None = None
    ordering_fields: tuple[str, ...] = ()
    merge_mode: str = ""
    parallelism: int = 0
    lock: LockConfig = field(default_factory=LockConfig)
    heartbeat: HeartbeatConfig = field(default_factory=HeartbeatConfig)

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> WriteConfig:
        """Read a map of `hoodie.*` texts; names that do not begin so are left alone.

        Raises:
            ConfigError: A setting is unknown (with near names) or its value cannot be used.
        """
        check_known(settings, known_setting_names())
        config = cls(
            max_file_size_bytes=MAX_FILE_SIZE.read(settings),
            small_file_limit_bytes=SMALL_FILE_LIMIT.read(settings),
            block_size_bytes=BLOCK_SIZE.read(settings),
            page_size_bytes=PAGE_SIZE.read(settings),
            compression=COMPRESSION.read(settings),
            dictionary=DICTIONARY.read(settings),
            record_size_bytes=RECORD_SIZE.read(settings),
            record_size_threshold=RECORD_SIZE_THRESHOLD.read(settings),
            auto_split=AUTO_SPLIT.read(settings),
            split_rows=SPLIT_ROWS.read(settings),
            metadata_enable=METADATA_ENABLE.read(settings),
            column_stats_enable=COLUMN_STATS_ENABLE.read(settings),
            column_stats_columns=COLUMN_STATS_COLUMNS.read(settings),
            column_stats_max_columns=COLUMN_STATS_MAX_COLUMNS.read(settings),
            partition_stats_enable=PARTITION_STATS_ENABLE.read(settings),
            record_index_enable=RECORD_INDEX_ENABLE.read(settings),
            bloom_entries=BLOOM_ENTRIES.read(settings),
            bloom_fpp=BLOOM_FPP.read(settings),
            bloom_max_entries=BLOOM_MAX_ENTRIES.read(settings),
            dup_policy=DUP_POLICY.read(settings),
            insert_operation=INSERT_OPERATION.read(settings),
            combine_before_insert=COMBINE_BEFORE_INSERT.read(settings),
            overwrite_mode=OVERWRITE_MODE.read(settings),
            ordering_fields=ORDERING_FIELDS.read(settings),
            merge_mode=MERGE_MODE.read(settings),
            parallelism=PARALLELISM.read(settings),
            lock=LockConfig.parse(settings),
            heartbeat=HeartbeatConfig.parse(settings),
        )
        if not 0 < config.bloom_fpp < 1:
            raise ConfigError(
                f"Setting {BLOOM_FPP.name} cannot be {config.bloom_fpp}",
                hint="It must be above 0 and below 1.",
                setting=BLOOM_FPP.name,
            )
        return config
