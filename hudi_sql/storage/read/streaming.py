"""Streams of several files at once, in order and in bounded memory."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

__all__ = ["stream_in_order"]

_AHEAD = 2
"""Batches that a file may be ahead of the consumer."""
_PATIENCE_S = 0.1

BatchSource = Callable[[], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class _Feed:
    """What one file has given and the consumer has not taken. None ends it, an exception breaks it off."""

    items: queue.Queue[pa.RecordBatch | BaseException | None] = field(
        default_factory=lambda: queue.Queue(maxsize=_AHEAD)
    )


def stream_in_order(sources: Sequence[BatchSource], threads: int) -> Iterator[pa.RecordBatch]:
    """Chain the batches of some sources; up to `threads` of them are read at once.

    Memory holds a few batches for each thread. Closing the generator stops the threads; an error of a source comes
    out at its place in the stream.
    """
    if threads <= 1 or len(sources) <= 1:
        for source in sources:
            yield from source()
        return
    stop = threading.Event()
    waiting = deque(sources)
    running: deque[_Feed] = deque()
    workers: deque[threading.Thread] = deque()
    try:
        while waiting or running:
            while waiting and len(running) < threads:
                feed = _Feed()
                running.append(feed)
                workers.append(_start(waiting.popleft(), feed, stop))
            yield from _drain(running.popleft())
            workers.popleft().join()
    finally:
        stop.set()
        for worker in workers:
            # The garbage collector may close an abandoned stream on any thread, one of its own included.
            if worker is not threading.current_thread():
                worker.join()


def _start(source: BatchSource, feed: _Feed, stop: threading.Event) -> threading.Thread:
    # A daemon: a stream that is kept and never read to its end must not keep the interpreter from ending.
    worker = threading.Thread(target=_fill, args=(source, feed, stop), name="hudi-sql-read", daemon=True)
    worker.start()
    return worker


def _drain(feed: _Feed) -> Iterator[pa.RecordBatch]:
    while (item := feed.items.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        yield item


def _fill(source: BatchSource, feed: _Feed, stop: threading.Event) -> None:
    end: BaseException | None = None
    batches = source()
    try:
        for batch in batches:
            if not _put(feed, batch, stop):
                break
    except BaseException as error:  # noqa: BLE001  # handed to the consumer, who raises it
        end = error
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()
        _put(feed, end, stop)


def _put(feed: _Feed, item: pa.RecordBatch | BaseException | None, stop: threading.Event) -> bool:
    """Wait for room; False when nobody is going to take the item."""
    while not stop.is_set():
        try:
            feed.items.put(item, timeout=_PATIENCE_S)
        except queue.Full:
            continue
        return True
    return False
