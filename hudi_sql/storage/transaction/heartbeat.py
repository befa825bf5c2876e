"""Signs of life of a running commit (write protocol notes §3).

Hudi looks at the modification time of `.hoodie/.heartbeat/<instant>` only. On local disks our own writers also hold
an OS lock on that file and say so in it: whether such a writer lives is then known at once, without waiting.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import threading
import time
from enum import Enum

from hudi_sql.config.lock import HeartbeatConfig
from hudi_sql.errors import ConflictError, ObjectNotFoundError, StorageError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.model.instant import InstantTime

__all__ = ["HEARTBEAT_FOLDER", "Heartbeat", "Pulse", "read_pulse", "remove_heartbeat"]

_log = logging.getLogger(__name__)

HEARTBEAT_FOLDER = ".hoodie/.heartbeat"
_MARK = "hudi_sql flock "


class Pulse(Enum):
    """What a heartbeat file tells of its writer."""

    NONE = "none"
    """There is no such file: the writer never had one, or is done."""
    ALIVE = "alive"
    DEAD = "dead"


def _path(instant: InstantTime) -> str:
    return f"{HEARTBEAT_FOLDER}/{instant}"


class Heartbeat:
    """The heartbeat of one instant, renewed by a thread between `start` and `stop`."""

    def __init__(self, store: Store, instant: InstantTime, config: HeartbeatConfig) -> None:
        self._store = store
        self._path = _path(instant)
        self._local = store.local_path(self._path)
        self._interval_s = config.interval_ms / 1000
        self._content = f"{_MARK if self._local else ''}{socket.gethostname()}".encode()
        self._started = False
        self._handle: int | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_started(self) -> bool:
        """Whether the file is ours to remove."""
        return self._started

    def start(self) -> None:
        """Create the file and begin to renew it. To be called under the table lock. Raises `ObjectExistsError`."""
        self._store.create(self._path, self._content)
        self._started = True
        if self._local:
            self._handle = os.open(self._local, os.O_RDWR | os.O_CLOEXEC)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._thread = threading.Thread(target=self._beat, name="hudi-sql-heartbeat", daemon=True)
        self._thread.start()

    def check_alive(self) -> None:
        """Make sure that nobody took this writer for dead. Raises `ConflictError`."""
        if not self._store.exists(self._path):
            raise ConflictError(
                "Another writer took this commit for dead and rolled it back",
                hint="Run the statement again; writers of one table need a common lock provider.",
                table=self._store.uri,
            )

    def stop(self, *, remove: bool) -> None:
        """Stop renewing; `remove` deletes the file too, else the next writer sees a dead one."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        try:
            if remove:
                self._store.delete(self._path)
        finally:
            if self._handle is not None:
                # A child process that was forked meanwhile holds the file open too: closing alone would not do.
                fcntl.flock(self._handle, fcntl.LOCK_UN)
                os.close(self._handle)
                self._handle = None

    def _beat(self) -> None:
        while not self._stop.wait(self._interval_s):
            try:
                if self._handle is not None:
                    os.utime(self._handle)
                elif self._store.exists(self._path):
                    self._store.put(self._path, self._content)
                else:
                    return  # rolled back by others; `check_alive` reports it
            except (OSError, StorageError) as exc:
                _log.warning("heartbeat %s could not be renewed: %s", self._path, exc)


def read_pulse(store: Store, instant: InstantTime, config: HeartbeatConfig) -> Pulse:
    """Tell whether the writer of an instant lives, as far as its heartbeat says."""
    path = _path(instant)
    try:
        content = store.read(path).decode(errors="replace")
        modified_ms = store.info(path).modified_ms
    except ObjectNotFoundError:
        return Pulse.NONE
    local = store.local_path(path)
    if local is not None and content == f"{_MARK}{socket.gethostname()}":
        return Pulse.ALIVE if _is_flocked(local) else Pulse.DEAD
    silence_ms = time.time() * 1000 - modified_ms
    return Pulse.DEAD if silence_ms > config.expiry_ms else Pulse.ALIVE


def remove_heartbeat(store: Store, instant: InstantTime) -> None:
    """Delete the heartbeat file of an instant that is over."""
    store.delete(_path(instant))


def _is_flocked(path: str) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)
