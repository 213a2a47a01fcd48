"""The search for a photo's latent on the render thread, with a search that follows a script."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from explorer_app.rendering.render_events import ProjectionAdvanced, ProjectionEnded, ProjectionFailed, RenderEvent
from explorer_app.rendering.tasks.projection import BURST_S, ProjectionTask
from gpu_backend import ProjectionReport, RequestError
from tests.helpers.fake_projection import FakeProjection


class Timed(FakeProjection):
    """A search whose steps take two fifths of a burst."""

    def __init__(self, clock: list[float], steps: int = 12) -> None:
        super().__init__(steps, w_dim=1)
        self._clock = clock

    def step(self) -> ProjectionReport:
        self._clock[0] += BURST_S / 2.5
        return super().step()


class Harness:
    """A task whose searches are made before `begin` returns."""

    def __init__(self) -> None:
        self.events: list[RenderEvent] = []
        self.clock = [0.0]
        self.task = ProjectionTask(threading.Condition(), self.events.append, lambda: self.clock[0])

    def begin(self, number: int, make: Callable[[], FakeProjection] | None = None) -> None:
        self.task.begin(number, make or (lambda: Timed(self.clock)))
        self.task._makers.close()

    def step(self, *, yields: bool = False) -> None:
        assert self.task.step(None, lambda: yields)


def first_number(event: RenderEvent) -> float:
    assert isinstance(event, ProjectionAdvanced | ProjectionEnded)
    assert event.latent is not None
    return float(np.frombuffer(event.latent.rows, "<f4")[0])


def test_a_step_of_the_task_is_a_burst_and_reports_the_best_rows() -> None:
    harness = Harness()
    harness.begin(4)
    assert harness.task.seconds_until_ready() == 0.0
    harness.step()
    (event,) = harness.events
    assert isinstance(event, ProjectionAdvanced)
    assert (event.number, event.report.step, first_number(event)) == (4, 3, 3.0)


def test_a_preview_that_waits_ends_a_burst_after_one_step() -> None:
    harness = Harness()
    harness.begin(0)
    harness.step(yields=True)
    assert first_number(harness.events[-1]) == 1.0


def test_rows_that_are_no_better_are_not_sent_again() -> None:
    harness = Harness()
    work = Timed(harness.clock)
    harness.begin(0, lambda: work)
    harness.step(yields=True)
    same = work.report
    work.step = lambda: same  # type: ignore[method-assign]
    harness.step(yields=True)
    event = harness.events[-1]
    assert isinstance(event, ProjectionAdvanced)
    assert event.latent is None


def test_steps_that_tune_weights_neither_read_nor_send_the_rows_again() -> None:
    class Tuning(Timed):
        latent_version = (0.5, 64)

    harness = Harness()
    work = Tuning(harness.clock)
    harness.begin(0, lambda: work)
    harness.step(yields=True)
    harness.step(yields=True)
    event = harness.events[-1]
    assert isinstance(event, ProjectionAdvanced)
    assert (event.report.step, event.latent) == (2, None), "the loss is less, the rows are the same"
    assert work.latents_read == 1


def test_the_last_step_ends_the_search_and_so_does_stopping() -> None:
    harness = Harness()
    harness.begin(1)
    while harness.task.seconds_until_ready() is not None:
        harness.step()
    assert isinstance(harness.events[-1], ProjectionEnded)
    assert first_number(harness.events[-1]) == 12.0
    harness.begin(2)
    harness.step(yields=True)
    harness.task.stop()
    harness.step()
    assert harness.events[-1] == ProjectionEnded(2, harness.events[-2].latent)  # type: ignore[union-attr]
    assert harness.task.seconds_until_ready() is None


def test_a_step_under_way_is_told_that_its_search_ends() -> None:
    harness = Harness()
    works = [Timed(harness.clock) for _ in range(3)]
    harness.begin(1, lambda: works[0])
    harness.step(yields=True)
    assert not works[0].is_cancelled
    harness.begin(2, lambda: works[1])
    assert works[0].is_cancelled, "replaced"
    harness.task.stop()
    assert works[1].is_cancelled
    harness.begin(3, lambda: works[2])
    harness.task.cancel()
    assert works[2].is_cancelled


def test_a_search_that_is_stopped_while_it_is_made_ends_without_rows() -> None:
    harness = Harness()

    def make() -> FakeProjection:
        harness.task.stop()
        return Timed(harness.clock)

    harness.begin(7, make)
    assert harness.events == [ProjectionEnded(7, None)]
    assert harness.task.seconds_until_ready() is None


def test_a_search_that_is_cancelled_during_a_step_says_nothing() -> None:
    harness = Harness()
    harness.begin(1)

    def cancel() -> bool:
        harness.task.cancel()
        return True

    harness.task.step(None, cancel)
    harness.step()
    assert harness.events == []


def test_an_error_ends_the_search_and_is_reported() -> None:
    harness = Harness()

    def refuse() -> FakeProjection:
        raise RequestError("There is no such picture.")

    harness.begin(3, refuse)
    work = Timed(harness.clock)
    work.error = RequestError("The loss is not finite.")
    harness.begin(5, lambda: work)
    harness.step()
    assert [(event.number, str(event.error)) for event in harness.events if isinstance(event, ProjectionFailed)] == [
        (3, "There is no such picture."),
        (5, "The loss is not finite."),
    ]
    assert harness.task.seconds_until_ready() is None
