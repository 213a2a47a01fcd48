"""The drag on the render thread, with an optimiser that follows a script."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from explorer_app.rendering.render_events import DragAdvanced, DragFailed, RenderEvent
from explorer_app.rendering.tasks.drag import DragTask
from gpu_backend import RequestError
from tests.helpers.fake_drag import FakeDrag


class Harness:
    """A task whose drags are made before `begin` returns."""

    def __init__(self) -> None:
        self.events: list[RenderEvent] = []
        self.clock = [0.0]
        self.task = DragTask(threading.Condition(), self.events.append, lambda: self.clock[0])

    def begin(self, number: int, drag: FakeDrag | Callable[[], FakeDrag]) -> None:
        self.task.begin(number, drag if callable(drag) else lambda: drag)
        for thread in threading.enumerate():
            if thread.name == "preparing drag":
                thread.join()

    def step(self, *, yields: bool = False) -> None:
        assert self.task.step(None, lambda: yields)

    @property
    def advanced(self) -> list[tuple[int, int]]:
        """Number and steps of each report."""
        return [(item.number, item.report.step) for item in self.events if isinstance(item, DragAdvanced)]


def test_a_step_of_the_task_is_a_burst_and_reports_the_rows() -> None:
    harness = Harness()
    harness.begin(4, FakeDrag(harness.clock))
    assert harness.task.seconds_until_ready() == 0.0
    harness.step()
    assert harness.advanced == [(4, 3)], "three steps of two fifths of a burst"
    (event,) = harness.events
    assert isinstance(event, DragAdvanced)
    assert np.frombuffer(event.latent.rows, "<f4").tolist() == [3.0]


def test_a_preview_that_waits_ends_a_burst_after_one_step() -> None:
    harness = Harness()
    harness.begin(0, FakeDrag(harness.clock))
    harness.step(yields=True)
    harness.step(yields=True)
    assert harness.advanced == [(0, 1), (0, 2)]


def test_a_settled_drag_waits_until_a_target_moves() -> None:
    harness = Harness()
    drag = FakeDrag(harness.clock, steps=2)
    harness.begin(0, drag)
    harness.step()
    assert harness.task.seconds_until_ready() is None
    harness.task.aim(0, (5.0, 6.0))
    harness.task.aim(0, (7.0, 8.0))
    assert harness.task.seconds_until_ready() == 0.0
    harness.step()
    assert drag.targets == [(0, (7.0, 8.0))], "the newest target wins"


def test_a_target_that_moves_during_a_burst_is_followed_by_the_next_step() -> None:
    harness = Harness()
    drag = FakeDrag(harness.clock)
    harness.begin(0, drag)
    seen: list[int] = []

    def move() -> bool:
        seen.append(drag.steps)
        if len(seen) == 1:
            harness.task.aim(0, (3.0, 4.0))
        else:
            assert drag.targets == [(0, (3.0, 4.0))]
        return False

    harness.task.step(None, move)
    assert seen == [1, 2]


def test_targets_that_move_while_a_drag_is_made_are_not_lost() -> None:
    harness = Harness()
    drag = FakeDrag(harness.clock)

    def make() -> FakeDrag:
        harness.task.aim(1, (2.0, 3.0))
        return drag

    harness.begin(0, make)
    harness.step()
    assert drag.targets == [(1, (2.0, 3.0))]


def test_the_newest_drag_wins_and_the_former_one_is_no_longer_reported() -> None:
    harness = Harness()
    first, second = FakeDrag(harness.clock), FakeDrag(harness.clock)
    harness.begin(1, first)
    harness.begin(2, second)
    harness.step()
    assert first.steps == 0
    assert harness.advanced == [(2, 3)]


def test_a_drag_that_ends_during_a_step_is_not_reported() -> None:
    harness = Harness()
    harness.begin(1, FakeDrag(harness.clock))

    def end() -> bool:
        harness.task.cancel()
        return True

    harness.task.step(None, end)
    assert harness.events == []
    assert harness.task.seconds_until_ready() is None
    harness.step()
    harness.task.aim(0, (1.0, 1.0))
    assert harness.task.seconds_until_ready() is None


def test_an_error_ends_the_drag_and_is_reported_once() -> None:
    harness = Harness()

    def refuse() -> FakeDrag:
        raise RequestError("There is no such block.")

    harness.begin(3, refuse)
    drag = FakeDrag(harness.clock)
    harness.begin(5, drag)
    drag.error = RequestError("W rows must be finite numbers, but some are not.")
    harness.step()
    harness.step()
    failures = [(item.number, str(item.error)[:5]) for item in harness.events if isinstance(item, DragFailed)]
    assert failures == [(3, "There"), (5, "W row")]
    harness.task.close()


def test_a_check_that_is_put_off_for_a_preview_reports_nothing_and_is_repeated() -> None:
    harness = Harness()
    drag = FakeDrag(harness.clock)
    harness.begin(2, drag)
    drag.is_checking = True
    assert not harness.task.step(None, lambda: True)
    assert harness.events == [], "an event would make another preview"
    assert harness.task.seconds_until_ready() == 0.0
    harness.step()
    assert harness.advanced == [(2, 3)]


def test_a_step_under_way_returns_early_when_its_drag_is_replaced_or_ends() -> None:
    harness = Harness()
    first, second = FakeDrag(harness.clock), FakeDrag(harness.clock)
    harness.begin(1, first)
    assert not first.is_cancelled
    harness.begin(2, second)
    assert first.is_cancelled
    assert not second.is_cancelled
    harness.task.cancel()
    assert second.is_cancelled
