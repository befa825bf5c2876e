"""Object stores (S3, Google Cloud Storage, Azure) through obstore: conditional puts, no renames."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import obstore
import pyarrow as pa
from obstore import exceptions as obstore_errors
from obstore.store import from_url
from pyarrow import fs as pafs

from hudi_sql.errors import (
    ConfigError,
    ObjectExistsError,
    ObjectNotFoundError,
    PreconditionFailedError,
    StorageError,
    TransientStorageError,
)
from hudi_sql.storage.fs.arrow import StoreFileSystemHandler
from hudi_sql.storage.fs.base import FileInfo
from hudi_sql.storage.fs.options import StorageOptions
from hudi_sql.storage.fs.paths import check_path, join_path

__all__ = ["ObjectStore"]

_CLIENT_OPTIONS = {
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "timeout",
    "user_agent",
}
# obstore has one error type for all failures of the network and the server; only its text tells them apart.
_TRANSIENT_TEXTS = (
    "timed out",
    "timeout",
    "error sending request",
    "connection",
    "429",
    "500",
    "502",
    "503",
    "504",
)
_MAX_DELETES = 1000


class ObjectStore:
    """Objects below one prefix of a bucket or container.

    Args:
        uri: `scheme://bucket/prefix`, without a slash at the end. Nothing in it is unescaped.
        options: Credentials and settings.
        backend: An obstore store of the whole bucket to use in place of one made from `uri` (tests).
    """

    def __init__(self, uri: str, options: Mapping[str, object] | None = None, *, backend: Any = None) -> None:
        self._uri = uri
        self._options = StorageOptions(options)
        scheme, _, rest = uri.partition("://")
        bucket, _, self._prefix = rest.partition("/")
        self._injected = backend is not None
        self._backend = backend if backend is not None else _backend(scheme, bucket, self._options)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ObjectStore)
            and (self._uri, self._options) == (other._uri, other._options)
            and (not self._injected or self._backend is other._backend)
        )

    def __hash__(self) -> int:
        return hash(self._uri)

    def __repr__(self) -> str:
        return f"ObjectStore({self._uri!r}, {self._options!r})"

    def __reduce__(self) -> tuple[type[ObjectStore], tuple[str, StorageOptions]]:
        if self._injected:
            raise TypeError(f"the store {self._uri} lives in this process and cannot be sent to another")
        return ObjectStore, (self._uri, self._options)

    @property
    def uri(self) -> str:
        """As it was given."""
        return self._uri

    @property
    def can_swap(self) -> bool:
        """See `Store`."""
        return True

    def read(self, path: str, *, start: int = 0, length: int | None = None) -> bytes:
        """Bytes of an object. Raises `ObjectNotFoundError`."""
        with self._errors(path):
            if start == 0 and length is None:
                return bytes(obstore.get(self._backend, self._key(path)).bytes())
            # A range beyond the end is an error of the store, so the size must be known first.
            size = obstore.head(self._backend, self._key(path))["size"]
        end = size if length is None else min(size, start + length)
        return self.read_range(path, start, end - start) if start < end else b""

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Bytes of a range that lies inside the object and is not empty: one request."""
        with self._errors(path):
            return bytes(obstore.get_range(self._backend, self._key(path), start=start, length=length))

    def info(self, path: str) -> FileInfo:
        """Size and time of an object. Raises `ObjectNotFoundError`."""
        with self._errors(path):
            return self._info(obstore.head(self._backend, self._key(path)))

    def exists(self, path: str) -> bool:
        """Whether an object is there."""
        try:
            self.info(path)
        except ObjectNotFoundError:
            return False
        return True

    def list(self, folder: str) -> list[FileInfo]:
        """Immediate objects and prefixes, by name."""
        with self._errors(folder):
            found = obstore.list_with_delimiter(self._backend, self._key(folder, may_be_root=True) or None)
            folders = [
                FileInfo(path=self._relative(path), size_bytes=0, modified_ms=0, is_folder=True)
                for path in found["common_prefixes"]
            ]
            files = [self._info(item) for item in found["objects"]]
        # Hadoop marks empty folders by empty objects, which are listed beside the prefix of that name.
        taken = {info.path for info in folders}
        kept = [info for info in files if info.path not in taken]
        return sorted(folders + kept, key=lambda info: info.name)

    def walk(self, folder: str) -> Iterator[FileInfo]:
        """All objects below a folder."""
        with self._errors(folder):
            for batch in obstore.list(self._backend, self._key(folder, may_be_root=True) or None):
                for item in batch:
                    yield self._info(item)

    def create(self, path: str, data: bytes) -> None:
        """Create an object by a conditional put, or raise `ObjectExistsError`."""
        with self._errors(path):
            obstore.put(self._backend, self._key(path), data, mode="create", use_multipart=False)

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""
        with self._errors(path):
            obstore.put(self._backend, self._key(path), data)

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        """Bytes and entity tag (or generation) of an object."""
        with self._errors(path):
            result = obstore.get(self._backend, self._key(path))
            version = {name: result.meta[name] for name in ("e_tag", "version") if result.meta.get(name)}
            return bytes(result.bytes()), json.dumps(version)

    def put_if(self, path: str, data: bytes, version: str) -> None:
        """Replace an object by a conditional put, or raise `PreconditionFailedError`."""
        with self._errors(path):
            mode = cast("Any", json.loads(version))
            obstore.put(self._backend, self._key(path), data, mode=mode, use_multipart=False)

    def delete(self, path: str) -> bool:
        """Delete an object; False when it was not there."""
        if not self.exists(path):
            return False
        with self._errors(path):
            obstore.delete(self._backend, self._key(path))
        return True

    def delete_tree(self, folder: str) -> None:
        """Delete all objects below a folder."""
        keys = [self._key(info.path) for info in self.walk(folder)]
        with self._errors(folder):
            for start in range(0, len(keys), _MAX_DELETES):
                obstore.delete(self._backend, keys[start : start + _MAX_DELETES])

    def touch(self, path: str) -> None:
        """Create an empty object, or put an existing one again: that renews its time."""
        try:
            self.create(path, b"")
        except ObjectExistsError:
            self.put(path, self.read(path))

    def open_input(self, path: str) -> pa.NativeFile:
        """Random-access reader; each read is one ranged request. Raises `ObjectNotFoundError`."""
        return pa.PythonFile(_RangeReader(self, path, self.info(path).size_bytes), mode="r")

    def open_output(self, path: str) -> pa.NativeFile:
        """Writer of a new object, uploaded in parts; it appears when it is closed."""
        with self._errors(path):
            return pa.PythonFile(_PartWriter(self, path, obstore.open_writer(self._backend, self._key(path))))

    def arrow_filesystem(self) -> tuple[pafs.FileSystem, str]:
        """A pyarrow file system over this store; its root is empty."""
        return pafs.PyFileSystem(StoreFileSystemHandler(self)), ""

    def local_path(self, path: str) -> str | None:
        """None: there are no files on this machine."""
        del path
        return None

    def _key(self, path: str, *, may_be_root: bool = False) -> str:
        return join_path(self._prefix, check_path(path, may_be_root=may_be_root))

    def _relative(self, key: str) -> str:
        return key[len(self._prefix) + 1 :] if self._prefix else key

    def _info(self, item: Mapping[str, Any]) -> FileInfo:
        return FileInfo(
            path=self._relative(item["path"]),
            size_bytes=item["size"],
            modified_ms=int(item["last_modified"].timestamp() * 1000),
            is_folder=False,
        )

    @contextlib.contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except (obstore_errors.NotFoundError, FileNotFoundError) as exc:
            raise ObjectNotFoundError(f"There is no file {path}", table=self._uri, path=path) from exc
        except obstore_errors.AlreadyExistsError as exc:
            raise ObjectExistsError(f"{path} exists already", table=self._uri, path=path) from exc
        except obstore_errors.PreconditionError as exc:
            raise PreconditionFailedError(
                f"{path} was changed by someone else", table=self._uri, path=path, hint="Read it again."
            ) from exc
        except (obstore_errors.PermissionDeniedError, obstore_errors.UnauthenticatedError) as exc:
            raise StorageError(
                f"Access to {path or 'the table folder'} was refused: {_first_line(exc)}",
                table=self._uri,
                path=path,
                hint="Check the credentials in storage_options.",
            ) from exc
        except (obstore_errors.BaseError, OSError, ValueError) as exc:
            text = _first_line(exc)
            is_transient = any(part in str(exc).lower() for part in _TRANSIENT_TEXTS)
            kind = TransientStorageError if is_transient else StorageError
            raise kind(
                f"{path or 'the table folder'} cannot be accessed: {text}", table=self._uri, path=path
            ) from exc


