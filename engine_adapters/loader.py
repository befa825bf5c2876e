"""Finds the adapter for an engine's name or for a user's object, importing only that engine."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from engine_adapters.protocol import Engine, EngineSettings

__all__ = ["ENGINES", "attach", "connect"]

ENGINES = {
    "duckdb": ("engine_adapters.duckdb.engine", "DuckDBEngine"),
    "datafusion": ("engine_adapters.datafusion.engine", "DataFusionEngine"),
}
"""Engine name → module and class of its adapter."""


def connect(name: str, settings: EngineSettings | None = None) -> Engine:
    """Open an engine of our own.

    Raises:
        KeyError: No engine of this name.
        ImportError: The engine is not installed.
    """
    return cast("Engine", _adapter(name).connect(settings))


def attach(session: Any) -> Engine:
    """Take a user's DuckDB connection or DataFusion session context.

    Raises:
        TypeError: It is neither.
    """
    for kind in type(session).__mro__:
        package = kind.__module__.split(".")[0]
        if package in ("duckdb", "_duckdb") and kind.__name__ == "DuckDBPyConnection":
            return cast("Engine", _adapter("duckdb").attach(session))
        if package == "datafusion" and kind.__name__ == "SessionContext":
            return cast("Engine", _adapter("datafusion").attach(session))
    raise TypeError(
        f"{type(session).__module__}.{type(session).__qualname__} is no engine session that is known"
    )


def _adapter(name: str) -> Any:
    module, attribute = ENGINES[name]
    return getattr(import_module(module), attribute)
