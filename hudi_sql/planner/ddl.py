"""CREATE TABLE and DROP TABLE of Hudi tables."""

from __future__ import annotations

__all__ = ["run_create", "run_drop"]
