"""The training of an encoder on the render thread, with a training that follows a script."""

from __future__ import annotations

import math
import threading
from typing import Any, cast

from explorer_app.rendering.render_events import LearningAdvanced, LearningEnded, RenderEvent
from explorer_app.rendering.tasks.learning import BURST_S, LearningTask
from gpu_backend import EncoderReport, RequestError

RENDERER = cast("Any", object())


class Script:
    """A training of so many steps, each of two fifths of a burst; its encoder is the number of the step."""

    def __init__(self, clock: list[float], steps: int = 5, fails_at: int = 0) -> None:
        self._clock, self._fails_at = clock, fails_at
        self.report = EncoderReport(0, steps, 0, math.nan, 0.0)
        self.found: Any = None

    def step(self, renderer: object) -> EncoderReport:
        assert renderer is RENDERER
        self._clock[0] += BURST_S / 2.5
        step, steps = self.report.step + 1, self.report.steps
        if step == self._fails_at:
            raise RequestError("The model is gone.")
        self.report = EncoderReport(step, steps, step, 0.5, step / steps, is_done=step == steps)
        self.found = step
        return self.report


class Harness:
    """A task whose trainings are made before `begin` returns."""

    def __init__(self, **script: int) -> None:
        self.events: list[RenderEvent] = []
        self.clock = [0.0]
        self.task = LearningTask(threading.Condition(), self.events.append, lambda: self.clock[0])
        self.training = Script(self.clock, **script)

    def begin(self, number: int) -> None:
        self.task.begin(number, lambda: self.training)
        self.task._makers.close()

    def step(self, *, yields: bool = False) -> RenderEvent:
        assert self.task.step(RENDERER, lambda: yields)
        return self.events[-1]


def test_bursts_report_progress_and_the_last_one_the_encoder() -> None:
    harness = Harness()
    assert harness.task.seconds_until_ready() is None
    harness.begin(4)
    assert harness.task.seconds_until_ready() == 0.0
    event = harness.step()
    assert isinstance(event, LearningAdvanced)
    assert (event.number, event.report.step, event.found) == (4, 3, 3)
    assert harness.step() == LearningEnded(4, cast("Any", 5))
    assert harness.task.seconds_until_ready() is None


def test_a_preview_that_waits_ends_a_burst_after_one_step() -> None:
    harness = Harness()
    harness.begin(0)
    event = harness.step(yields=True)
    assert isinstance(event, LearningAdvanced)
    assert event.report.step == 1


def test_stopping_keeps_the_best_and_cancelling_says_nothing() -> None:
    harness = Harness()
    harness.begin(1)
    harness.step()
    harness.task.stop()
    assert harness.step() == LearningEnded(1, cast("Any", 3))
    harness.begin(2)
    harness.task.cancel()
    count = len(harness.events)
    assert harness.task.step(RENDERER, lambda: False)
    assert len(harness.events) == count


def test_a_failure_ends_the_training_with_the_best_so_far() -> None:
    harness = Harness(fails_at=2)
    harness.begin(1)
    event = harness.step()
    assert isinstance(event, LearningEnded)
    assert (event.found, str(event.error)) == (1, "The model is gone.")


def test_what_cannot_be_made_is_reported_and_stopped_before_it_is_made_ends_at_once() -> None:
    harness = Harness()

    def refuse() -> Script:
        raise RequestError("No torch.")

    harness.task.begin(3, refuse)
    harness.task._makers.close()
    (event,) = harness.events
    assert isinstance(event, LearningEnded)
    assert str(event.error) == "No torch."
    made = threading.Event()

    def late() -> Script:
        made.wait(10)
        return harness.training

    harness.task.begin(4, late)
    harness.task.stop()
    assert harness.events[-1] == LearningEnded(4, None)
    made.set()
    harness.task.close()
    assert harness.task.seconds_until_ready() is None
