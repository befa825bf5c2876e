"""A pyarrow file system over any store, for datasets and Parquet readers."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pyarrow as pa
from pyarrow import fs as pafs

from hudi_sql.errors import ObjectNotFoundError, UnsupportedError
from hudi_sql.storage.fs.base import FileInfo, Store

__all__ = ["PublishingBuffer", "StoreFileSystemHandler"]


class PublishingBuffer(BytesIO):
    """Bytes that are handed over when the file is closed: object stores take objects whole."""

    def __init__(self, publish: Callable[[bytes], None]) -> None:
        super().__init__()
        self._publish = publish

    def close(self) -> None:
        """Hand the bytes over, once."""
        if not self.closed:
            data = self.getvalue()
            super().close()
            self._publish(data)

    def __del__(self) -> None:
        """Let go of a file that nobody closed: whoever began it failed, and may have cleaned up already."""
        super().close()


class StoreFileSystemHandler(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow is not typed
    """Reading side of a store as pyarrow sees it. Paths are those of the store."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreFileSystemHandler) and self._store == other._store

    def __hash__(self) -> int:
        return hash(self._store.uri)

    def __reduce__(self) -> tuple[type[StoreFileSystemHandler], tuple[Store]]:
        return StoreFileSystemHandler, (self._store,)

    def get_type_name(self) -> str:
        """Name of the file system."""
        return "hudi-sql-store"

    def normalize_path(self, path: str) -> str:
        """Paths are normal already."""
        return path

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        """Size and time of each path."""
        return [self._one(path) for path in paths]

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """Files below a folder."""
        base = selector.base_dir.strip("/")
        if selector.recursive:
            return [_arrow_info(info) for info in self._store.walk(base)]
        return [_arrow_info(info) for info in self._store.list(base)]

    def open_input_file(self, path: str) -> pa.NativeFile:
        """Random access."""
        return self._store.open_input(path)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """Sequential access."""
        return self._store.open_input(path)

    def open_output_stream(self, path: str, metadata: object = None) -> pa.NativeFile:
        """Write a new file."""
        del metadata
        return self._store.open_output(path)

    def create_dir(self, path: str, recursive: bool) -> None:
        """Folders come with their files."""

    def delete_file(self, path: str) -> None:
        """Delete one file."""
        self._store.delete(path)

    def delete_dir(self, path: str) -> None:
        """Refused: tables are changed through the store."""
        raise _read_only(path)

    delete_dir_contents = delete_dir

    def delete_root_dir_contents(self) -> None:
        """Refused."""
        raise _read_only("")

    def move(self, src: str, dest: str) -> None:
        """Refused."""
        raise _read_only(f"{src} to {dest}")

    copy_file = move

    def open_append_stream(self, path: str, metadata: object = None) -> pa.NativeFile:
        """Refused."""
        del metadata
        raise _read_only(path)

    def _one(self, path: str) -> pafs.FileInfo:
        try:
            return _arrow_info(self._store.info(path))
        except ObjectNotFoundError:
            kind = pafs.FileType.Directory if self._store.list(path) else pafs.FileType.NotFound
            return pafs.FileInfo(path, type=kind)


def _arrow_info(info: FileInfo) -> pafs.FileInfo:
    if info.is_folder:
        return pafs.FileInfo(info.path, type=pafs.FileType.Directory)
    return pafs.FileInfo(
        info.path, type=pafs.FileType.File, size=info.size_bytes, mtime_ns=info.modified_ms * 1_000_000
    )


def _read_only(path: str) -> UnsupportedError:
    return UnsupportedError(
        f"{path!r} cannot be moved or removed through pyarrow", hint="Use the table's own verbs."
    )
