"""Value ranges of columns, as the metadata table keeps them (metadata table notes §7)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

__all__ = ["ColumnRange"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRange:
    """Range and counts of one column in one file or partition."""

    column: str
    type: pa.DataType
    """Type of the bounds: the Arrow type of the column in the table schema."""
    minimum: pa.Scalar | None
    maximum: pa.Scalar | None
    """Both None when every value is NULL or nothing is known about the values."""
    num_nulls: int
    num_values: int
    """Rows, NULLs included."""
    total_size_bytes: int = 0
    total_uncompressed_bytes: int = 0
