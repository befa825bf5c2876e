"""Paths inside a store: `/`-separated, relative to its root, kept inside it."""

from __future__ import annotations

from hudi_sql.errors import StorageError

__all__ = ["check_path", "join_path", "parent_path"]


def check_path(path: str, *, may_be_root: bool = False) -> str:
    """Give the path back if it names something inside the root, else raise `StorageError`.

    Partition values end up in paths, so a value of `..` must not lead out of the table.
    """
    if not path and may_be_root:
        return path
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise StorageError(
            f"{path!r} is no path inside a table",
            hint="Path segments must not be empty, '.' or '..'.",
            path=path,
        )
    return path


def join_path(*parts: str) -> str:
    """Join relative paths; empty parts (the root) are left out."""
    return "/".join(part for part in parts if part)


def parent_path(path: str) -> str:
    """Folder of a path; empty for what lies in the root."""
    return path.rpartition("/")[0]
