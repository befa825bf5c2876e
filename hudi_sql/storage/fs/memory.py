"""Tables in the memory of this process (`memory://name`), for tests and examples."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import fs as pafs

from hudi_sql.errors import ObjectExistsError, ObjectNotFoundError, PreconditionFailedError
from hudi_sql.storage.fs.arrow import PublishingBuffer, StoreFileSystemHandler
from hudi_sql.storage.fs.base import FileInfo
from hudi_sql.storage.fs.paths import check_path, join_path

__all__ = ["MemoryStore"]


@dataclass(frozen=True, slots=True)
class _Object:
    data: bytes
    modified_ms: int
    version: int


@dataclass(slots=True)
class _Space:
    """All objects of this process, by full path, and what guards them."""

    objects: dict[str, _Object] = field(default_factory=dict)
    guard: threading.RLock = field(default_factory=threading.RLock)
    last_version: int = 0


_SPACE = _Space()


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """Objects below one `memory://` prefix. It pickles by name: another process sees its own memory.

    Args:
        root: What follows `memory://`, without slashes at the ends.
    """

    root: str

    @property
    def uri(self) -> str:
        """`memory://` and the root."""
        return f"memory://{self.root}"

    @property
    def can_swap(self) -> bool:
        """See `Store`."""
        return True

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of an object. Raises `ObjectNotFoundError`."""
        data = self._object(path).data
        return data[start:] if length is None else data[start : start + length]

    def info(self, path: str) -> FileInfo:
        """Size and time of an object. Raises `ObjectNotFoundError`."""
        return _info(path, self._object(path))

    def exists(self, path: str) -> bool:
        """Whether an object is there."""
        return self._full(path) in _SPACE.objects

    def list(self, folder: str) -> list[FileInfo]:
        """Immediate objects and prefixes, by name."""
        found: dict[str, FileInfo] = {}
        for info in self.walk(folder):
            name, slash, _ = info.path[len(folder) + 1 if folder else 0 :].partition("/")
            if slash:
                path = join_path(folder, name)
                found[name] = FileInfo(path=path, size_bytes=0, modified_ms=0, is_folder=True)
            else:
                found[name] = info
        return [found[name] for name in sorted(found)]

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """All objects below a folder."""
        prefix = f"{self._full(folder, may_be_root=True)}/"
        with _SPACE.guard:
            found = [(path, item) for path, item in _SPACE.objects.items() if path.startswith(prefix)]
        for path, item in found:
            yield _info(path[len(self.root) + 1 :], item)

    def create(self, path: str, data: bytes) -> None:
        """Create an object, or raise `ObjectExistsError`."""
        with _SPACE.guard:
            if self.exists(path):
                raise ObjectExistsError(f"{path} exists already", table=self.uri, path=path)
            self.put(path, data)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        full = self._full(path)
        with _SPACE.guard:
            _SPACE.last_version += 1
            _SPACE.objects[full] = _Object(bytes(data), time.time_ns() // 1_000_000, _SPACE.last_version)

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        """Bytes and the number of the write that put them there."""
        item = self._object(path)
        return item.data, str(item.version)

    def put_if(self, path: str, data: bytes, version: str) -> None:
        """Replace an object only if it still has this version, else raise `PreconditionFailedError`."""
        with _SPACE.guard:
            if self.read_versioned(path)[1] != version:
                raise PreconditionFailedError(
                    f"{path} was changed by someone else", table=self.uri, path=path, hint="Read it again."
                )
            self.put(path, data)

    def delete(self, path: str) -> bool:
        """Delete an object; False when it was not there."""
        with _SPACE.guard:
            return _SPACE.objects.pop(self._full(path), None) is not None

    def delete_tree(self, folder: str) -> None:
        """Delete all objects below a folder."""
        with _SPACE.guard:
            for info in list(self.walk(folder)):
                self.delete(info.path)

    def touch(self, path: str) -> None:
        """Create an empty object or renew its time."""
        with _SPACE.guard:
            self.put(path, self.read(path) if self.exists(path) else b"")

    def open_input(self, path: str) -> pa.NativeFile:
        """Random-access reader. Raises `ObjectNotFoundError`."""
        return pa.BufferReader(self._object(path).data)

    def open_output(self, path: str) -> pa.NativeFile:
        """Writer of a new object, which appears when it is closed."""
        check_path(path)
        return pa.PythonFile(PublishingBuffer(lambda data: self.put(path, data)), mode="w")

    def arrow_filesystem(self) -> tuple[pafs.FileSystem, str]:
        """A pyarrow file system over this store; its root is empty."""
        return pafs.PyFileSystem(StoreFileSystemHandler(self)), ""

    def local_path(self, path: str) -> str | None:
        """None: there are no files."""
        del path
        return None

    def _full(self, path: str, *, may_be_root: bool = False) -> str:
        return join_path(self.root, check_path(path, may_be_root=may_be_root))

    def _object(self, path: str) -> _Object:
        item = _SPACE.objects.get(self._full(path))
        if item is None:
            raise ObjectNotFoundError(f"There is no file {path}", table=self.uri, path=path)
        return item


def _info(path: str, item: _Object) -> FileInfo:
    return FileInfo(path=path, size_bytes=len(item.data), modified_ms=item.modified_ms, is_folder=False)
