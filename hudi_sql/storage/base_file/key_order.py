"""Least and greatest text in the order of Java's `String.compareTo`: by UTF-16 code units (base file notes §3)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["greatest", "java_min_max", "java_text_order", "least"]

_FIRST_OF_FOUR = 0xF0

# The order of UTF-8 bytes is that of UTF-16 units, but for U+E000 to U+FFFF, which UTF-16 puts behind all that need
# a surrogate pair. Their first bytes (EE, EF) come nowhere else in UTF-8, so moving them behind F4 is enough.
_MOVED = np.arange(256, dtype=np.uint8)
_MOVED[0xEE], _MOVED[0xEF] = 0xFE, 0xFF
_MOVED_BACK = np.arange(256, dtype=np.uint8)
_MOVED_BACK[0xFE], _MOVED_BACK[0xFF] = 0xEE, 0xEF


def java_min_max(texts: pa.StringArray) -> tuple[str, str] | None:
    """Least and greatest of some texts; None when all are NULL.

    Example:
        >>> java_min_max(pa.array(["10", "9", None]))
        ('10', '9')
    """
    if len(texts) == texts.null_count:
        return None
    plain = texts.cast(pa.string())
    data = _bytes_of(plain)
    if not (data >= _FIRST_OF_FOUR).any():
        bounds = pc.min_max(plain).as_py()
        return bounds["min"], bounds["max"]
    moved = pa.py_buffer(_MOVED[data])
    buffers = plain.buffers()
    binary = pa.Array.from_buffers(
        pa.binary(), len(plain), [buffers[0], buffers[1], moved], plain.null_count, plain.offset
    )
    bounds = pc.min_max(binary).as_py()
    return _back(bounds["min"]), _back(bounds["max"])


def java_text_order(text: str) -> bytes:
    """A key that sorts texts as Java does."""
    return text.encode("utf-16-be", "surrogatepass")


def least(texts: Iterable[str]) -> str:
    """The least text as Java orders them."""
    return min(texts, key=java_text_order)


def greatest(texts: Iterable[str]) -> str:
    """The greatest text as Java orders them."""
    return max(texts, key=java_text_order)


def _bytes_of(texts: pa.StringArray) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    buffer = texts.buffers()[2]
    return np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, dtype=np.uint8)


def _back(moved: bytes) -> str:
    return _MOVED_BACK[np.frombuffer(moved, dtype=np.uint8)].tobytes().decode("utf-8")
