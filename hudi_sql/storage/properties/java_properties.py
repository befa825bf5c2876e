"""Text of `java.util.Properties`: ISO-8859-1 lines, other characters and separators escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

__all__ = ["decode_properties", "encode_properties"]

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAMES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_ESCAPE = re.compile(r"\\(u(?P<hex>.{0,4})|(?P<char>.)|$)", re.DOTALL)
_KEY = re.compile(r"(?P<key>(?:[^\\=:\s]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_WRITTEN = re.compile(r"[\\=:#!\t\n\r\f]|[^\x20-\x7e]")
_BLANK = " \t\f"


def decode_properties(data: bytes) -> dict[str, str]:
    r"""Read properties, in the order of the text; comments are left out, the last of equal keys wins.

    Raises:
        ValueError: A `\u` escape without four hex digits (Java refuses it too).

    Example:
        >>> decode_properties(b"# comment\na.b = c\\:d\n")
        {'a.b': 'c:d'}
    """
    found: dict[str, str] = {}
    for line in _logical_lines(data.decode("iso-8859-1")):
        match = _KEY.fullmatch(line)
        assert match is not None  # every text matches: the value takes what is left
        found[_unescape(match["key"])] = _unescape(match["value"])
    return found


def encode_properties(properties: Mapping[str, str], *, comments: Sequence[str] = ()) -> bytes:
    r"""Write properties as Java's `store` does, without its date line.

    Example:
        >>> encode_properties({"a": "x=y"}, comments=["hello"])
        b'#hello\na=x\\=y\n'
    """
    lines = ["#" + _escape(comment) for comment in comments]
    for key, value in properties.items():
        # Java escapes every space of a key, but only a leading one of a value.
        text = _escape(value)
        lines.append(
            f"{_escape(key).replace(' ', chr(92) + ' ')}={chr(92) + text if text[:1] == ' ' else text}"
        )
    return "".join(line + "\n" for line in lines).encode("ascii")


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blanks; an odd number of backslashes at the end joins the next line."""
    pending = ""
    is_continued = False
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_BLANK)
        if not is_continued and (not line or line[0] in "#!"):
            continue
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        pending += line[:-1] if is_continued else line
        if not is_continued:
            yield pending
            pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _joined_surrogates(_ESCAPE.sub(_unescape_one, text))


def _unescape_one(match: re.Match[str]) -> str:
    digits = match["hex"]
    if digits is not None:
        if not re.fullmatch("[0-9a-fA-F]{4}", digits):
            raise ValueError(f"malformed escape {match[0]!r}")
        return chr(int(digits, 16))
    char = match["char"] or ""
    return _ESCAPES.get(char, char)


def _joined_surrogates(text: str) -> str:
    """Characters beyond the basic plane are written as two escapes."""
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escape(text: str) -> str:
    return _WRITTEN.sub(_escape_one, text)


def _escape_one(match: re.Match[str]) -> str:
    char = match[0]
    if char in _NAMES:
        return _NAMES[char]
    if " " <= char <= "~":
        return "\\" + char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
