"""A folder of a store as a store: the metadata table is a table inside a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyarrow import fs as pafs

from hudi_sql.storage.fs.base import FileInfo, Store
from hudi_sql.storage.fs.paths import check_path, join_path

__all__ = ["SubStore"]


@dataclass(frozen=True, slots=True)
class SubStore:
    """All that lies below `folder` of `store`. Errors name paths of the outer store."""

    store: Store
    folder: str

    @property
    def uri(self) -> str:
        """Location of the folder."""
        return f"{self.store.uri}/{self.folder}"

    @property
    def can_swap(self) -> bool:
        """See `Store`."""
        return self.store.can_swap

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        """See `Store`."""
        return self.store.read(self._outer(path), start=start, length=length)

    def info(self, path: str) -> FileInfo:
        """See `Store`."""
        return self._inner(self.store.info(self._outer(path)))

    def exists(self, path: str) -> bool:
        """See `Store`."""
        return self.store.exists(self._outer(path))

    def list(self, folder: str) -> list[FileInfo]:
        """See `Store`."""
        return [self._inner(info) for info in self.store.list(self._outer(folder, may_be_root=True))]

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """See `Store`."""
        return (self._inner(info) for info in self.store.walk(self._outer(folder, may_be_root=True)))

    def create(self, path: str, data: bytes) -> None:
        """See `Store`."""
        self.store.create(self._outer(path), data)

    def put(self, path: str, data: bytes) -> None:
        """See `Store`."""
        self.store.put(self._outer(path), data)

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        """See `Store`."""
        return self.store.read_versioned(self._outer(path))

    def put_if(self, path: str, data: bytes, version: str) -> None:
        """See `Store`."""
        self.store.put_if(self._outer(path), data, version)

    def delete(self, path: str) -> bool:
        """See `Store`."""
        return self.store.delete(self._outer(path))

    def delete_tree(self, folder: str) -> None:
        """See `Store`."""
        self.store.delete_tree(self._outer(folder, may_be_root=True))

    def touch(self, path: str) -> None:
        """See `Store`."""
        self.store.touch(self._outer(path))

    def open_input(self, path: str) -> pa.NativeFile:
        """See `Store`."""
        return self.store.open_input(self._outer(path))

    def open_output(self, path: str) -> pa.NativeFile:
        """See `Store`."""
        return self.store.open_output(self._outer(path))

    def arrow_filesystem(self) -> tuple[pafs.FileSystem, str]:
        """See `Store`."""
        filesystem, root = self.store.arrow_filesystem()
        return filesystem, join_path(root, self.folder)

    def local_path(self, path: str) -> str | None:
        """See `Store`."""
        return self.store.local_path(self._outer(path, may_be_root=True))

    def _outer(self, path: str, *, may_be_root: bool = False) -> str:
        return join_path(self.folder, check_path(path, may_be_root=may_be_root))

    def _inner(self, info: FileInfo) -> FileInfo:
        return replace(info, path=info.path[len(self.folder) + 1 :])
