"""A folder on a local disk as a store.

Hadoop's local file system keeps a checksum sidecar `.<name>.crc` beside the files that it wrote; a file that
is replaced or removed must lose its sidecar, or Spark reads it as corrupt.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import fs as pafs

from hudi_sql.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    PreconditionFailedError,
    StorageError,
    TransientStorageError,
)
from hudi_sql.storage.fs.base import FileInfo
from hudi_sql.storage.fs.paths import check_path

__all__ = ["LocalStore"]

_TRANSIENT = {errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ESTALE, errno.ETIMEDOUT}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}


@dataclass(frozen=True, slots=True)
class LocalStore:
    """Files below one folder of this machine.

    Args:
        root: Absolute path of the folder, without a slash at the end. It need not exist yet.
    """

    root: str

    @property
    def uri(self) -> str:
        """`file:` and the absolute path: the form that Hadoop's Path prints."""
        return f"file:{self.root}"

    @property
    def can_swap(self) -> bool:
        """See `Store`."""
        return True

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of a file. Raises `ObjectNotFoundError`."""
        with self._errors(path), open(self._full(path), "rb") as file:  # noqa: PTH123
            if start:
                file.seek(start)
            return file.read() if length is None else file.read(length)

    def info(self, path: str) -> FileInfo:
        """Size and time of a file. Raises `ObjectNotFoundError`."""
        with self._errors(path):
            status = os.stat(self._full(path))  # noqa: PTH116
        if not _is_file(status):
            raise _not_found(self.uri, path)
        return _info(path, status, is_folder=False)

    def exists(self, path: str) -> bool:
        """Whether a file is there."""
        return os.path.isfile(self._full(path))  # noqa: PTH113

    def list(self, folder: str) -> list[FileInfo]:
        """Immediate files and folders, by name; empty when the folder is missing."""
        prefix = f"{folder}/" if folder else ""
        with self._errors(folder):
            try:
                entries = sorted(
                    os.scandir(self._full(folder, may_be_root=True)), key=lambda entry: entry.name
                )
            except (FileNotFoundError, NotADirectoryError):
                return []
            found = []
            for entry in entries:
                # An entry may go between the listing and the look at it; a dangling link shows nothing.
                with contextlib.suppress(FileNotFoundError):
                    found.append(_info(prefix + entry.name, entry.stat(), is_folder=entry.is_dir()))
            return found

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """All files below a folder (no folders), in no order."""
        folders = [folder]
        while folders:
            for entry in self.list(folders.pop()):
                if entry.is_folder:
                    folders.append(entry.path)
                else:
                    yield entry

    def create(self, path: str, data: bytes) -> None:
        """Create a file whole, or raise `ObjectExistsError`; never visible half-written."""
        full = self._full(path)
        self._make_folder(full, path)
        with self._errors(path):
            if not data:
                os.close(os.open(full, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
                return
            temporary = _write_temporary(full, data)
            try:
                _publish(temporary, full)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)  # noqa: PTH108

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file whole; its `.crc` sidecar goes first."""
        full = self._full(path)
        self._make_folder(full, path)
        with self._errors(path):
            temporary = _write_temporary(full, data)
            try:
                # Without a sidecar Hadoop reads unchecked: the old and the new file are both readable.
                _remove_sidecar(full)
                os.replace(temporary, full)  # noqa: PTH105
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)  # noqa: PTH108
                raise

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        """Bytes and a digest of them as their version."""
        data = self.read(path)
        return data, _version(data)

    def put_if(self, path: str, data: bytes, version: str) -> None:
        """Replace a file only if it still has this version, else raise `PreconditionFailedError`.

        Callers of `put_if` exclude one another by a lock on the folder, which leaves nothing behind.
        """
        full = self._full(path)
        with self._errors(path):
            try:
                folder = os.open(os.path.dirname(full), os.O_RDONLY)  # noqa: PTH120
            except FileNotFoundError as exc:
                raise _not_found(self.uri, path) from exc
            try:
                fcntl.flock(folder, fcntl.LOCK_EX)
                if self.read_versioned(path)[1] != version:
                    raise PreconditionFailedError(
                        f"{path} was changed by someone else",
                        table=self.uri,
                        path=path,
                        hint="Read it again.",
                    )
                self.put(path, data)
            finally:
                os.close(folder)

    def delete(self, path: str) -> bool:
        """Delete a file (and its `.crc`); False when it was not there."""
        full = self._full(path)
        with self._errors(path):
            try:
                os.unlink(full)  # noqa: PTH108
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return False
            _remove_sidecar(full)
            return True

    def delete_tree(self, folder: str) -> None:
        """Delete a folder and all below; nothing happens when it is missing."""
        with self._errors(folder):
            try:
                shutil.rmtree(self._full(folder, may_be_root=True))
            except (FileNotFoundError, NotADirectoryError):
                return

    def touch(self, path: str) -> None:
        """Create an empty file or renew its modification time."""
        full = self._full(path)
        with self._errors(path):
            try:
                handle = os.open(full, os.O_CREAT | os.O_WRONLY, 0o644)
            except FileNotFoundError:
                self._make_folder(full, path)
                handle = os.open(full, os.O_CREAT | os.O_WRONLY, 0o644)
            try:
                os.utime(handle)
            finally:
                os.close(handle)

    def open_input(self, path: str) -> pa.NativeFile:
        """Random-access reader. Raises `ObjectNotFoundError`."""
        self.info(path)  # pyarrow's error for a folder has no kind of its own
        with self._errors(path):
            return pa.OSFile(self._full(path), "rb")

    def open_output(self, path: str) -> pa.NativeFile:
        """Writer of a new file, made with its folders; the data counts as written once closed."""
        full = self._full(path)
        with self._errors(path):
            os.makedirs(os.path.dirname(full), exist_ok=True)  # noqa: PTH103, PTH120
            _remove_sidecar(full)
            return pa.OSFile(full, "wb")

    def arrow_filesystem(self) -> tuple[pafs.FileSystem, str]:
        """Pyarrow's local file system and the root in it."""
        return pafs.LocalFileSystem(), self.root

    def local_path(self, path: str) -> str | None:
        """Absolute path on this machine."""
        return self._full(path, may_be_root=True)

    def _full(self, path: str, *, may_be_root: bool = False) -> str:
        check_path(path, may_be_root=may_be_root)
        return f"{self.root}/{path}" if path else self.root or "/"

    def _make_folder(self, full: str, path: str) -> None:
        """Make the folder of a new file; what stands in the way is named, and is not a missing file."""
        folder = os.path.dirname(full)  # noqa: PTH120
        try:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        except OSError as exc:
            kind = TransientStorageError if exc.errno in _TRANSIENT else StorageError
            raise kind(
                f"The folder {folder} cannot be made: {exc.strerror}",
                table=self.uri,
                path=path,
                hint="Check the location: all its parts have to be folders that may be written to.",
            ) from exc

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as exc:
            raise _not_found(self.uri, path) from exc
        except FileExistsError as exc:
            raise ObjectExistsError(f"{path} exists already", table=self.uri, path=path) from exc
        except (OSError, ValueError) as exc:
            kind = TransientStorageError if getattr(exc, "errno", None) in _TRANSIENT else StorageError
            raise kind(
                f"{path or 'the table folder'} cannot be accessed: {_reason(exc)}",
                table=self.uri,
                path=path,
                hint="Check the permissions and the free space of the disk.",
            ) from exc


