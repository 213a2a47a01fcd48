"""A call comes once nothing has started its timer for a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from explorer_app.controller.rest_timer import RestTimer


class Rest:
    """A timer that calls 100 ms after the last start, by a clock that a test winds."""

    def __init__(self) -> None:
        self.calls, self.now_s = 0, 0.0
        self.on_call: Callable[[], object] = int
        self.timer = RestTimer(100, self._call, clock=lambda: self.now_s)

    def _call(self) -> None:
        self.calls += 1
        self.on_call()

    def fire(self, ms: float) -> None:
        """Let time pass, and the timer of the system fire."""
        self.now_s += ms / 1000.0
        self.timer._timer.timeout.emit()


@pytest.fixture
def rest(qapp: object) -> Iterator[Rest]:
    rest = Rest()
    yield rest
    rest.timer.stop()


def test_the_call_comes_an_interval_after_the_last_of_many_starts(rest: Rest) -> None:
    rest.timer.start()
    for _ in range(5):
        rest.now_s += 0.015
        rest.timer.start()
    rest.fire(25.0)
    assert (rest.calls, rest.timer.is_active) == (0, True)
    assert rest.timer._timer.interval() == 75, "what is left"
    rest.fire(75.0)
    assert (rest.calls, rest.timer.is_active) == (1, False)


def test_a_start_during_the_call_begins_another_interval(rest: Rest) -> None:
    rest.on_call = rest.timer.start
    rest.timer.start()
    rest.fire(100.0)
    assert (rest.calls, rest.timer.is_active) == (1, True)


def test_a_stopped_timer_calls_nothing_and_can_be_started_again(rest: Rest) -> None:
    rest.timer.start()
    rest.timer.stop()
    rest.timer.stop()
    assert not rest.timer._timer.isActive()
    rest.timer.start()
    rest.fire(100.0)
    assert rest.calls == 1
