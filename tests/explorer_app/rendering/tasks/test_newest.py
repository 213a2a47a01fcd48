"""The life of a request of which the newest wins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from explorer_app.rendering.render_events import RenderEvent, RenderFailed
from explorer_app.rendering.tasks.newest import NewestTask
from explorer_app.rendering.tasks.task import Priority
from gpu_backend import CancelledError, DeviceLostError

RENDERER: Any = "a renderer"


class Answering(NewestTask[int]):
    """Answers positive numbers, and raises what it is told to."""

    priority = Priority.COMPARISON

    def __init__(self, report: Callable[[RenderEvent], None]) -> None:
        super().__init__(threading.Condition(), report, lambda error: isinstance(error, DeviceLostError))
        self.answered: list[int] = []
        self.recovered: list[int] = []
        self.raises: Exception | None = None
        self.meanwhile: Callable[[], None] = lambda: None

    def _is_for(self, request: int, renderer: Any) -> bool:
        return request > 0

    def _answer(self, request: int, renderer: Any, should_yield: Callable[[], bool]) -> None:
        self.meanwhile()
        if self.raises is not None:
            raise self.raises
        self.answered.append(request)

    def _failed(self, request: int, error: Exception) -> RenderEvent:
        return RenderFailed(error)

    def _after_recovery(self, request: int) -> None:
        self.recovered.append(request)


@pytest.fixture
def events() -> list[RenderEvent]:
    return []


@pytest.fixture
def task(events: list[RenderEvent]) -> Answering:
    return Answering(events.append)


def test_only_the_newest_request_is_answered(task: Answering) -> None:
    assert task.seconds_until_ready() is None
    task.request(1)
    task.request(2)
    assert task.seconds_until_ready() == 0
    assert task.step(RENDERER, lambda: False)
    assert task.answered == [2]
    assert task.seconds_until_ready() is None


def test_a_request_that_the_renderer_cannot_answer_is_dropped(task: Answering, events: list[RenderEvent]) -> None:
    task.request(-1)
    assert task.step(RENDERER, lambda: False)
    assert (task.answered, events, task.seconds_until_ready()) == ([], [], None)


@pytest.mark.parametrize("newer", [False, True])
def test_a_cancelled_step_is_repeated_unless_a_newer_request_has_come(
    task: Answering, events: list[RenderEvent], newer: bool
) -> None:
    task.request(1)
    task.raises = CancelledError("Stopped.")
    if newer:
        task.meanwhile = lambda: task.request(2)
    assert not task.step(RENDERER, lambda: True)
    task.raises, task.meanwhile = None, lambda: None
    assert task.step(RENDERER, lambda: False)
    assert (task.answered, events) == ([2 if newer else 1], [])


def test_an_error_is_reported_once_and_one_of_the_device_is_left_to_the_thread(
    task: Answering, events: list[RenderEvent]
) -> None:
    task.raises = ValueError("No.")
    task.request(1)
    assert task.step(RENDERER, lambda: False)
    assert events == [RenderFailed(task.raises)]
    assert (task.recovered, task.seconds_until_ready()) == ([], None)
    task.raises = DeviceLostError("Gone.")
    task.request(2)
    assert task.step(RENDERER, lambda: False)
    assert (len(events), task.recovered) == (1, [2])
