"""Every error that hudi_sql raises.

::

    HudiSqlError                  .hint, .retryable = False
    ├─ SqlSyntaxError             .sql .start .end
    ├─ BindError                  name, column, type; proposes near names
    ├─ UnsupportedError
    │  ├─ UnsupportedStatementError
    │  └─ UnsupportedTableError   the property and its value
    ├─ TableNotFoundError  TableExistsError  SchemaError
    ├─ ConstraintError
    │  └─ NullKeyError  DuplicateKeyError  CardinalityError
    ├─ ConflictError              retryable; certainly not committed
    ├─ LockError                  retryable; who holds it, since when
    ├─ CommitOutcomeUnknownError  nothing may be deleted
    ├─ CorruptTableError          .path .offset
    ├─ StorageError
    │  └─ ObjectNotFoundError  ObjectExistsError  PreconditionFailedError  TransientStorageError
    ├─ EngineFailureError         the engine's own error as __cause__
    ├─ ConfigError(…, ValueError)
    └─ MissingDependencyError(…, ImportError)

A message says what was asked, what is wrong and what to do; the facts in it are attributes too, so that nobody
has to match on text. All of them pickle and copy.
"""

from __future__ import annotations

__all__ = [
    "BindError",
    "CardinalityError",
    "CommitOutcomeUnknownError",
    "ConfigError",
    "ConflictError",
    "ConstraintError",
    "CorruptTableError",
    "DuplicateKeyError",
    "EngineFailureError",
    "HudiSqlError",
    "LockError",
    "MissingDependencyError",
    "NullKeyError",
    "ObjectExistsError",
    "ObjectNotFoundError",
    "PreconditionFailedError",
    "SchemaError",
    "SqlSyntaxError",
    "StorageError",
    "TableExistsError",
    "TableNotFoundError",
    "TransientStorageError",
    "UnsupportedError",
    "UnsupportedStatementError",
    "UnsupportedTableError",
]


class HudiSqlError(Exception):
    """Root of all errors of this package.

    Args:
        message: What was asked and what is wrong, in one or two sentences.
        hint: What to do about it.
        table: Name or location of the table concerned.
        part: Part of the statement concerned, as the user wrote it or would call it.
        facts: Further attributes of the error; each becomes an attribute of the same name.
    """

    retryable = False
    usual_hint: str | None = None
    """What to do about an error of this kind where nothing better is said."""

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        table: str | None = None,
        part: str | None = None,
        **facts: object,
    ) -> None:
        # Causes are told in the words of other libraries, some of which take several lines.
        message = " ".join(line.strip() for line in message.splitlines())
        super().__init__(message)
        self.message = message
        self.hint = hint if hint is not None else self.usual_hint
        self.table = table
        self.part = part
        for name, value in facts.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        where = [f"{label} {value}" for label, value in (("table", self.table), ("in", self.part)) if value]
        text = self.message + (f" [{', '.join(where)}]" if where else "")
        return f"{text} Hint: {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        # The state carries all attributes: keyword arguments would be lost by the default of Exception.
        return type(self), (self.message,), self.__dict__


class SqlSyntaxError(HudiSqlError):
    """The text is not a statement of the session's dialect. `.sql`, `.start`, `.end` show the spot."""

    sql: str = ""
    start: int = 0
    end: int = 0


class BindError(HudiSqlError):
    """A name, column or type in the statement does not fit the tables it is about."""


class UnsupportedError(HudiSqlError):
    """What was asked is understood and not done; nothing was changed."""


class UnsupportedStatementError(UnsupportedError):
    """The statement or one of its clauses is not supported."""


class UnsupportedTableError(UnsupportedError):
    """The table has a feature that we cannot keep right. `.property` and `.value` name it."""

    property: str | None = None
    value: str | None = None


class TableNotFoundError(HudiSqlError):
    """No such table, or no Hudi table at the location."""


class TableExistsError(HudiSqlError):
    """The name or location is taken."""


class SchemaError(HudiSqlError):
    """A schema cannot be stored, or the data does not fit it."""

    usual_hint = "Compare the columns and types of the data with those of the table."


class ConstraintError(HudiSqlError):
    """The data breaks a rule of the table."""


class NullKeyError(ConstraintError):
    """A record key is NULL or empty."""


class DuplicateKeyError(ConstraintError):
    """A record key would stand in the table twice."""


class CardinalityError(ConstraintError):
    """Several source rows act on one target row and nothing decides between them."""


class ConflictError(HudiSqlError):
    """Another writer changed what this statement read or writes. Certainly not committed."""

    retryable = True


class LockError(HudiSqlError):
    """The table's lock could not be had in time."""

    retryable = True


class CommitOutcomeUnknownError(HudiSqlError):
    """The last step of a commit was attempted and its outcome could not be read back. Nothing was deleted."""


class CorruptTableError(HudiSqlError):
    """A file of the table breaks its format. `.path` and, where known, `.offset` (bytes) name the place."""

    path: str | None = None
    offset: int | None = None
    usual_hint = "Restore the file from a copy, or go back to an earlier state with Hudi's own tools."


class StorageError(HudiSqlError):
    """The store refused or failed an operation."""

    path: str | None = None
    usual_hint = "Check the location, the permissions and storage_options."


class ObjectNotFoundError(StorageError):
    """There is no object at the path."""

    usual_hint = "Something outside Hudi removed or moved it: check the location, or restore it from a copy."


class ObjectExistsError(StorageError):
    """The object to create exists already."""


class PreconditionFailedError(StorageError):
    """The object is not in the version that the caller had seen."""


class TransientStorageError(StorageError):
    """The store could not answer now; the same call may succeed later."""

    retryable = True
    usual_hint = "Try again; check the location, the endpoint and the credentials if it stays so."


class EngineFailureError(HudiSqlError):
    """The engine failed to run a query. Its own error is the cause."""


class ConfigError(HudiSqlError, ValueError):
    """A setting is unknown or has a value that cannot be used."""


class MissingDependencyError(HudiSqlError, ImportError):
    """An optional package is not installed; the hint names the extra to install."""
