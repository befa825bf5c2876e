"""Which lock a table is written under."""

from __future__ import annotations

import re

from hudi_sql.config.lock import LockConfig, LockProvider
from hudi_sql.errors import ConfigError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.fs.uri import open_store
from hudi_sql.storage.transaction.locks.base import TableLock
from hudi_sql.storage.transaction.locks.file_lock import FileLock
from hudi_sql.storage.transaction.locks.os_lock import LOCK_FILE, OsLock, ProcessLock
from hudi_sql.storage.transaction.locks.storage_lock import StorageLock

__all__ = ["open_lock"]

_ABSOLUTE = re.compile(r"/|[a-zA-Z][a-zA-Z0-9+.-]*:")


class _Both:
    """Two locks taken in order: our own, and the one that other writers of the table know."""

    def __init__(self, first: TableLock, second: TableLock) -> None:
        self._first = first
        self._second = second

    def acquire(self) -> None:
        self._first.acquire()
        try:
            self._second.acquire()
        except BaseException:
            self._first.release()
            raise

    def release(self) -> None:
        try:
            self._second.release()
        finally:
            self._first.release()

    def check_held(self) -> None:
        self._first.check_held()
        self._second.check_held()


def open_lock(store: Store, config: LockConfig) -> TableLock:
    """Make the lock of a table; it is not taken yet.

    On local disks our OS lock is always part of it, so that two of our writers exclude each other when only one
    of them is configured for one of Hudi's providers.
    """
    storage_lock = StorageLock(
        store,
        wait_ms=config.wait_ms,
        validity_s=config.storage_validity_s,
        renew_s=config.storage_renew_s,
    )
    own: TableLock | None
    if (path := store.local_path(LOCK_FILE)) is not None:
        own = OsLock(store, path, config.wait_ms)
    elif store.uri.startswith("memory:"):
        own = ProcessLock(store, config.wait_ms)
    else:
        own = storage_lock if store.can_swap else None
    if own is None and config.provider is not LockProvider.FILE:
        raise ConfigError(
            "The store has no compare-and-swap, which the lock of a table in an object store needs",
            hint="Set hoodie.write.lock.provider to FileSystemBasedLockProvider, for all writers of the table.",
            table=store.uri,
            setting="hoodie.write.lock.provider",
        )
    match config.provider:
        case LockProvider.DEFAULT:
            assert own is not None
            return own
        case LockProvider.FILE:
            place, folder = _lock_folder(store, config.file_folder)
            file_lock = FileLock(
                place, folder=folder, wait_ms=config.wait_ms, expire_minutes=config.file_expire_minutes
            )
            return file_lock if own is None else _Both(own, file_lock)
        case LockProvider.STORAGE:
            assert own is not None
            return own if own is storage_lock else _Both(own, storage_lock)


def _lock_folder(store: Store, folder: str) -> tuple[Store, str]:
    """Where the lock file is: Hudi takes the folder as it is, so that several tables may share one outside."""
    if not folder:
        return store, ".hoodie"
    for root in (store.uri, store.local_path("")):
        if root and folder.startswith(f"{root}/"):
            return store, folder[len(root) + 1 :]
    if not _ABSOLUTE.match(folder):
        return store, folder
    place, _, name = folder.rpartition("/")
    return open_store(place or "/"), name
