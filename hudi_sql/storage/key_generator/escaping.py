"""Escapes in partition paths (key generator notes §4; Hudi's PartitionPathEncodeUtils)."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["DEFAULT_PARTITION", "OLD_DEFAULT_PARTITION", "escape_path_values", "unescape_path_value"]

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""Folder of NULL and of the empty text."""
OLD_DEFAULT_PARTITION = "default"
"""What releases before 0.11 called it."""

# The percent sign comes first: it begins the escapes of all others.
_ESCAPED = "%" + "".join(map(chr, range(0x20))) + "\"#'*/:=?\\\x7f{[]^"
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


def escape_path_values(values: pa.Array) -> pa.Array:
    """Escape what Hudi escapes; spaces and everything beyond ASCII stay.

    Example:
        >>> escape_path_values(pa.array(["u v/w", "100%"])).to_pylist()
        ['u v%2Fw', '100%25']
    """
    for char in _ESCAPED:
        values = pc.replace_substring(values, char, f"%{ord(char):02X}")
    return values


def unescape_path_value(text: str) -> str:
    """Undo escapes. A percent sign without two hex digits stands for itself.

    Example:
        >>> unescape_path_value("u v%2Fw 5%")
        'u v/w 5%'
    """
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
