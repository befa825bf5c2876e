"""Results as Arrow streams that clean up after themselves and raise errors of this package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pyarrow as pa

from engine_adapters.lending import LentErrors
from engine_adapters.protocol import EngineQueryError

__all__ = ["guarded_reader", "translate"]

_PICTURE = re.compile(r"\n\s*LINE \d+:.*", re.DOTALL)
_MISSING = re.compile(
    r"[Tt]able (with name |'(datafusion\.public\.)?)(?P<name>[^\s']+)'? (does not exist|doesn't exist|not found)"
)


def translate(error: BaseException, lent: LentErrors, *, at_bind: bool) -> BaseException:
    """The error to raise for what an engine raised: what a lent relation raised first, else ours."""
    if lent.first is not None:
        return lent.first
    if isinstance(error, EngineQueryError):
        return error
    # DuckDB's picture of the query shows our form of it, which the user never wrote.
    text = _PICTURE.sub("", str(error)).strip() or type(error).__name__
    missing = _MISSING.search(text)
    ours = EngineQueryError(text, at_bind=at_bind, missing_relation=missing["name"] if missing else None)
    ours.__cause__ = error
    return ours


def guarded_reader(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], lent: LentErrors, on_end: Callable[[], None]
) -> pa.RecordBatchReader:
    """Wrap an engine's batches: `on_end` runs once, at the end, on an error, on close or when dropped."""
    return pa.RecordBatchReader.from_batches(schema, _GuardedBatches(batches, lent, on_end))


class _GuardedBatches:
    """An iterator with a `__del__`: a generator that was never started would not run its `finally`."""

    def __init__(
        self, batches: Iterator[pa.RecordBatch], lent: LentErrors, on_end: Callable[[], None]
    ) -> None:
        self._batches: Iterator[pa.RecordBatch] | None = batches
        self._lent = lent
        self._on_end: Callable[[], None] | None = on_end

    def __iter__(self) -> _GuardedBatches:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._batches is None:
            raise StopIteration
        try:
            return next(self._batches)
        except StopIteration:
            self._finish()
            raise
        except Exception as error:
            self._finish()
            raise translate(error, self._lent, at_bind=False) from error

    def _finish(self) -> None:
        self._batches = None
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()

    def __del__(self) -> None:
        self._finish()
