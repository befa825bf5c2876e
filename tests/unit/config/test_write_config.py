from __future__ import annotations

import pickle

import pytest

from hudi_sql.config.lock import LOCK_KEYS, HeartbeatConfig, LockConfig, LockProvider
from hudi_sql.config.write import (
    WRITE_KEYS,
    DuplicatePolicy,
    InsertOperation,
    OverwriteMode,
    WriteConfig,
    known_setting_names,
)
from hudi_sql.errors import ConfigError


def test_defaults_are_those_of_the_keys():
    assert WriteConfig.parse({}) == WriteConfig()
    assert LockConfig.parse({}) == LockConfig()
    assert HeartbeatConfig.parse({}) == HeartbeatConfig()
    assert WriteConfig().max_file_size_bytes == 120 * 1024 * 1024
    assert WriteConfig().small_file_limit_bytes == 100 * 1024 * 1024
    assert WriteConfig().compression == "zstd"


def test_names_are_unique_and_documented():
    names = known_setting_names()
    assert len(names) == len(set(names))
    for key in (*WRITE_KEYS, *LOCK_KEYS):
        assert all(name.startswith("hoodie.") for name in key.names)
        assert key.doc.endswith(".")


@pytest.mark.parametrize(
    ("setting", "given", "field", "value"),
    [
        ("hoodie.parquet.max.file.size", "1000", "max_file_size_bytes", 1000),
        ("hoodie.parquet.small.file.limit", "0", "small_file_limit_bytes", 0),
        ("hoodie.parquet.block.size", "1", "block_size_bytes", 1),
        ("hoodie.parquet.page.size", "2", "page_size_bytes", 2),
        ("hoodie.parquet.compression.codec", "GZIP", "compression", "gzip"),
        ("hoodie.parquet.compression.codec", "uncompressed", "compression", "none"),
        ("hoodie.parquet.dictionary.enabled", "false", "dictionary", False),
        ("hoodie.copyonwrite.record.size.estimate", "16", "record_size_bytes", 16),
        ("hoodie.record.size.estimation.threshold", "0.5", "record_size_threshold", 0.5),
        ("hoodie.copyonwrite.insert.auto.split", "false", "auto_split", False),
        ("hoodie.copyonwrite.insert.split.size", "3", "split_rows", 3),
        ("hoodie.metadata.enable", "false", "metadata_enable", False),
        ("hoodie.metadata.index.column.stats.enable", "false", "column_stats_enable", False),
        ("hoodie.metadata.index.column.stats.column.list", "a, b,,", "column_stats_columns", ("a", "b")),
        ("hoodie.metadata.index.column.stats.max.columns.to.index", "2", "column_stats_max_columns", 2),
        ("hoodie.metadata.index.partition.stats.enable", "false", "partition_stats_enable", False),
        ("hoodie.metadata.global.record.level.index.enable", "true", "record_index_enable", True),
        ("hoodie.metadata.record.index.enable", "false", "record_index_enable", False),
        ("hoodie.index.bloom.num_entries", "5", "bloom_entries", 5),
        ("hoodie.index.bloom.fpp", "0.01", "bloom_fpp", 0.01),
        ("hoodie.bloom.index.filter.dynamic.max.entries", "6", "bloom_max_entries", 6),
        ("hoodie.datasource.insert.dup.policy", "DROP", "dup_policy", DuplicatePolicy.DROP),
        (
            "hoodie.spark.sql.insert.into.operation",
            "bulk_insert",
            "insert_operation",
            InsertOperation.BULK_INSERT,
        ),
        ("hoodie.datasource.write.operation", "upsert", "insert_operation", InsertOperation.UPSERT),
        ("hoodie.combine.before.insert", "true", "combine_before_insert", True),
        ("hoodie.datasource.overwrite.mode", "dynamic", "overwrite_mode", OverwriteMode.DYNAMIC),
        ("hoodie.datasource.write.precombine.field", "ts", "ordering_fields", ("ts",)),
        ("hoodie.write.record.merge.mode", "CUSTOM", "merge_mode", "CUSTOM"),
        ("hoodie.insert.shuffle.parallelism", "4", "parallelism", 4),
    ],
)
def test_every_setting_reaches_its_field(setting, given, field, value):
    config = WriteConfig.parse({setting: given})
    assert getattr(config, field) == value
    assert config != WriteConfig() or value == getattr(WriteConfig(), field)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("hoodie.parquet.max.file.size", "0"),
        ("hoodie.parquet.compression.codec", "zip"),
        ("hoodie.index.bloom.fpp", "0"),
        ("hoodie.index.bloom.fpp", "1"),
        ("hoodie.datasource.insert.dup.policy", "ignore"),
        ("hoodie.spark.sql.insert.into.operation", "delete"),
        ("hoodie.parquet.dictionary.enabled", "on"),
        ("hoodie.write.lock.provider", "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider"),
        ("hoodie.write.lock.wait_time_ms", "-1"),
        ("hoodie.client.heartbeat.interval_in_ms", "0"),
        ("hoodie.client.heartbeat.tolerable.misses", "0"),
        ("hoodie.write.lock.storage.renew.interval.secs", "0"),
        ("hoodie.write.lock.storage.renew.interval.secs", "31"),
        ("hoodie.write.lock.storage.validity.timeout.secs", "299"),
    ],
)
def test_bad_values_name_their_setting(setting, value):
    with pytest.raises(ConfigError) as caught:
        WriteConfig.parse({setting: value})
    assert setting in str(caught.value)


def test_unknown_settings_are_refused():
    with pytest.raises(ConfigError) as caught:
        WriteConfig.parse({"hoodie.parquet.compresion.codec": "zstd"})
    assert "hoodie.parquet.compression.codec" in caught.value.near


def test_settings_that_only_spark_needs_pass():
    settings = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "spark.executor.memory": "1g",
    }
    assert WriteConfig.parse(settings) == WriteConfig()


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("", LockProvider.DEFAULT),
        ("org.apache.hudi.client.transaction.lock.InProcessLockProvider", LockProvider.DEFAULT),
        ("org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider", LockProvider.FILE),
        ("org.apache.hudi.client.transaction.lock.StorageBasedLockProvider", LockProvider.STORAGE),
        ("FileSystemBasedLockProvider", LockProvider.FILE),
    ],
)
def test_providers_go_by_the_names_of_their_classes(name, provider):
    assert WriteConfig.parse({"hoodie.write.lock.provider": name}).lock.provider is provider


def test_lock_and_heartbeat_settings_arrive():
    config = WriteConfig.parse(
        {
            "hoodie.write.lock.wait_time_ms": "5",
            "hoodie.write.lock.filesystem.path": "/shared/locks/",
            "hoodie.write.lock.filesystem.expire": "6",
            "hoodie.write.lock.storage.validity.timeout.secs": "70",
            "hoodie.write.lock.storage.renew.interval.secs": "7",
            "hoodie.client.heartbeat.interval_in_ms": "80",
            "hoodie.client.heartbeat.tolerable.misses": "3",
        }
    )
    assert config.lock == LockConfig(
        wait_ms=5,
        file_folder="/shared/locks",
        file_expire_minutes=6,
        storage_validity_s=70,
        storage_renew_s=7,
    )
    assert config.heartbeat.expiry_ms == 240


def test_a_config_pickles():
    config = WriteConfig.parse({"hoodie.parquet.max.file.size": "1000"})
    assert pickle.loads(pickle.dumps(config)) == config
