"""Times of single kernels on every platform: a second graph of the same work, with events between the kernels.

An event costs time itself, so an interval is longer than its kernel. How much is measured once with kernels that do
nothing, between which nothing but the events makes a difference:

    cost = interval of an empty kernel between events - time of an empty kernel in a row without events
    time of kernel i = (interval i - cost) * total of the plain graph / sum over j of (interval j - cost)
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from gpu_backend.cuda.driver.arguments import PackedArguments
from gpu_backend.cuda.driver.interface import Driver, Event, Graph, LoadedKernel
from gpu_backend.cuda.schedule import Launch
from gpu_backend.frame import KernelFacts, StepTime, TimingSource

_TOTALS = 15
"""Plain replays whose median is the plain graph's time."""

_CALIBRATION_KERNELS = 64
_CALIBRATION_REPLAYS = 7
_LEAST_SHARE = 0.05
"""Of an interval, what is left to a kernel at least, however small it is."""


class EventTimer:
    """Implements `gpu_backend.cuda.timing.step_timer.StepTimer`.

    Parameters
    ----------
    start
        Starts the launch of a number.
    facts
        Of each launch; queried at the first measured run.
    event_cost_ms
        What an event adds to an interval; queried likewise.
    """

    replaces_run = True
    source: TimingSource = "events"

    def __init__(
        self,
        driver: Driver,
        launches: Sequence[Launch],
        start: Callable[[int], None],
        facts: Callable[[], tuple[KernelFacts, ...]],
        event_cost_ms: Callable[[], float],
    ) -> None:
        self._driver = driver
        self._launches = tuple(launches)
        self._start = start
        self._make_facts = facts
        self._event_cost_ms = event_cost_ms
        self._facts: tuple[KernelFacts, ...] = ()
        self._cost_ms = 0.0
        self._events: list[Event] = []
        self._graph: Graph | None = None
        self._totals_ms: deque[float] = deque(maxlen=_TOTALS)
        self._captures = 0

    @property
    def captures(self) -> int:
        """Graphs captured so far."""
        return self._captures

    @property
    def has_total(self) -> bool:
        """Whether a plain replay was noted."""
        return bool(self._totals_ms)

    @property
    def total_ms(self) -> float | None:
        """What a plain replay takes."""
        return statistics.median(self._totals_ms) if self._totals_ms else None

    def prepare(self) -> None:
        """Capture the measured graph, once."""
        if self._graph is not None:
            return
        self._facts = self._make_facts()
        self._cost_ms = self._event_cost_ms()
        try:
            self._events.extend(self._driver.make_event() for _ in range(len(self._launches) + 1))
            self._graph = self._driver.capture(self._work)
        except BaseException:
            self.close()  # the next measured run starts over
            raise
        self._captures += 1

    def give_up(self) -> None:
        """Nothing is under way before a replay."""

    def replay(self) -> None:
        """Launch the measured graph."""
        assert self._graph is not None
        self._driver.replay(self._graph)

    def note_total(self, total_ms: float) -> None:
        """Take note of what a replay of the plain graph took."""
        self._totals_ms.append(total_ms)

    def read(self, elapsed_ms: float) -> tuple[tuple[StepTime, ...], float]:
        """Return the launches' times and the plain graph's."""
        pairs = zip(self._events, self._events[1:], strict=False)
        intervals_ms = [self._driver.elapsed_ms(start, end) for start, end in pairs]
        total_ms = self.total_ms
        times_ms = kernel_times(intervals_ms, self._cost_ms, total_ms)
        steps = tuple(
            step_time(launch, time_ms * 1e3, facts)
            for launch, time_ms, facts in zip(self._launches, times_ms, self._facts, strict=True)
        )
        return steps, elapsed_ms if total_ms is None else total_ms

    def close(self) -> None:
        """Free graph and events. May be called twice."""
        if self._graph is not None:
            self._driver.release_graph(self._graph)
            self._graph = None
        for event in self._events:
            self._driver.release_event(event)
        self._events = []

    def _work(self) -> None:
        self._driver.record(self._events[0])
        for index, event in enumerate(self._events[1:]):
            self._start(index)
            self._driver.record(event)


def step_time(launch: Launch, time_us: float, facts: KernelFacts) -> StepTime:
    """The time of a launch, with its facts."""
    return StepTime(launch.layer, launch.label, time_us, launch.flops, launch.nbytes, facts)


def kernel_times(intervals_ms: Sequence[float], cost_ms: float, total_ms: float | None) -> list[float]:
    """Return kernels' times from the intervals between events; without a total they are not scaled."""
    times = [max(interval - cost_ms, _LEAST_SHARE * interval) for interval in intervals_ms]
    whole = sum(times)
    if total_ms is None or whole <= 0:
        return times
    return [time * total_ms / whole for time in times]


def measure_event_cost(driver: Driver, empty: LoadedKernel) -> float:
    """Return what an event between two kernels adds to the time between them, in ms."""
    count = _CALIBRATION_KERNELS
    events: list[Event] = []
    arguments = PackedArguments(np.dtype([]), {})

    def launch() -> None:
        driver.launch(empty, (1, 1, 1), (32, 1, 1), 0, arguments)

    def row() -> None:
        driver.record(events[0])
        for _ in range(count):
            launch()
        driver.record(events[count])

    def row_with_events() -> None:
        driver.record(events[0])
        for event in events[1:]:
            launch()
            driver.record(event)

    def median_ms(work: Callable[[], None]) -> float:
        """Time from the first event to the last one."""
        graph = driver.capture(work)
        try:
            times = []
            for _ in range(_CALIBRATION_REPLAYS):
                driver.replay(graph)
                driver.wait(events[count])
                times.append(driver.elapsed_ms(events[0], events[count]))
            return statistics.median(times)
        finally:
            driver.release_graph(graph)

    try:
        events.extend(driver.make_event() for _ in range(count + 1))
        return max(0.0, (median_ms(row_with_events) - median_ms(row)) / count)
    finally:
        for event in events:
            driver.release_event(event)
