"""Any other scheme that fsspec knows. Creation there is only as exclusive as the file system makes it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import fsspec
import pyarrow as pa
from pyarrow import fs as pafs

from hudi_sql.errors import (
    ConfigError,
    MissingDependencyError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    UnsupportedError,
)
from hudi_sql.storage.fs.arrow import StoreFileSystemHandler
from hudi_sql.storage.fs.base import FileInfo
from hudi_sql.storage.fs.options import StorageOptions
from hudi_sql.storage.fs.paths import check_path, join_path, parent_path

__all__ = ["FsspecStore"]

_TIME_KEYS = ("mtime", "modified", "LastModified", "last_modified", "created")


class FsspecStore:
    """Files below one URI of an fsspec file system.

    There is no compare-and-swap, so `put_if` is refused.

    Args:
        uri: `scheme://…`, without a slash at the end.
        options: Given to the file system as they are.
        filesystem: An fsspec file system to use in place of one made from `uri`; `root` is the root in it.
    """

    def __init__(
        self, uri: str, options: Mapping[str, object] | None = None, *, filesystem: Any = None, root: str = ""
    ) -> None:
        self._uri = uri
        self._options = dict(options or {})
        if filesystem is None:
            filesystem, root = _open(uri, self._options)
        self._fs = filesystem
        self._root = root.rstrip("/")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FsspecStore)
            and (self._uri, self._root, self._options) == (other._uri, other._root, other._options)
            and type(self._fs) is type(other._fs)
        )

    def __hash__(self) -> int:
        return hash(self._uri)

    def __repr__(self) -> str:
        return f"FsspecStore({self._uri!r}, {StorageOptions(self._options)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._uri, self._options, self._fs, self._root)

    @property
    def uri(self) -> str:
        """As it was given."""
        return self._uri

    @property
    def can_swap(self) -> bool:
        """See `Store`."""
        return False

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file. Raises `ObjectNotFoundError`."""
        end = None if length is None else start + length
        with self._errors(path):
            return bytes(self._fs.cat_file(self._full(path), start=start or None, end=end))

    def info(self, path: str) -> FileInfo:
        """Size and time of a file. Raises `ObjectNotFoundError`."""
        with self._errors(path):
            found = self._info(self._fs.info(self._full(path)))
        if found.is_folder:
            raise ObjectNotFoundError(f"There is no file {path}", table=self._uri, path=path)
        return found

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        with self._errors(path):
            return bool(self._fs.isfile(self._full(path)))

    def list(self, folder: str) -> list[FileInfo]:
        """Immediate files and folders, by name."""
        full = self._full(folder, may_be_root=True)
        with self._errors(folder):
            try:
                # Listings that fsspec caches would hide what other writers did.
                self._fs.invalidate_cache(full)
                entries = self._fs.ls(full, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
            found = [self._info(entry) for entry in entries]
        return sorted((info for info in found if info.path != folder), key=lambda info: info.name)

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """All files below a folder."""
        folders = [folder]
        while folders:
            for info in self.list(folders.pop()):
                if info.is_folder:
                    folders.append(info.path)
                else:
                    yield info

    def create(self, path: str, data: bytes) -> None:
        """Create a file, or raise `ObjectExistsError`."""
        with self._errors(path):
            if self._fs.exists(self._full(path)):
                raise FileExistsError(path)
            self._make_folder(path)
            self._fs.pipe_file(self._full(path), data, mode="create")

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file."""
        with self._errors(path):
            self._make_folder(path)
            self._fs.pipe_file(self._full(path), data)

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        """Bytes and the file system's own token of a file."""
        with self._errors(path):
            return self.read(path), str(self._fs.ukey(self._full(path)))

    def put_if(self, path: str, data: bytes, version: str) -> None:
        """Refused: two writers could both believe that they were the one."""
        del data, version
        raise UnsupportedError(
            f"{path} cannot be replaced safely: fsspec has no compare-and-swap",
            table=self._uri,
            hint="Use another lock provider, or a scheme that is served by obstore (s3, gs, az).",
        )

    def delete(self, path: str) -> bool:
        """Delete a file; False when it was not there."""
        with self._errors(path):
            try:
                self._fs.rm_file(self._full(path))
            except FileNotFoundError:
                return False
            return True

    def delete_tree(self, folder: str) -> None:
        """Delete a folder and all below."""
        with self._errors(folder), contextlib.suppress(FileNotFoundError):
            self._fs.rm(self._full(folder, may_be_root=True), recursive=True)

    def touch(self, path: str) -> None:
        """Create an empty file, or write an existing one again: that renews its time."""
        self.put(path, self.read(path) if self.exists(path) else b"")

    def open_input(self, path: str) -> pa.NativeFile:
        """Random-access reader. Raises `ObjectNotFoundError`."""
        self.info(path)  # implementations differ in what they raise for a folder, or for a file below a file
        with self._errors(path):
            return pa.PythonFile(self._fs.open(self._full(path), "rb"), mode="r")

    def open_output(self, path: str) -> pa.NativeFile:
        """Writer of a new file."""
        with self._errors(path):
            self._make_folder(path)
            return pa.PythonFile(self._fs.open(self._full(path), "wb"), mode="w")

    def arrow_filesystem(self) -> tuple[pafs.FileSystem, str]:
        """A pyarrow file system over this store; its root is empty."""
        return pafs.PyFileSystem(StoreFileSystemHandler(self)), ""

    def local_path(self, path: str) -> str | None:
        """None: the files are elsewhere."""
        del path
        return None

    def _full(self, path: str, *, may_be_root: bool = False) -> str:
        check_path(path, may_be_root=may_be_root)
        return f"{self._root}/{path}" if path else self._root

    def _make_folder(self, path: str) -> None:
        self._fs.makedirs(self._full(parent_path(path), may_be_root=True), exist_ok=True)

    def _info(self, entry: Mapping[str, Any]) -> FileInfo:
        path = str(entry["name"]).rstrip("/")
        inside = path[path.index(self._root) + len(self._root) :] if self._root in path else path
        return FileInfo(
            path=join_path(inside.strip("/")),
            size_bytes=int(entry.get("size") or 0),
            modified_ms=_modified_ms(entry),
            is_folder=entry.get("type") == "directory",
        )

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, IsADirectoryError) as exc:
            raise ObjectNotFoundError(f"There is no file {path}", table=self._uri, path=path) from exc
        except FileExistsError as exc:
            raise ObjectExistsError(f"{path} exists already", table=self._uri, path=path) from exc
        except (OSError, ValueError, NotImplementedError) as exc:
            raise StorageError(
                f"{path or 'the table folder'} cannot be accessed: {exc}", table=self._uri, path=path
            ) from exc


def _rebuild(uri: str, options: dict[str, object], filesystem: Any, root: str) -> FsspecStore:
    return FsspecStore(uri, options, filesystem=filesystem, root=root)


def _open(uri: str, options: dict[str, object]) -> tuple[Any, str]:
    try:
        filesystem, root = fsspec.core.url_to_fs(uri, **options)
    except ImportError as exc:
        scheme = uri.partition(":")[0]
        raise MissingDependencyError(
            f"The package that serves {scheme}:// is not installed: {exc}",
            hint="Install the fsspec implementation of the scheme.",
        ) from exc
    except (ValueError, TypeError, OSError) as exc:
        raise ConfigError(
            f"{uri} is no location that can be opened: {str(exc).partition(chr(10))[0]}",
            hint="Check the scheme and storage_options.",
        ) from exc
    return filesystem, str(root)


def _modified_ms(entry: Mapping[str, Any]) -> int:
    """Implementations name and type the time as they like."""
    when = next((entry[key] for key in _TIME_KEYS if entry.get(key) is not None), 0)
    if isinstance(when, datetime):
        return int(when.timestamp() * 1000)
    return int(float(when) * 1000) if isinstance(when, int | float) else 0
