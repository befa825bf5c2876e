"""What a table lock is: held for short whiles, by one writer on any machine."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Iterator
from typing import Protocol

from hudi_sql.errors import LockError

__all__ = ["TableLock", "holder_text", "lock_timeout", "waiting"]

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 1.0


class TableLock(Protocol):
    """Mutual exclusion of the writers of one table. Not re-entrant."""

    def acquire(self) -> None:
        """Take the lock, waiting as long as configured. Raises `LockError`."""

    def release(self) -> None:
        """Give the lock back; nothing happens when it is not held."""

    def check_held(self) -> None:
        """Make sure that the lock is still ours. Raises `LockError` when it was lost."""


def waiting(wait_ms: int) -> Iterator[int]:
    """Give the number of each attempt, sleeping between them, longer each time, until `wait_ms` are over."""
    deadline = time.monotonic() + wait_ms / 1000
    pause = _FIRST_PAUSE_S
    attempt = 0
    yield attempt
    while (left := deadline - time.monotonic()) > 0:
        # Jitter keeps two writers that began together from trying together for ever.
        time.sleep(min(left, pause * (0.5 + random.random())))  # noqa: S311
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)
        attempt += 1
        yield attempt


def holder_text() -> str:
    """Name this process for messages of writers that wait for it."""
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return f"process {os.getpid()} on {socket.gethostname()} since {since}"


def lock_timeout(table: str, wait_ms: int, holder: str) -> LockError:
    """Make the error of a lock that could not be had."""
    return LockError(
        f"The lock of the table was not free within {wait_ms} ms; it is held by {holder or 'an unknown writer'}",
        hint="Try again, or wait longer with hoodie.write.lock.wait_time_ms.",
        table=table,
        holder=holder,
    )
