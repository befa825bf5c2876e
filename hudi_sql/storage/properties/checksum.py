"""Checksum of `hoodie.properties` (properties notes §2)."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

__all__ = ["CHECKSUM_KEY", "has_wrong_checksum", "table_checksum"]

CHECKSUM_KEY = "hoodie.table.checksum"


def table_checksum(database: str, table: str) -> str:
    """CRC-32 of `database.table`, as decimal text.

    Example:
        >>> table_checksum("default", "t1")
        '3709403181'
    """
    return str(zlib.crc32(f"{database}.{table}".encode()))


def has_wrong_checksum(properties: Mapping[str, str]) -> bool:
    """Whether a checksum is there and does not fit. None at all is fine, as for Hudi."""
    stated = properties.get(CHECKSUM_KEY)
    if stated is None:
        return False
    return stated.strip() != table_checksum(
        properties.get("hoodie.database.name", ""), properties.get("hoodie.table.name", "")
    )
