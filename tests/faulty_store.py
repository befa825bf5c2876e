"""A store that fails where a test says so: every call that changes something can be refused, lost or answered wrongly."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
from pyarrow import fs as pafs

from hudi_sql.storage.fs.arrow import StoreFileSystemHandler
from hudi_sql.storage.fs.base import Store

__all__ = ["Crash", "CrashAt", "FaultyStore"]

Hook = Callable[[str, str], None]
"""Gets the name of the call and the path; raises to fail it."""


class Crash(BaseException):
    """The process died here."""


class CrashAt:
    """Dies at one changing call, before or after it took place, and stays dead: no call does anything any more."""

    def __init__(self, number: int, *, after: bool) -> None:
        self.number = number
        self.is_after = after
        self.count = 0
        self.is_dead = False
        self.died_at: tuple[str, str] | None = None
        self._guard = threading.Lock()

    def check(self, operation: str, path: str) -> None:
        """Refuse calls of the dead."""
        del operation, path
        if self.is_dead:
            raise Crash

    def before(self, operation: str, path: str) -> None:
        """Die before the call."""
        with self._guard:
            self.check(operation, path)
            self.count += 1
            if self.count == self.number and not self.is_after:
                self._die(operation, path)

    def after(self, operation: str, path: str) -> None:
        """Die after the call."""
        with self._guard:
            if self.count >= self.number and self.is_after and not self.is_dead:
                self._die(operation, path)

    def _die(self, operation: str, path: str) -> None:
        self.is_dead = True
        self.died_at = operation, path
        raise Crash(f"{operation} {path}")


def _nothing(operation: str, path: str) -> None:
    del operation, path


class FaultyStore:
    """Hands everything on to another store, and asks hooks before and after each call that changes something."""

    def __init__(
        self, store: Store, *, before: Hook = _nothing, after: Hook = _nothing, check: Hook = _nothing
    ) -> None:
        self.store = store
        self.before = before
        self.after = after
        self.check = check

    @classmethod
    def crashing(cls, store: Store, crash: CrashAt) -> FaultyStore:
        return cls(store, before=crash.before, after=crash.after, check=crash.check)

    @property
    def uri(self) -> str:
        return self.store.uri

    @property
    def can_swap(self) -> bool:
        return self.store.can_swap

    def _change(self, operation: str, path: str, *args: object) -> object:
        self.before(operation, path)
        result = getattr(self.store, operation)(path, *args)
        self.after(operation, path)
        return result

    def _ask(self, operation: str, path: str, **options: object):
        self.check(operation, path)
        return getattr(self.store, operation)(path, **options)

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        return self._ask("read", path, start=start, length=length)

    def info(self, path: str):
        return self._ask("info", path)

    def exists(self, path: str) -> bool:
        return self._ask("exists", path)

    def list(self, folder: str):
        return self._ask("list", folder)

    def walk(self, folder: str):
        return self._ask("walk", folder)

    def read_versioned(self, path: str):
        return self._ask("read_versioned", path)

    def create(self, path: str, data: bytes) -> None:
        self._change("create", path, data)

    def put(self, path: str, data: bytes) -> None:
        self._change("put", path, data)

    def put_if(self, path: str, data: bytes, version: str) -> None:
        self._change("put_if", path, data, version)

    def delete(self, path: str) -> bool:
        return self._change("delete", path)

    def delete_tree(self, folder: str) -> None:
        self._change("delete_tree", folder)

    def touch(self, path: str) -> None:
        self._change("touch", path)

    def open_input(self, path: str) -> pa.NativeFile:
        return self._ask("open_input", path)

    def open_output(self, path: str) -> pa.NativeFile:
        self.before("open_output", path)
        sink = self.store.open_output(path)
        self.after("open_output", path)
        return pa.PythonFile(_Sink(self, path, sink), mode="w")

    def arrow_filesystem(self):
        return pafs.PyFileSystem(StoreFileSystemHandler(self)), ""

    def local_path(self, path: str) -> str | None:
        return self.store.local_path(path)


class _Sink:
    """A file that is written; closing it is what may fail."""

    def __init__(self, owner: FaultyStore, path: str, sink: pa.NativeFile) -> None:
        self._owner = owner
        self._path = path
        self._sink = sink
        self.closed = False

    def write(self, data: bytes) -> int:
        self._owner.check("write", self._path)
        return self._sink.write(data)

    def tell(self) -> int:
        return self._sink.tell()

    def flush(self) -> None:
        self._sink.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._owner.before("close", self._path)
        self._sink.close()
        self._owner.after("close", self._path)