def _reason(error: Exception) -> str:
    """What the system says, without the path, which stands before it."""
    number = getattr(error, "errno", None)
    return os.strerror(number) if number else str(error)


def _not_found(uri: str, path: str) -> ObjectNotFoundError:
    return ObjectNotFoundError(f"There is no file {path}", table=uri, path=path)


def _is_file(status: os.stat_result) -> bool:
    return status.st_mode & 0o170000 == 0o100000


def _info(path: str, status: os.stat_result, *, is_folder: bool) -> FileInfo:
    return FileInfo(
        path=path,
        size_bytes=0 if is_folder else status.st_size,
        modified_ms=status.st_mtime_ns // 1_000_000,
        is_folder=is_folder,
    )


def _version(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _write_temporary(full: str, data: bytes) -> str:
    """Write beside the final file, under a name that no listing takes for a file of Hudi."""
    temporary = f"{full}.{uuid.uuid4()}"
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123
            file.write(data)
            file.flush()
            # A name must not become durable before the bytes: a completed instant of 0 bytes would be left.
            os.fsync(handle)
    except BaseException:
        os.unlink(temporary)  # noqa: PTH108
        raise
    return temporary


def _publish(temporary: str, full: str) -> None:
    """Give the finished file its name, unless the name is taken."""
    try:
        os.link(temporary, full)
    except FileExistsError:
        raise
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        # No hard links on this disk: reserve the name, then move the finished file over the reservation.
        os.close(os.open(full, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        os.replace(temporary, full)  # noqa: PTH105


def _remove_sidecar(full: str) -> None:
    folder, name = os.path.split(full)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{folder}/.{name}.crc")  # noqa: PTH108