class _RangeReader(io.RawIOBase):
    """A seekable file over ranged reads."""

    def __init__(self, store: ObjectStore, path: str, size: int) -> None:
        super().__init__()
        self._store = store
        self._path = path
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        if not wanted:
            return b""
        data = self._store.read_range(self._path, self._position, wanted)
        self._position += len(data)
        return data


class _PartWriter(io.RawIOBase):
    """An upload in parts; its errors are ours."""

    def __init__(self, store: ObjectStore, path: str, writer: Any) -> None:
        super().__init__()
        self._store = store
        self._path = path
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with self._store._errors(self._path):  # noqa: SLF001  # a part of the store
            self._writer.write(bytes(data))
        return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with self._store._errors(self._path):  # noqa: SLF001  # a part of the store
                self._writer.close()

    def __del__(self) -> None:
        """Let go of an upload that nobody closed: an object must not appear after its writer failed."""
        super().close()


def _backend(scheme: str, bucket: str, options: StorageOptions) -> Any:
    renamed = options.renamed(scheme)
    client = {key: value for key, value in renamed.items() if key in _CLIENT_OPTIONS}
    config = {key: value for key, value in renamed.items() if key not in _CLIENT_OPTIONS}
    if renamed.get("endpoint", "").startswith("http://"):
        client.setdefault("allow_http", "true")
    try:
        return from_url(
            f"{scheme}://{bucket}", config=cast("Any", config), client_options=cast("Any", client)
        )
    except obstore_errors.UnknownConfigurationKeyError as exc:
        raise ConfigError(
            f"A storage option is unknown: {_first_line(exc)}", hint=f"Given: {', '.join(sorted(options))}."
        ) from exc
    except (obstore_errors.BaseError, ValueError, TypeError) as exc:
        raise ConfigError(
            f"The store {scheme}://{bucket} cannot be opened: {_first_line(exc)}",
            hint="Check the location and storage_options.",
        ) from exc


def _first_line(exc: BaseException) -> str:
    """Obstore puts the whole chain of Rust errors below the first line."""
    return str(exc).partition("\n")[0]
