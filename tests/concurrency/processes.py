"""Processes that begin together."""

from __future__ import annotations

import multiprocessing
import queue

__all__ = ["SPAWN", "run_processes"]

SPAWN = multiprocessing.get_context("spawn")


def run_processes(target, root, *args, count=2):
    """Run `target(root, number, barrier, results, *args)` in processes; gives what each put into the queue."""
    barrier, results = SPAWN.Barrier(count), SPAWN.Queue()
    processes = [
        SPAWN.Process(target=target, args=(root, number, barrier, results, *args)) for number in range(count)
    ]
    for process in processes:
        process.start()
    try:
        found = {}
        while len(found) < count:
            try:
                found.update([results.get(timeout=1)])
            except queue.Empty:
                assert not any(process.exitcode for process in processes), "a process failed: see its output"
        return found
    finally:
        barrier.abort()  # nobody waits for one that failed
        for process in processes:
            process.join(30)
