"""One `hoodie.*` setting: its name, type, default and other spellings."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from hudi_sql.errors import ConfigError

__all__ = ["ConfigKey", "check_known", "choice", "non_negative_float", "non_negative_int", "on_off", "text"]

T = TypeVar("T")
E = TypeVar("E", bound=Enum)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey(Generic[T]):
    """A setting and how its text becomes a value.

    Example:
        >>> key = ConfigKey(name="hoodie.x", parse=non_negative_int, default=7, doc="An x.")
        >>> key.read({"hoodie.x": "8"}), key.read({})
        (8, 7)
    """

    name: str
    parse: Callable[[str], T]
    default: T
    doc: str
    aliases: tuple[str, ...] = ()
    """Older spellings, read when the name itself is not given."""
    since: str = "0.1.0"

    @property
    def names(self) -> tuple[str, ...]:
        """The name and its aliases, in the order in which they are looked up."""
        return (self.name, *self.aliases)

    def read(self, settings: Mapping[str, str]) -> T:
        """Read the value out of a map of texts.

        Raises:
            ConfigError: The text is not a value of this setting.
        """
        for name in self.names:
            value = settings.get(name)
            if value is None:
                continue
            try:
                return self.parse(value.strip())
            except ValueError as exc:
                raise ConfigError(
                    f"Setting {name} cannot be {value!r}: {exc}", hint=self.doc, setting=name, value=value
                ) from exc
        return self.default


def non_negative_int(value: str) -> int:
    """Parse a whole number that is not below zero."""
    try:
        number = int(value)
    except ValueError:
        raise ValueError("it must be a whole number") from None
    if number < 0:
        raise ValueError("it must not be below zero")
    return number


def non_negative_float(value: str) -> float:
    """Parse a finite number that is not below zero."""
    try:
        number = float(value)
    except ValueError:
        raise ValueError("it must be a number") from None
    if not 0 <= number < float("inf"):
        raise ValueError("it must be a finite number that is not below zero")
    return number


def on_off(value: str) -> bool:
    """Parse `true` or `false`, in any case."""
    lowered = value.lower()
    if lowered not in ("true", "false"):
        raise ValueError("it must be true or false")
    return lowered == "true"


def text(value: str) -> str:
    """Take a text as it is."""
    return value


def choice(kind: type[E]) -> Callable[[str], E]:
    """Make a parser of an enum's values, in any case."""
    members = {str(member.value).lower(): member for member in kind}

    def parse(value: str) -> E:
        try:
            return members[value.lower()]
        except KeyError:
            raise ValueError("it must be one of " + ", ".join(str(m.value) for m in kind)) from None

    return parse


def check_known(names: Iterable[str], known: Iterable[str], *, prefix: str = "hoodie.") -> None:
    """Refuse settings that begin with `prefix` and that nobody reads: a typing error would pass unseen.

    Raises:
        ConfigError: With the nearest known names in the hint and as `.near`.
    """
    spellings = set(known)
    for name in names:
        if not name.startswith(prefix) or name in spellings:
            continue
        near = tuple(difflib.get_close_matches(name, sorted(spellings), n=3, cutoff=0.6))
        hint = f"Did you mean {' or '.join(near)}?" if near else "See the list of settings in the reference."
        raise ConfigError(f"There is no setting {name}", hint=hint, setting=name, near=near)
