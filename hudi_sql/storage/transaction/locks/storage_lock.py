"""Hudi's StorageBasedLockProvider: one JSON object, replaced by compare-and-swap (write protocol notes §5).

The object is free when it is missing, says `expired`, or is valid no more. It is never deleted.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from dataclasses import dataclass

from hudi_sql.errors import (
    LockError,
    ObjectExistsError,
    ObjectNotFoundError,
    PreconditionFailedError,
    StorageError,
    TransientStorageError,
)
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.transaction.locks.base import lock_timeout, waiting

__all__ = ["STORAGE_LOCK_FILE", "StorageLock"]

STORAGE_LOCK_FILE = ".hoodie/.locks/table_lock.json"
_CLOCK_TOLERANCE_MS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    expired: bool
    valid_until_ms: int
    owner: str

    def encode(self) -> bytes:
        return json.dumps(
            {"expired": self.expired, "validUntil": self.valid_until_ms, "owner": self.owner},
            separators=(",", ":"),
        ).encode()

    @property
    def is_free(self) -> bool:
        return self.expired or _now_ms() > self.valid_until_ms + _CLOCK_TOLERANCE_MS


def _now_ms() -> int:
    return int(time.time() * 1000)


class StorageLock:
    """A lock in the table's own store, kept by renewing it from a thread."""

    def __init__(self, store: Store, *, wait_ms: int, validity_s: float, renew_s: float) -> None:
        self._store = store
        self._wait_ms = wait_ms
        self._validity_ms = int(validity_s * 1000)
        self._renew_s = renew_s
        self._owner = ""
        self._stop = threading.Event()
        self._renewer: threading.Thread | None = None

    def acquire(self) -> None:
        """Swap our state in. Raises `LockError` when another owner keeps the lock for too long."""
        owner = str(uuid.uuid4())
        seen: _State | None = None
        for _ in waiting(self._wait_ms):
            try:
                seen, version = self._load()
                if seen is not None and not seen.is_free and seen.owner != owner:
                    continue
                if not self._swap(self._state(owner), version):
                    continue
            except TransientStorageError:
                continue  # if our state did get there, the next round finds it
            self._owner = owner
            self._stop.clear()
            self._renewer = threading.Thread(target=self._keep, name="hudi-sql-lock", daemon=True)
            self._renewer.start()
            return
        self._give_back(owner)
        raise lock_timeout(self._store.uri, self._wait_ms, f"owner {seen.owner}" if seen else "")

    def release(self) -> None:
        """Mark our state expired, if the lock is still ours."""
        if not self._owner:
            return
        self._stop.set()
        if self._renewer is not None:
            self._renewer.join()
        owner, self._owner = self._owner, ""
        self._give_back(owner)

    def _state(self, owner: str) -> _State:
        return _State(expired=False, valid_until_ms=_now_ms() + self._validity_ms, owner=owner)

    def _give_back(self, owner: str) -> None:
        try:
            state, version = self._load()
            if state is not None and state.owner == owner and not state.expired:
                self._swap(_State(expired=True, valid_until_ms=state.valid_until_ms, owner=owner), version)
        except (StorageError, LockError):
            return  # it expires by itself

    def check_held(self) -> None:
        """Make sure that the lock was not taken over. Raises `LockError`."""
        state, _ = self._load()
        # Others wait for a while longer before they take it; the time between is what a last step may need.
        if state is None or state.owner != self._owner or state.expired or _now_ms() >= state.valid_until_ms:
            raise LockError(
                "The lock of the table was lost before the commit was complete",
                hint="Try again; raise hoodie.write.lock.storage.validity.timeout.secs if the store is slow.",
                table=self._store.uri,
            )

    def _keep(self) -> None:
        while not self._stop.wait(self._renew_s):
            try:
                state, version = self._load()
                if state is None or state.owner != self._owner or state.expired:
                    return
                self._swap(self._state(self._owner), version)
            except (StorageError, LockError):
                continue  # the next round tries again; `check_held` tells whether it came too late

    def _load(self) -> tuple[_State | None, str | None]:
        try:
            data, version = self._store.read_versioned(STORAGE_LOCK_FILE)
        except ObjectNotFoundError:
            return None, None
        try:
            fields = json.loads(data)
            state = _State(
                expired=bool(fields["expired"]),
                valid_until_ms=int(fields["validUntil"]),
                owner=str(fields["owner"]),
            )
        except (ValueError, KeyError, TypeError) as exc:
            raise LockError(
                f"The lock file {STORAGE_LOCK_FILE} cannot be understood",
                hint="Remove it once no writer runs.",
                table=self._store.uri,
            ) from exc
        return state, version

    def _swap(self, state: _State, version: str | None) -> bool:
        """Write `state` in place of what was seen; after a lost answer look whose state it is."""
        try:
            if version is None:
                self._store.create(STORAGE_LOCK_FILE, state.encode())
            else:
                self._store.put_if(STORAGE_LOCK_FILE, state.encode(), version)
        except (
            ObjectExistsError,
            ObjectNotFoundError,
            PreconditionFailedError,
            TransientStorageError,
        ):
            now, _ = self._load()
            return now == state
        return True
