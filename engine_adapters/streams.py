"""Results as Arrow streams that clean up after themselves and raise errors of this package."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Protocol

import pyarrow as pa

from engine_adapters.lending import LentErrors
from engine_adapters.protocol import EngineError

__all__ = ["Translate", "guarded_reader", "one_line", "remembered"]


_LONGEST = 600
_TRACEBACK = re.compile(
    r"\.?\s*(Detail: Python exception: )?Traceback \(most recent call last\).*", re.DOTALL
)


class Translate(Protocol):
    """An engine's errors → errors of the protocol."""

    def __call__(self, error: BaseException, lent: LentErrors, *, at_bind: bool) -> BaseException:
        """The error to raise for what the engine raised."""


def remembered(error: BaseException, lent: LentErrors) -> BaseException | None:
    """The error to raise as it is: what a lent relation raised first, or one of the protocol already."""
    if lent.first is not None:
        return lent.first
    return error if isinstance(error, EngineError) else None


def one_line(text: str) -> str:
    """An engine's message without line ends and without the traceback of Python code that the engine called."""
    line = " ".join(_TRACEBACK.sub("", text).split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"


def guarded_reader(
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    lent: LentErrors,
    *,
    on_end: Callable[[], None],
    translate: Translate,
) -> pa.RecordBatchReader:
    """Wrap an engine's batches: `on_end` runs once, at the end, on an error, on close or when dropped."""
    return pa.RecordBatchReader.from_batches(schema, _GuardedBatches(batches, lent, on_end, translate))


class _GuardedBatches:
    """An iterator with a `__del__`: a generator that was never started would not run its `finally`."""

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        lent: LentErrors,
        on_end: Callable[[], None],
        translate: Translate,
    ) -> None:
        self._batches: Iterator[pa.RecordBatch] | None = batches
        self._lent = lent
        self._translate = translate
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
            raise self._translate(error, self._lent, at_bind=False) from error

    def _finish(self) -> None:
        self._batches = None
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()

    def __del__(self) -> None:
        self._finish()
