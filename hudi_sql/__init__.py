"""SQL writes on Apache Hudi tables without Spark: INSERT, UPDATE, DELETE and MERGE from DuckDB and DataFusion."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hudi_sql.errors import HudiSqlError
    from hudi_sql.result import Result, WriteResult
    from hudi_sql.session import Session, attach, connect

__all__ = ["HudiSqlError", "Result", "Session", "WriteResult", "attach", "connect"]

_HOMES = {
    "HudiSqlError": "hudi_sql.errors",
    "Result": "hudi_sql.result",
    "Session": "hudi_sql.session",
    "WriteResult": "hudi_sql.result",
    "attach": "hudi_sql.session",
    "connect": "hudi_sql.session",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: datasets of pyarrow bring pandas along where that is installed."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
