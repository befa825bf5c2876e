"""Storage options as users know them from other tools, brought to the names that obstore takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from hudi_sql.errors import ConfigError

__all__ = ["StorageOptions"]

_SECRET_WORDS = (
    "secret",
    "token",
    "password",
    "sas",
    "account_key",
    "access_key",
    "credential",
    "service_account_key",
)
_NOT_SECRET = ("key_id", "token_uri", "token_file")

# s3fs, pyarrow and Hadoop spellings; obstore itself takes `aws_…` and the bare names, in any case.
_ALIASES = {
    "key": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "access_key": "access_key_id",
    "secret_key": "secret_access_key",
    "endpoint_url": "endpoint",
    "endpoint_override": "endpoint",
    "region_name": "region",
    "fs.s3a.access.key": "access_key_id",
    "fs.s3a.secret.key": "secret_access_key",
    "fs.s3a.session.token": "session_token",
    "fs.s3a.endpoint": "endpoint",
    "fs.s3a.endpoint.region": "region",
    "anon": "skip_signature",
    "anonymous": "skip_signature",
    "aws_endpoint_url": "endpoint",
    "aws_anonymous": "skip_signature",
}


class StorageOptions(Mapping[str, str]):
    """Credentials and settings of a store: text by lower-case name. Secrets do not show when it is printed.

    Args:
        options: As the user gave them. Booleans and numbers become text; None means absent.

    Example:
        >>> StorageOptions({"AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "eu-north-1"})
        StorageOptions({'aws_secret_access_key': '***', 'aws_region': 'eu-north-1'})
    """

    __slots__ = ("_values",)

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        values: dict[str, str] = {}
        for key, value in (options or {}).items():
            if not isinstance(key, str):
                raise ConfigError(f"Storage option {key!r} has no text as its name")
            if value is not None:
                values[key.lower()] = _text(key, value)
        self._values = MappingProxyType(values)

    def merged(self, other: Mapping[str, object]) -> StorageOptions:
        """These options with those of `other` on top: `other` wins."""
        return StorageOptions({**self._values, **StorageOptions(other)})

    def renamed(self, scheme: str) -> StorageOptions:
        """The options under obstore's names. A name and its alias may both be given only if they agree."""
        if scheme not in ("s3", "s3a", "s3n"):
            return self
        renamed: dict[str, str] = {}
        for key, value in self._values.items():
            name = _ALIASES.get(key, key)
            if renamed.setdefault(name, value) != value:
                raise ConfigError(
                    f"Storage option {name} is given twice, with different values", hint="Give one of them."
                )
        return StorageOptions(renamed)

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        shown = {key: "***" if _is_secret(key) else value for key, value in self._values.items()}
        return f"StorageOptions({shown})"

    def __reduce__(self) -> tuple[type[StorageOptions], tuple[dict[str, str]]]:
        return StorageOptions, (dict(self._values),)


def _text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigError(
        f"Storage option {key} has a {type(value).__name__} as its value",
        hint="Give text, a number or a boolean.",
    )


def _is_secret(key: str) -> bool:
    name = key.replace(".", "_").replace("-", "_")
    if name in ("key", "secret"):
        return True
    return any(word in name for word in _SECRET_WORDS) and not name.endswith(_NOT_SECRET)
