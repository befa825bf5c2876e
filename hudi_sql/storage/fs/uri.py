"""From a location as users write it to a store."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from hudi_sql.errors import ConfigError
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.fs.local import LocalStore
from hudi_sql.storage.fs.memory import MemoryStore

__all__ = ["open_store"]

_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*):(.*)$", re.DOTALL)


def open_store(uri: str, storage_options: Mapping[str, str] | None = None) -> Store:
    """Open the store whose root is `uri`. Nothing is touched or created yet.

    Args:
        uri: A path (relative ones are made absolute), `file:` or `file://`, `memory://`, `s3://` (or `s3a`),
            `gs://`, `abfs[s]://`, `az://`, or any scheme that fsspec knows. Nothing in it is unescaped, as
            in Hadoop's Path: `a%20b` is a folder of that name.
        storage_options: Credentials and settings of the store.

    Example:
        >>> open_store("memory://docs/trips").uri
        'memory://docs/trips'
    """
    if not uri or "\0" in uri:
        raise ConfigError(f"{uri!r} is no location of a table", hint="Give a path or a URI.")
    match = _SCHEME.match(uri)
    if match is None:
        return LocalStore(_absolute(uri))
    scheme, rest = match.group(1).lower(), match.group(2)
    if scheme == "file":
        return LocalStore(_local_from_uri(uri, rest))
    if scheme == "memory":
        return MemoryStore(_stripped(uri, rest))
    from hudi_sql.storage.fs.remote import open_remote_store  # noqa: PLC0415  # cloud libraries load on demand

    return open_remote_store(scheme, f"{scheme}://{_stripped(uri, rest)}", storage_options or {})


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path)).rstrip("/")  # noqa: PTH100, PTH111


def _local_from_uri(uri: str, rest: str) -> str:
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost") or not slash:
            raise ConfigError(
                f"{uri!r} names the machine {host!r}", hint="Write file:///path, with three slashes."
            )
        rest = f"/{path}"
    if not rest.startswith("/"):
        raise ConfigError(f"{uri!r} is a relative file URI", hint="Write file:///path, or a plain path.")
    return _absolute(rest)


def _stripped(uri: str, rest: str) -> str:
    name = rest.strip("/")
    if not rest.startswith("//") or not name:
        raise ConfigError(f"{uri!r} is no location of a table", hint="Write scheme://bucket/path.")
    return name
