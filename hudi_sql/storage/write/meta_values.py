"""Values of the meta columns of rows that are written (base file notes §2)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_sql.storage.model.instant import InstantTime

__all__ = ["constant", "numbered", "sequence_numbers"]


def constant(text: str, num_rows: int) -> pa.StringArray:
    """One text for every row."""
    return pa.repeat(pa.scalar(text, pa.string()), num_rows)


def numbered(prefix: str, start: int, num_rows: int) -> pa.StringArray:
    """`<prefix>_<n>` for n from `start` on."""
    numbers = pa.array(np.arange(start, start + num_rows, dtype=np.int64)).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(prefix), numbers, "_")


def sequence_numbers(instant: InstantTime, task: int, start: int, num_rows: int) -> pa.StringArray:
    """`_hoodie_commit_seqno`: instant, writer task and a counter of the task; unique within the table."""
    return numbered(f"{instant}_{task}", start, num_rows)
