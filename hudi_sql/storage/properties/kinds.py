"""Closed sets of values in `hoodie.properties`, and defaults of absent ones (properties notes §4, §5)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

__all__ = [
    "KeyGeneratorType",
    "MergeMode",
    "TableType",
    "TimelineZone",
    "infer_key_generator",
    "infer_merge_mode",
    "key_generator_of_class",
]


class TableType(Enum):
    """How updates are stored."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


class MergeMode(Enum):
    """Which of two versions of a record stands."""

    COMMIT_TIME_ORDERING = "COMMIT_TIME_ORDERING"
    EVENT_TIME_ORDERING = "EVENT_TIME_ORDERING"
    CUSTOM = "CUSTOM"


class TimelineZone(Enum):
    """Zone in which instant times are written."""

    UTC = "UTC"
    LOCAL = "LOCAL"
    """Whatever zone the writing process has."""


class KeyGeneratorType(Enum):
    """How record keys and partition paths are made. Hudi's `_AVRO` twins make the same text."""

    SIMPLE = "SIMPLE"
    COMPLEX = "COMPLEX"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"
    NON_PARTITION = "NON_PARTITION"
    GLOBAL_DELETE = "GLOBAL_DELETE"
    AUTO_RECORD = "AUTO_RECORD"
    HOODIE_TABLE_METADATA = "HOODIE_TABLE_METADATA"
    SPARK_SQL = "SPARK_SQL"
    SPARK_SQL_UUID = "SPARK_SQL_UUID"
    SPARK_SQL_MERGE_INTO = "SPARK_SQL_MERGE_INTO"
    USER_PROVIDED = "USER_PROVIDED"
    """A class of the user's own, named by `hoodie.table.keygenerator.class`."""


_KEY_GENERATOR_CLASSES = {
    "SimpleKeyGenerator": KeyGeneratorType.SIMPLE,
    "SimpleAvroKeyGenerator": KeyGeneratorType.SIMPLE,
    "ComplexKeyGenerator": KeyGeneratorType.COMPLEX,
    "ComplexAvroKeyGenerator": KeyGeneratorType.COMPLEX,
    "TimestampBasedKeyGenerator": KeyGeneratorType.TIMESTAMP,
    "TimestampBasedAvroKeyGenerator": KeyGeneratorType.TIMESTAMP,
    "CustomKeyGenerator": KeyGeneratorType.CUSTOM,
    "CustomAvroKeyGenerator": KeyGeneratorType.CUSTOM,
    "NonpartitionedKeyGenerator": KeyGeneratorType.NON_PARTITION,
    "NonpartitionedAvroKeyGenerator": KeyGeneratorType.NON_PARTITION,
    "GlobalDeleteKeyGenerator": KeyGeneratorType.GLOBAL_DELETE,
    "GlobalAvroDeleteKeyGenerator": KeyGeneratorType.GLOBAL_DELETE,
    "AutoRecordGenWrapperKeyGenerator": KeyGeneratorType.AUTO_RECORD,
    "AutoRecordGenWrapperAvroKeyGenerator": KeyGeneratorType.AUTO_RECORD,
}
_OTHER_CLASSES = {
    "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator": KeyGeneratorType.HOODIE_TABLE_METADATA,
    "org.apache.spark.sql.hudi.command.SqlKeyGenerator": KeyGeneratorType.SPARK_SQL,
    "org.apache.spark.sql.hudi.command.UuidKeyGenerator": KeyGeneratorType.SPARK_SQL_UUID,
    "org.apache.spark.sql.hudi.command.MergeIntoKeyGenerator": KeyGeneratorType.SPARK_SQL_MERGE_INTO,
}

_EVENT_TIME_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
_COMMIT_TIME_STRATEGY = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
_EVENT_TIME_PAYLOADS = {"DefaultHoodieRecordPayload", "EventTimeAvroPayload"}
_COMMIT_TIME_PAYLOADS = {"OverwriteWithLatestAvroPayload"}
_PAYLOAD_PACKAGE = "org.apache.hudi.common.model."


def key_generator_of_class(class_name: str) -> KeyGeneratorType:
    """Type of a key generator class; `USER_PROVIDED` for classes that are not Hudi's."""
    package, _, name = class_name.rpartition(".")
    if package == "org.apache.hudi.keygen" and name in _KEY_GENERATOR_CLASSES:
        return _KEY_GENERATOR_CLASSES[name]
    return _OTHER_CLASSES.get(class_name, KeyGeneratorType.USER_PROVIDED)


def infer_key_generator(record_key_fields: Sequence[str], partition_spec: str) -> KeyGeneratorType:
    """Type for a table that states none (`KeyGenUtils.inferKeyGeneratorType`)."""
    if not partition_spec:
        return KeyGeneratorType.NON_PARTITION
    if ":" in partition_spec:
        return KeyGeneratorType.CUSTOM
    if len(record_key_fields) <= 1 and "," not in partition_spec:
        return KeyGeneratorType.SIMPLE
    return KeyGeneratorType.COMPLEX


def infer_merge_mode(
    version: int, *, stated: MergeMode | None, payload: str | None, strategy: str | None, has_ordering: bool
) -> MergeMode:
    """Merge mode of a table: stated from version 8 on, before that the payload class decides."""
    if stated is not None and version >= 8:
        return stated
    by_payload = _mode_of_payload(payload)
    by_strategy = _mode_of_strategy(strategy)
    first, second = (by_strategy, by_payload) if version >= 8 else (by_payload, by_strategy)
    if first is not None or second is not None:
        return first or second or MergeMode.CUSTOM
    if version < 8:
        # Writers up to 0.15 had OverwriteWithLatestAvroPayload as the default, and did not write it down.
        return MergeMode.COMMIT_TIME_ORDERING
    return MergeMode.EVENT_TIME_ORDERING if has_ordering else MergeMode.COMMIT_TIME_ORDERING


def _mode_of_payload(payload: str | None) -> MergeMode | None:
    if not payload:
        return None
    name = payload.removeprefix(_PAYLOAD_PACKAGE)
    if name in _EVENT_TIME_PAYLOADS:
        return MergeMode.EVENT_TIME_ORDERING
    return MergeMode.COMMIT_TIME_ORDERING if name in _COMMIT_TIME_PAYLOADS else MergeMode.CUSTOM


def _mode_of_strategy(strategy: str | None) -> MergeMode | None:
    if not strategy:
        return None
    if strategy == _EVENT_TIME_STRATEGY:
        return MergeMode.EVENT_TIME_ORDERING
    return MergeMode.COMMIT_TIME_ORDERING if strategy == _COMMIT_TIME_STRATEGY else MergeMode.CUSTOM
