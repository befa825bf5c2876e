"""Settings of the table lock and of heartbeats (write protocol notes §3 and §5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from hudi_sql.config.key import ConfigKey, non_negative_int, text
from hudi_sql.errors import ConfigError

__all__ = ["LOCK_KEYS", "HeartbeatConfig", "LockConfig", "LockProvider"]


class LockProvider(Enum):
    """Which contract on disk the lock follows."""

    DEFAULT = "default"
    """An OS lock on local disks, the storage-based lock on object stores."""
    FILE = "file"
    STORAGE = "storage"


_PROVIDER_CLASSES = {
    "": LockProvider.DEFAULT,
    "InProcessLockProvider": LockProvider.DEFAULT,
    "FileSystemBasedLockProvider": LockProvider.FILE,
    "StorageBasedLockProvider": LockProvider.STORAGE,
}


def _provider(value: str) -> LockProvider:
    provider = _PROVIDER_CLASSES.get(value.rsplit(".", 1)[-1])
    if provider is None:
        raise ValueError("known are " + ", ".join(name for name in _PROVIDER_CLASSES if name))
    return provider


PROVIDER = ConfigKey(
    name="hoodie.write.lock.provider",
    parse=_provider,
    default=LockProvider.DEFAULT,
    doc="Class name of Hudi's lock provider that other writers of the table use.",
)
WAIT_MS = ConfigKey(
    name="hoodie.write.lock.wait_time_ms",
    parse=non_negative_int,
    default=60_000,
    doc="How long to wait for the lock, in milliseconds.",
)
FILE_FOLDER = ConfigKey(
    name="hoodie.write.lock.filesystem.path",
    parse=text,
    default="",
    doc="Folder of the file-system lock: a path or URI, or relative to the table; `.hoodie` unless given.",
)
FILE_EXPIRE_MINUTES = ConfigKey(
    name="hoodie.write.lock.filesystem.expire",
    parse=non_negative_int,
    default=0,
    doc="Minutes after which a file-system lock left behind may be taken over; 0 is never.",
)
STORAGE_VALIDITY_S = ConfigKey(
    name="hoodie.write.lock.storage.validity.timeout.secs",
    parse=non_negative_int,
    default=300,
    doc="Seconds for which a storage-based lock holds without being renewed.",
)
STORAGE_RENEW_S = ConfigKey(
    name="hoodie.write.lock.storage.renew.interval.secs",
    parse=non_negative_int,
    default=30,
    doc="Seconds between renewals of a storage-based lock; at most a tenth of its validity.",
)
HEARTBEAT_INTERVAL_MS = ConfigKey(
    name="hoodie.client.heartbeat.interval_in_ms",
    parse=non_negative_int,
    default=60_000,
    doc="Milliseconds between heartbeats of a running commit.",
)
HEARTBEAT_MISSES = ConfigKey(
    name="hoodie.client.heartbeat.tolerable.misses",
    parse=non_negative_int,
    default=2,
    doc="Heartbeats that may be missed before a commit counts as dead.",
)

LOCK_KEYS: tuple[ConfigKey[LockProvider] | ConfigKey[int] | ConfigKey[str], ...] = (
    PROVIDER,
    WAIT_MS,
    FILE_FOLDER,
    FILE_EXPIRE_MINUTES,
    STORAGE_VALIDITY_S,
    STORAGE_RENEW_S,
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_MISSES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockConfig:
    """How the table lock is taken."""

    provider: LockProvider = LockProvider.DEFAULT
    wait_ms: int = 60_000
    file_folder: str = ""
    file_expire_minutes: int = 0
    storage_validity_s: int = 300
    storage_renew_s: int = 30

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> LockConfig:
        """Read the settings that concern the lock.

        Raises:
            ConfigError: A value cannot be used, or values do not fit one another.
        """
        config = cls(
            provider=PROVIDER.read(settings),
            wait_ms=WAIT_MS.read(settings),
            file_folder=FILE_FOLDER.read(settings).rstrip("/"),
            file_expire_minutes=FILE_EXPIRE_MINUTES.read(settings),
            storage_validity_s=STORAGE_VALIDITY_S.read(settings),
            storage_renew_s=STORAGE_RENEW_S.read(settings),
        )
        if config.storage_renew_s < 1 or config.storage_renew_s * 10 > config.storage_validity_s:
            raise ConfigError(
                f"A storage-based lock valid for {config.storage_validity_s} s cannot be renewed every "
                f"{config.storage_renew_s} s",
                hint=f"{STORAGE_RENEW_S.name} must be 1 to a tenth of {STORAGE_VALIDITY_S.name}.",
                setting=STORAGE_RENEW_S.name,
            )
        return config


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatConfig:
    """How a running commit shows that it lives."""

    interval_ms: int = 60_000
    tolerable_misses: int = 2

    @property
    def expiry_ms(self) -> int:
        """Silence after which a commit that had a heartbeat counts as dead."""
        return self.interval_ms * self.tolerable_misses

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> HeartbeatConfig:
        """Read the settings that concern heartbeats.

        Raises:
            ConfigError: A value cannot be used.
        """
        config = cls(
            interval_ms=HEARTBEAT_INTERVAL_MS.read(settings), tolerable_misses=HEARTBEAT_MISSES.read(settings)
        )
        if config.expiry_ms < 1:
            raise ConfigError(
                "Heartbeats would expire at once",
                hint=f"{HEARTBEAT_INTERVAL_MS.name} and {HEARTBEAT_MISSES.name} must be above zero.",
                setting=HEARTBEAT_INTERVAL_MS.name,
            )
        return config
