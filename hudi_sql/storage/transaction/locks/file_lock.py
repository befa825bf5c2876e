"""Hudi's FileSystemBasedLockProvider: whoever creates `<folder>/lock` holds the lock (write protocol notes §5).

Java writers look at the file's existence only. We write a token into it, so that after a lost answer we know whose
file it is, and so that we never delete the file of another owner.
"""

from __future__ import annotations

import time
import uuid

from hudi_sql.errors import (
    LockError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    TransientStorageError,
)
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.transaction.locks.base import holder_text, lock_timeout, waiting

__all__ = ["FileLock"]


class FileLock:
    """The lock file of Hudi's file-system lock provider."""

    def __init__(self, store: Store, *, folder: str, wait_ms: int, expire_minutes: int) -> None:
        self._store = store
        self._path = f"{folder}/lock"
        self._wait_ms = wait_ms
        self._expire_ms = expire_minutes * 60_000
        self._token = b""

    def acquire(self) -> None:
        """Create the file. Raises `LockError` when others keep it for too long."""
        token = f"{uuid.uuid4()} {holder_text()}".encode()
        for _ in waiting(self._wait_ms):
            try:
                if self._try(token):
                    self._token = token
                    return
            except TransientStorageError:
                continue  # if our file did get there, the next round finds it
        self._remove(token)
        raise lock_timeout(self._store.uri, self._wait_ms, self._holder())

    def release(self) -> None:
        """Delete the file, if it is still ours."""
        token, self._token = self._token, b""
        if token:
            self._remove(token)

    def check_held(self) -> None:
        """Make sure that nobody took the lock over after its expiry."""
        content = self._content()
        if content != self._token:
            fate = "is gone" if content is None else f"was taken over by {self._holder()}"
            raise LockError(
                f"The lock file {self._path} {fate}",
                hint="Try again; raise hoodie.write.lock.filesystem.expire if commits take that long.",
                table=self._store.uri,
            )

    def _try(self, token: bytes) -> bool:
        try:
            self._store.create(self._path, token)
        except ObjectExistsError:
            if self._content() == token:  # our own create, its answer was lost
                return True
            self._remove_if_expired()
            return False
        return True

    def _remove(self, token: bytes) -> None:
        if self._content() == token:
            self._store.delete(self._path)

    def _content(self) -> bytes | None:
        try:
            return self._store.read(self._path)
        except ObjectNotFoundError:
            return None

    def _holder(self) -> str:
        try:
            content = (self._content() or b"").decode(errors="replace").split(" ", 1)
        except StorageError:
            return ""
        return content[1] if len(content) > 1 else f"the owner of the file {self._path}"

    def _remove_if_expired(self) -> None:
        if not self._expire_ms:
            return
        try:
            age_ms = time.time() * 1000 - self._store.info(self._path).modified_ms
        except ObjectNotFoundError:
            return
        if age_ms > self._expire_ms:
            self._store.delete(self._path)
