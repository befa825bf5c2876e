"""Reading and replacing `hoodie.properties` (properties notes §1 to §3).

Hudi replaces the file by way of `hoodie.properties.backup`: readers that find the file missing or invalid use
the backup. We put the new file in one step, and keep the backup so that Java writers and we recover from one
another.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from hudi_sql.errors import (
    CorruptTableError,
    ObjectExistsError,
    ObjectNotFoundError,
    TableExistsError,
    TableNotFoundError,
)
from hudi_sql.storage.fs.base import Store
from hudi_sql.storage.properties.checksum import CHECKSUM_KEY, has_wrong_checksum, table_checksum
from hudi_sql.storage.properties.java_properties import decode_properties, encode_properties

__all__ = [
    "BACKUP_FILE",
    "PROPERTIES_FILE",
    "create_properties",
    "java_date",
    "load_properties",
    "update_properties",
]

PROPERTIES_FILE = ".hoodie/hoodie.properties"
BACKUP_FILE = ".hoodie/hoodie.properties.backup"
_RETRIES = 5
_RETRY_S = 0.05


def load_properties(store: Store) -> dict[str, str]:
    """Read the properties, or the backup where they are missing or invalid.

    Raises:
        TableNotFoundError: There is neither file.
        CorruptTableError: Neither can be used.
    """
    problem: CorruptTableError | None = None
    for attempt in range(_RETRIES):
        for path in (PROPERTIES_FILE, BACKUP_FILE):
            try:
                return _read(store, path)
            except ObjectNotFoundError:
                continue
            except CorruptTableError as exc:
                problem = problem or exc
        # A Java writer may be between its two files at this moment.
        if attempt == 0 and problem is None and not store.list(".hoodie"):
            break
        time.sleep(_RETRY_S)
    if problem is not None:
        raise problem
    raise TableNotFoundError(
        f"There is no Hudi table at {store.uri}", table=store.uri, hint=f"{PROPERTIES_FILE} is not there."
    )


def create_properties(store: Store, properties: Mapping[str, str]) -> None:
    """Write the first properties of a table. Raises `TableExistsError`."""
    try:
        store.create(PROPERTIES_FILE, _encode(properties, "Properties saved on"))
    except ObjectExistsError as exc:
        raise TableExistsError(f"There is a Hudi table at {store.uri} already", table=store.uri) from exc


def update_properties(store: Store, changes: Mapping[str, str | None]) -> dict[str, str]:
    """Change some properties under the table lock, by Hudi's backup protocol; returns all as they are now."""
    _recover(store)
    current = _read(store, PROPERTIES_FILE)
    changed = {key: value for key, value in {**current, **changes}.items() if value is not None}
    store.create(BACKUP_FILE, _encode(current, "Updated at"))
    # One step, with no moment at which neither file is there.
    store.put(PROPERTIES_FILE, _encode(changed, "Updated at"))
    written = _read(store, PROPERTIES_FILE)
    store.delete(BACKUP_FILE)
    return written


def java_date(when: datetime) -> str:
    """The date line that Java puts into properties files.

    Example:
        >>> java_date(datetime(2026, 12, 1, 4, 21, 7, tzinfo=UTC))
        'Tue Dec 01 04:21:07 UTC 2026'
    """
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    # Not strftime: its names follow the locale of the process.
    return f"{days[when.weekday()]} {months[when.month - 1]} {when:%d %H:%M:%S} UTC {when:%Y}"


def _encode(properties: Mapping[str, str], what: str) -> bytes:
    checksum = table_checksum(
        properties.get("hoodie.database.name", ""), properties.get("hoodie.table.name", "")
    )
    now = datetime.now(tz=UTC)
    comments = (f"{what} {now:%Y-%m-%dT%H:%M:%S.%fZ}", java_date(now))
    return encode_properties({**properties, CHECKSUM_KEY: checksum}, comments=comments)


def _read(store: Store, path: str) -> dict[str, str]:
    data = store.read(path)
    try:
        properties = decode_properties(data)
    except ValueError as exc:
        raise _invalid(store, path, str(exc)) from exc
    if not properties.get("hoodie.table.name"):
        raise _invalid(store, path, "it names no table")
    if has_wrong_checksum(properties):
        raise _invalid(store, path, f"its {CHECKSUM_KEY} is wrong")
    if CHECKSUM_KEY not in properties and path == PROPERTIES_FILE and store.exists(BACKUP_FILE):
        raise _invalid(store, path, "it is cut off before its checksum")
    return properties


def _invalid(store: Store, path: str, reason: str) -> CorruptTableError:
    return CorruptTableError(
        f"{path} cannot be used: {reason}",
        table=store.uri,
        path=path,
        hint=f"Restore it from {BACKUP_FILE} or from a copy of the table.",
    )


def _recover(store: Store) -> None:
    """Finish what a writer that died left behind: a backup stands in for missing or invalid properties."""
    if not store.exists(BACKUP_FILE):
        return
    try:
        _read(store, PROPERTIES_FILE)
    except (ObjectNotFoundError, CorruptTableError):
        _read(store, BACKUP_FILE)
        store.put(PROPERTIES_FILE, store.read(BACKUP_FILE))
    store.delete(BACKUP_FILE)
