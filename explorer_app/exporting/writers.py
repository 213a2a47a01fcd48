"""Encoder threads: they compress and write pictures, so that rendering waits for neither zlib nor a disk."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

_WAITING_PER_THREAD = 2
MAX_THREADS = 256


def usual_threads() -> int:
    """Return how many threads encode unless a user says otherwise: one for each core of this process but one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


class WriterPool:
    """Runs tasks on a few threads, in any order. No method but `close` waits.

    After the first failure no further task runs.

    Parameters
    ----------
    threads
        How many. Encoders release Python's lock while they compress, so they run in parallel.
    changed
        Called, on the thread of a task, after it has ended.
    """

    def __init__(self, threads: int, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._condition = threading.Condition()
        self._tasks: deque[Callable[[], None]] = deque()
        self._running = 0
        self._capacity = threads * (1 + _WAITING_PER_THREAD)
        self._is_closing = False
        self._failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._run, name=f"export-writer-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def error(self) -> BaseException | None:
        """What the first task to fail raised."""
        return self._failure

    @property
    def has_room(self) -> bool:
        """Whether fewer tasks are waiting and running than the threads need to stay busy."""
        with self._condition:
            return len(self._tasks) + self._running < self._capacity

    def submit(self, task: Callable[[], None]) -> None:
        """Run a task soon. The caller looks at `has_room` first, so that memory stays bounded."""
        with self._condition:
            if not self._is_closing:
                self._tasks.append(task)
                self._condition.notify()

    def close(self, *, discard: bool) -> None:
        """Run, or `discard`, the tasks that wait, and end the threads. May be called twice."""
        with self._condition:
            self._is_closing = True
            if discard:
                self._tasks.clear()
            self._condition.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (task := self._take()) is not None:
            try:
                if self._failure is None:
                    task()
            except BaseException as error:  # reported through `error`
                self._failure = self._failure or error
            finally:
                with self._condition:
                    self._running -= 1
            self._changed()

    def _take(self) -> Callable[[], None] | None:
        with self._condition:
            self._condition.wait_for(lambda: self._tasks or self._is_closing)
            if not self._tasks:
                return None
            self._running += 1
            return self._tasks.popleft()
