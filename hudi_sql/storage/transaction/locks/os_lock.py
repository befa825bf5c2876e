"""Locks that die with their process: `flock` on local disks, a mutex for stores inside this process.

The lock file lies in `.hoodie/.locks/`, where Hudi keeps the lock of its own storage-based provider and where
no reader looks. It is never deleted: deleting a file that another process is about to lock would give two
holders.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path

from hudi_sql.errors import StorageError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.transaction.locks.base import holder_text, lock_timeout, waiting

__all__ = ["LOCK_FILE", "OsLock", "ProcessLock"]

LOCK_FILE = ".hoodie/.locks/writer.lock"
_HOLDER_BYTES = 200


class OsLock:
    """An exclusive `flock`; two holders in one process exclude each other too, each has its own open file."""

    def __init__(self, store: Store, path: str, wait_ms: int) -> None:
        self._table = store.uri
        self._path = Path(path)
        self._wait_ms = wait_ms
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises `LockError` with the holder's process."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as exc:
            raise StorageError(
                f"The lock file {self._path} cannot be opened: {exc.strerror or exc}", table=self._table
            ) from exc
        try:
            if self._try_for(handle):
                self._handle = handle
                return
            holder = os.pread(handle, _HOLDER_BYTES, 0).decode(errors="replace")
        except OSError as exc:
            raise StorageError(
                f"The lock file {self._path} cannot be locked: {exc.strerror or exc}",
                table=self._table,
                hint="Put the table on a disk whose file system has file locks.",
            ) from exc
        finally:
            if self._handle is None:
                os.close(handle)
        raise lock_timeout(self._table, self._wait_ms, holder)

    def _try_for(self, handle: int) -> bool:
        for _ in waiting(self._wait_ms):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            with contextlib.suppress(OSError):  # a full disk: the text is for messages only
                os.ftruncate(handle, 0)
                os.pwrite(handle, holder_text().encode(), 0)
            return True
        return False

    def release(self) -> None:
        """Give the lock back."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            # A child process that was forked meanwhile holds the file open too: closing alone would not do.
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    def check_held(self) -> None:
        """Do nothing: an OS lock cannot be lost while its process lives."""


_mutexes: dict[str, threading.Lock] = {}
_mutexes_guard = threading.Lock()


class ProcessLock:
    """A mutex by table, for stores that no other process can see."""

    def __init__(self, store: Store, wait_ms: int) -> None:
        self._table = store.uri
        self._wait_ms = wait_ms
        with _mutexes_guard:
            self._mutex = _mutexes.setdefault(store.uri, threading.Lock())
        self._held = False

    def acquire(self) -> None:
        """Take the lock. Raises `LockError`."""
        if not self._mutex.acquire(timeout=self._wait_ms / 1000):
            raise lock_timeout(self._table, self._wait_ms, "another thread of this process")
        self._held = True

    def release(self) -> None:
        """Give the lock back."""
        if self._held:
            self._held = False
            self._mutex.release()

    def check_held(self) -> None:
        """Do nothing: a mutex cannot be lost."""
