"""Work on a model's weights, shared out among the processor's cores.

NumPy lets other threads run while it computes on an array, so threads that each take a part of an array are as fast as
memory allows.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_MOST_THREADS = 16
"""More cores than these wait for memory."""


def parallel_for(work: Callable[[int], None], count: int) -> None:
    """Call `work` with every number below `count`, in any order, on as many threads as there are cores; then return.

    The parts should take some tenths of a millisecond at least, and each write what no other one touches. The calling
    thread takes its share, and all of it where there is but one part. If a part fails, its error is raised once the
    parts that were begun have ended.
    """
    numbers = itertools.count()  # taking the next one is atomic
    is_failed = False

    def take_parts() -> None:
        nonlocal is_failed
        while not is_failed and (number := next(numbers)) < count:
            try:
                work(number)
            except BaseException:
                is_failed = True
                raise

    helpers = min(core_count(), _MOST_THREADS, count) - 1
    if helpers < 1:
        take_parts()
        return
    with ThreadPoolExecutor(helpers, thread_name_prefix="weights") as pool:
        futures = [pool.submit(take_parts) for _ in range(helpers)]
        take_parts()
    for future in futures:
        future.result()


def core_count() -> int:
    """Cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1
