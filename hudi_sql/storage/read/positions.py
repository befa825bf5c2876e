"""Columns that a scan adds to tell where a row lives."""

from __future__ import annotations

__all__ = ["POSITION_COLUMN", "SLICE_COLUMN"]

SLICE_COLUMN = "_hudi_sql_slice"
"""int32: index of the row's file slice in the tuple of slices that was scanned."""
POSITION_COLUMN = "_hudi_sql_position"
"""int64: 0-based position of the row in its base file."""
