"""Which library serves a scheme."""

from __future__ import annotations

from collections.abc import Mapping

from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.fs.fsspec import FsspecStore
from hudi_sql.storage.fs.object_store import ObjectStore

__all__ = ["open_remote_store"]

# obstore has create-if-absent and compare-and-swap for these; the fsspec implementations have only the first.
_OBSTORE_SCHEMES = {"s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss"}


def open_remote_store(scheme: str, uri: str, storage_options: Mapping[str, object]) -> Store:
    """Open a store of another scheme than `file` and `memory`."""
    if scheme in _OBSTORE_SCHEMES:
        return ObjectStore(uri, storage_options)
    return FsspecStore(uri, storage_options)
