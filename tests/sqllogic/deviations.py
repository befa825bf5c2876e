"""Our answers where they differ from Spark's, and cases that wait for a later issue."""

from __future__ import annotations

from typing import Any

__all__ = ["DEVIATIONS", "WAITING"]

DEVIATIONS: dict[str, Any] = {}
"""Case → our rows, or `{"error": …, "rows_after": …}`."""

WAITING: dict[str, str] = {}
"""Case → the statement it waits for."""
