"""Thread team: each thread (lane) computes its own part of a layer.

torch can split each operation over threads. Then each thread reads data that another one has just written, which costs
more than the arithmetic if the cores share no cache. A team splits the layer instead: lane k computes its rows or
channels through all operations. But lanes share Python's lock, which many of them spend their time waiting for. So with
many threads there are two lanes, and torch splits each operation of a lane over `width` threads. Milliseconds for a
StyleGAN2 picture of 256 x 256 on 16 cores with AVX-512, lanes x width, without the lock / as Python runs them:

    2 x 1  94 / 113     4 x 1  61 / 131     16 x 1  98 / 195     1 x 16  47 / 53     4 x 4  46 / -     2 x 8  40 / -
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

Task = Callable[[int], None]
"""Work of lane k, called with k."""

MOST_SINGLE_LANES = 3
"""Threads up to this number are lanes of their own; more of them are divided between two lanes."""

CHANNEL_SPLIT_MAX_SIDE = 32
"""Layers up to this side are split by output channels, because weights dominate. Larger ones are split by rows."""


def spans(total: int, lanes: int) -> list[tuple[int, int]]:
    """Divide range(total) into `lanes` parts of nearly equal size; with few items the last parts are empty."""
    return [(total * lane // lanes, total * (lane + 1) // lanes) for lane in range(lanes)]


def layer_parts(side: int, channels: int, lanes: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Rows and output channels of each lane."""
    if side <= CHANNEL_SPLIT_MAX_SIDE:
        return [((0, side), part) for part in spans(channels, lanes)]
    return [((4 * first, min(4 * end, side)), (0, channels)) for first, end in spans(-(-side // 4), lanes)]


def division_of(threads: int) -> tuple[int, int]:
    """Return the number of lanes, and of torch threads of each; an odd thread of more than three is left over."""
    lanes = threads if threads <= MOST_SINGLE_LANES else 2
    return lanes, threads // lanes


class Team:
    """A fixed number of lanes. A single lane is the calling thread; several lanes are threads, started on first use.

    A picture is one task of the first lane (`run_alone`), which shares each layer with the others by a `run` inside it.
    So the first lane continues with its part of a layer without a thread switch, and a layer wakes only the others.

    States: idle -> working (first `run`) -> closed. Each thread sets torch's number of threads for itself only; for a
    single lane, the calling thread gets its own number back. One thread runs tasks. Another one may close the team;
    `close` then waits for the current task.

    Parameters
    ----------
    lanes
        Threads that compute parts of layers.
    width
        Threads that torch splits each operation of a lane over.
    """

    def __init__(self, lanes: int, width: int = 1) -> None:
        self.lanes, self.width = lanes, width
        self._tasks: list[queue.SimpleQueue[Task | None]] = []
        self._results: list[queue.SimpleQueue[BaseException | None]] = []
        self._threads: list[threading.Thread] = []
        self._is_closed = False
        self._at_work = threading.Lock()
        self._wrap: Callable[[Task], Task] | None = None
        self._first = 0
        """Identifier of the thread that is the first lane of the task under way; 0 for none."""
        self._unread = 0
        """Tasks of the first lane whose result was not read: Ctrl-C ended the wait for it."""

    def run(self, task: Task) -> None:
        """Run the task on every lane and wait for all; the first error is raised here.

        On the first lane, inside `run_alone`, that thread does its part itself.

        Raises
        ------
        RuntimeError
            If the team was closed.
        """
        if self._first == threading.get_ident():
            self._share(task)
        else:
            self.run_alone(lambda: self._share(task))

    def run_alone(self, work: Callable[[], None]) -> None:
        """Run work on the first lane only, and wait for it.

        Raises
        ------
        RuntimeError
            If the team was closed.
        """
        with self._at_work:
            if self._is_closed:
                raise RuntimeError("this team of threads was closed")
            if self.lanes == 1:
                self._lead(work)
                return
            if not self._threads:
                self._start()
            while self._unread:
                self._results[0].get()
                self._unread -= 1
            self._unread += 1
            self._tasks[0].put(lambda lane: self._lead(work))
            error = self._results[0].get()
            self._unread -= 1
            if error is not None:
                raise error

    def run_narrow(self, work: Callable[[], None]) -> None:
        """Run work as `run_alone` does, with one torch thread a lane instead of `width`.

        Raises
        ------
        RuntimeError
            If the team was closed.
        """
        if self.width == 1 or self.lanes == 1:
            self.run_alone(work)
            return
        self._set_width(1)
        try:
            self.run_alone(work)
        finally:
            self._set_width(self.width)

    def _set_width(self, width: int) -> None:
        threads = torch.get_num_threads()
        try:
            self.run(lambda lane: torch.set_num_threads(width))
        finally:
            torch.set_num_threads(threads)

    @contextmanager
    def wrapping(self, wrap: Callable[[Task], Task]) -> Iterator[None]:
        """Run what `wrap` makes of each task inside the `with` block; for the first lane, inside `run_alone`."""
        self._wrap = wrap
        try:
            yield
        finally:
            self._wrap = None

    def close(self) -> None:
        """Stop the threads. May be called twice."""
        with self._at_work:
            self._is_closed = True
            # The first lane may still be at work, if Ctrl-C ended the wait for it, and needs the others until its end.
            self._end()

    def _lead(self, work: Callable[[], None]) -> None:
        """Do work as the first lane."""
        threads = torch.get_num_threads() if self.lanes == 1 else self.width
        if threads != self.width:
            torch.set_num_threads(self.width)
        self._first = threading.get_ident()
        try:
            work()
        finally:
            self._first = 0
            if threads != self.width:
                torch.set_num_threads(threads)

    def _share(self, task: Task) -> None:
        """Run the task on every lane; called on the first."""
        if self._wrap is not None:
            task = self._wrap(task)
        for tasks in self._tasks[1:]:
            tasks.put(task)
        try:
            task(0)
        finally:  # the others still use the memory of the task
            self._wait_for(self._results[1:])

    @staticmethod
    def _wait_for(results: list[queue.SimpleQueue[BaseException | None]]) -> None:
        """Wait for the ends of a task on some lanes; raise the first error."""
        errors = [result.get() for result in results]
        for error in errors:
            if error is not None:
                raise error

    def _start(self) -> None:
        threads = torch.get_num_threads()
        self._tasks = [queue.SimpleQueue() for _ in range(self.lanes)]
        self._results = [queue.SimpleQueue() for _ in range(self.lanes)]
        try:
            for lane, tasks in enumerate(self._tasks):
                thread = threading.Thread(target=self._work, args=(lane, tasks), name=f"cpu lane {lane}", daemon=True)
                thread.start()
                self._threads.append(thread)
            for tasks in self._tasks:
                tasks.put(lambda lane: None)
            self._wait_for(self._results)
        except BaseException:  # memory is short, or Ctrl-C: a later task starts all of them again
            self._end()
            raise
        finally:
            # torch.set_num_threads in a thread also changes the default of later threads: restore it.
            torch.set_num_threads(threads)

    def _end(self) -> None:
        """End the threads that run."""
        for tasks, thread in zip(self._tasks, self._threads, strict=False):  # starting may have failed on the way
            tasks.put(None)
            thread.join()
        self._tasks, self._threads = [], []

    def _work(self, lane: int, tasks: queue.SimpleQueue[Task | None]) -> None:
        torch.set_num_threads(self.width)
        # A thread copies the process-wide number at its first query; querying now makes it keep the number just set.
        torch.get_num_threads()
        with torch.inference_mode():
            while (task := tasks.get()) is not None:
                try:
                    task(lane)
                except BaseException as error:  # re-raised in `run`
                    self._results[lane].put(error)
                else:
                    self._results[lane].put(None)
                del task
