"""Threads that write file groups; pyarrow releases the interpreter's lock while it encodes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

__all__ = ["writer_threads"]


@contextmanager
def writer_threads(parallelism: int) -> Iterator[Executor]:
    """An executor with `parallelism` threads; 0 is as many as there are processors."""
    threads = parallelism or os.cpu_count() or 1
    pool = ThreadPoolExecutor(threads, thread_name_prefix="hudi-sql-write")
    try:
        yield pool
    except BaseException:
        # What has not begun need not begin: the commit is going to be undone.
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown(wait=True)
