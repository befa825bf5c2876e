"""What storage asks of a store. Paths are relative to its root, `/`-separated, no slash at either end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyarrow import fs as pafs

__all__ = ["FileInfo", "Store"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """One file or folder below a store's root."""

    path: str
    size_bytes: int
    modified_ms: int
    is_folder: bool

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rsplit("/", 1)[-1]


class Store(Protocol):
    """A folder of files on a disk or in an object store: the root of one table.

    All failures are `StorageError`s. A store pickles (tasks travel).
    """

    @property
    def uri(self) -> str:
        """The root as Hudi writes it into plans: an absolute path or URI without a trailing slash."""

    @property
    def can_swap(self) -> bool:
        """Whether `put_if` is there: some stores have no compare-and-swap."""

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file. Raises `ObjectNotFoundError`."""

    def info(self, path: str) -> FileInfo:
        """Size and time of a file. Raises `ObjectNotFoundError`."""

    def exists(self, path: str) -> bool:
        """Whether a file is there."""

    def list(self, folder: str) -> list[FileInfo]:
        """Immediate files and folders, by name; empty when the folder is missing."""

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """All files below a folder (no folders), in no order."""

    def create(self, path: str, data: bytes) -> None:
        """Create a file whole, or raise `ObjectExistsError`; never visible half-written."""

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file whole. On local disks the stale `.crc` sidecar of Hadoop goes too."""

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        """Bytes and an opaque version of them, for `put_if`."""

    def put_if(self, path: str, data: bytes, version: str) -> None:
        """Replace a file only if it still has this version, else raise `PreconditionFailedError`."""

    def delete(self, path: str) -> bool:
        """Delete a file (and its `.crc`); False when it was not there."""

    def delete_tree(self, folder: str) -> None:
        """Delete a folder and all below; nothing happens when it is missing."""

    def touch(self, path: str) -> None:
        """Create an empty file or renew its modification time."""

    def open_input(self, path: str) -> pa.NativeFile:
        """Random-access reader. Raises `ObjectNotFoundError`."""

    def open_output(self, path: str) -> pa.NativeFile:
        """Writer of a new file, made with its folders; the data counts as written once closed."""

    def arrow_filesystem(self) -> tuple[pafs.FileSystem, str]:
        """A pyarrow file system and the root inside it, for datasets."""

    def local_path(self, path: str) -> str | None:
        """Absolute path on this machine, or None for a remote store."""
