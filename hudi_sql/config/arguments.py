"""Checks of what callers give to `connect`, `attach` and a session."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from hudi_sql.errors import BindError, ConfigError

__all__ = ["check_name", "choose", "mapping", "setting_text"]


def choose(what: str, name: str, known: Sequence[str]) -> str:
    """One of a few words.

    Raises:
        ConfigError: It is another one.
    """
    if name in known:
        return name
    near = tuple(difflib.get_close_matches(str(name), known, n=2, cutoff=0.4))
    raise ConfigError(
        f"There is no {what} {name!r}",
        hint=f"Did you mean {' or '.join(near)}?" if near else f"Known are {', '.join(known)}.",
        setting=what,
        near=near,
    )


def mapping(what: str, given: Any) -> Mapping[str, Any]:
    """Settings by name; none where nothing is given.

    Raises:
        ConfigError: It is no mapping.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"{what} is a mapping of keys to values, not {type(given).__name__}",
            hint=f'Write {what}={{"key": "value"}}.',
            setting=what,
        )
    return given


def setting_text(value: object) -> str:
    """A setting as Hudi writes it: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_name(name: object) -> None:
    """Refuse what is no name of a table.

    Raises:
        BindError: It is empty or no text.
    """
    if not isinstance(name, str) or not name.strip():
        raise BindError(f"{name!r} is no name of a table", hint="Give its name as a text.")
