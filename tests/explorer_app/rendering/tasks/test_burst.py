"""What all optimisations on the render thread have in common, with works that count their steps."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from explorer_app.rendering.tasks.burst import SearchTask
from explorer_app.rendering.tasks.task import Priority
from gpu_backend import RequestError


@dataclass
class Work:
    """Is done after five steps."""

    steps: int = 0
    fails_at: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.fails_at:
            raise RequestError("The model is gone.")


class CountingTask(SearchTask[Work]):
    """Reports tuples: what happened, the number of the work, its steps."""

    priority = Priority.IDLE
    burst_s = 1.0
    maker_name = "preparing work"

    def _step_once(self, work: Work, renderer: object, should_yield: object) -> bool:
        work.step()
        return self._is_done(work)

    def _is_done(self, work: Work) -> bool:
        return work.steps >= 5

    def _advanced(self, number: int, work: Work) -> Any:
        return "advanced", number, work.steps

    def _ended(self, number: int, work: Work | None) -> Any:
        return "ended", number, work and work.steps

    def _failed(self, number: int, work: Work | None, error: Exception) -> Any:
        return "failed", number, work and work.steps


class Harness:
    """A task whose clock ends a burst after two steps, and whose works are made before `begin` returns."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self._now = 0.0
        self.task = CountingTask(threading.Condition(), self.events.append, self._clock)

    def _clock(self) -> float:
        self._now += 0.5
        return self._now

    def begin(self, number: int, work: Work) -> None:
        self.task.begin(number, lambda: work)
        self.task._makers.close()

    def step(self) -> None:
        assert self.task.step(None, lambda: False)


def test_bursts_end_by_the_clock_and_the_work_by_itself() -> None:
    harness = Harness()
    harness.begin(7, Work())
    while harness.task.seconds_until_ready() is not None:
        harness.step()
    assert harness.events == [("advanced", 7, 2), ("advanced", 7, 4), ("ended", 7, 5)]


def test_a_stop_during_a_burst_ends_the_work_with_that_burst() -> None:
    harness = Harness()
    harness.begin(1, Work())

    def stop() -> bool:
        harness.task.stop()
        return True

    harness.task.step(None, stop)
    assert harness.events == [("ended", 1, 1)]


def test_a_work_that_begins_during_a_burst_is_neither_reported_nor_stopped_by_the_former_one() -> None:
    harness = Harness()
    harness.begin(1, Work())
    harness.task.stop()
    harness.begin(2, Work())
    assert harness.task.seconds_until_ready() == 0.0, "a stop of the former work does not reach the new one"

    def replace() -> bool:
        harness.begin(3, Work())
        return True

    harness.task.step(None, replace)
    assert harness.events == [], "number 2 was replaced during its burst"
    harness.step()
    assert harness.events == [("advanced", 3, 2)]


def test_an_error_of_a_replaced_work_is_dropped_and_one_of_the_newest_ends_it() -> None:
    harness = Harness()
    broken = Work(fails_at=1)
    harness.begin(1, broken)
    harness.begin(2, Work(fails_at=2))
    harness.step()
    assert harness.events == [("failed", 2, 2)]
    assert harness.task.seconds_until_ready() is None
    assert broken.steps == 0


def test_stopping_and_cancelling_without_a_work_say_nothing() -> None:
    harness = Harness()
    harness.task.stop()
    harness.task.cancel()
    harness.step()
    harness.task.close()
    assert harness.events == []
