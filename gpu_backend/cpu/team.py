"""Threads that each work on their own part of a layer.

torch can split every single operation over threads, but then each thread reads what another one wrote a moment before,
and where cores share no cache that costs more than the arithmetic. A team splits the layer instead: lane k makes its
rows (or its channels) from beginning to end, with operations that run on one thread.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import torch

Task = Callable[[int], None]
"""What lane k does, given k."""

CHANNEL_SPLIT_MAX_SIDE = 32
"""Layers up to this side are split by output channels: they are mostly weights. Larger ones are split by rows."""


def spans(total: int, lanes: int) -> list[tuple[int, int]]:
    """Cut range(total) into `lanes` parts of nearly one size; with few items the last parts are empty."""
    return [(total * lane // lanes, total * (lane + 1) // lanes) for lane in range(lanes)]


def layer_parts(side: int, channels: int, lanes: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Rows and output channels of each lane."""
    if side <= CHANNEL_SPLIT_MAX_SIDE:
        return [((0, side), part) for part in spans(channels, lanes)]
    return [((4 * first, min(4 * end, side)), (0, channels)) for first, end in spans(-(-side // 4), lanes)]


class Team:
    """A fixed number of lanes: one is the calling thread itself, more are threads of their own, started when needed.

    States: idle -> working (first `run`) -> closed. Each thread sets torch to one thread for itself only. One thread
    runs tasks; another one may close the team, which then waits for the task under way.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self._tasks: list[queue.SimpleQueue[Task | None]] = []
        self._results: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._at_work = threading.Lock()

    def run(self, task: Task) -> None:
        """Let every lane do its part and wait for all; the first error is raised here.

        Raises
        ------
        RuntimeError
            If the team was closed.
        """
        with self._at_work:
            if self._is_closed:
                raise RuntimeError("this team of threads was closed")
            if self.lanes == 1:
                task(0)
                return
            if not self._threads:
                self._start()
            self._do(task)

    def run_alone(self, work: Callable[[], None]) -> None:
        """Let the first lane do something by itself, with operations that run on one thread, and wait for it.

        Raises
        ------
        RuntimeError
            If the team was closed.
        """

        def first(lane: int) -> None:
            if lane == 0:
                work()

        self.run(first)

    def close(self) -> None:
        """End the threads. May be called twice."""
        with self._at_work:
            self._is_closed = True
            for tasks in self._tasks:
                tasks.put(None)
            for thread in self._threads:
                thread.join()
            self._tasks, self._threads = [], []

    def _do(self, task: Task) -> None:
        for tasks in self._tasks:
            tasks.put(task)
        errors = [self._results.get() for _ in self._tasks]
        for error in errors:
            if error is not None:
                raise error

    def _start(self) -> None:
        threads = torch.get_num_threads()
        self._tasks = [queue.SimpleQueue() for _ in range(self.lanes)]
        for lane, tasks in enumerate(self._tasks):
            thread = threading.Thread(target=self._work, args=(lane, tasks), name=f"cpu lane {lane}", daemon=True)
            thread.start()  # may fail for want of memory; `close` joins those that run
            self._threads.append(thread)
        self._do(lambda lane: None)
        # A thread that sets its own number also sets what threads of the future start with: put that back.
        torch.set_num_threads(threads)

    def _work(self, lane: int, tasks: queue.SimpleQueue[Task | None]) -> None:
        torch.set_num_threads(1)
        # A thread takes over the process's number at its first look; looking now makes it keep the one just set.
        torch.get_num_threads()
        with torch.inference_mode():
            while (task := tasks.get()) is not None:
                try:
                    task(lane)
                except BaseException as error:  # handed to the caller of run
                    self._results.put(error)
                else:
                    self._results.put(None)
                del task
