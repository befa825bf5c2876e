"""What all tests share: the two engines, and a switch that makes one of them impossible to import."""

from __future__ import annotations

import importlib.abc
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec

import pytest

ENGINES = ("duckdb", "datafusion")
BLOCKED = os.environ.get("HUDI_SQL_BLOCKED_ENGINE", "")


class _Blocker(importlib.abc.MetaPathFinder):
    """Behaves as if a package were not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if name.split(".", maxsplit=1)[0] == BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r} (blocked for this run)", name=name)
        return None


if BLOCKED:
    assert BLOCKED in ENGINES, BLOCKED
    assert BLOCKED not in sys.modules, f"{BLOCKED} was imported before it could be blocked"
    sys.meta_path.insert(0, _Blocker())

engines = pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ENGINES if name != BLOCKED]
)
"""Runs a test once for each engine that is there: `@engines def test_x(engine): ...`."""
