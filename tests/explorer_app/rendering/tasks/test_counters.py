"""Hardware counters on the render thread: a run of the kernels a step, for the renderer that is there."""

from __future__ import annotations

import threading
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from explorer_app.rendering.render_events import CountersMeasured, RenderEvent
from explorer_app.rendering.tasks.counters import CountersTask
from gpu_backend import CancelledError, DeviceError, DeviceLostError
from tests.helpers.render_harness import MODEL, request

STEPS = 3


class Counting:
    """A renderer that counts, and notes what ends."""

    facts = MODEL.facts

    def __init__(self, failing: Exception | None = None) -> None:
        self.failing = failing
        self.steps = self.ended = 0

    def counter_steps(self, asked: Any) -> Generator[None, None, None]:
        try:
            for _ in range(STEPS):
                if self.failing is not None:
                    raise self.failing
                self.steps += 1
                yield
        finally:
            self.ended += 1


@pytest.fixture
def events() -> list[RenderEvent]:
    return []


@pytest.fixture
def task(events: list[RenderEvent]) -> CountersTask:
    return CountersTask(threading.Condition(), events.append, lambda error: isinstance(error, DeviceLostError))


def run(task: CountersTask, renderer: Any) -> None:
    while task.seconds_until_ready() is not None:
        assert task.step(renderer, lambda: False)


def test_each_step_is_one_run_and_the_end_is_reported(task: CountersTask, events: list[RenderEvent]) -> None:
    renderer: Any = Counting()
    task.request(request(1))
    for number in range(1, STEPS + 1):
        task.step(renderer, lambda: False)
        assert (renderer.steps, events) == (number, [])
    run(task, renderer)
    assert events == [CountersMeasured()]
    assert renderer.ended == 1


def test_another_renderer_or_a_newer_request_ends_what_was_begun(task: CountersTask, events: list[RenderEvent]) -> None:
    first: Any = Counting()
    task.request(request(1))
    task.step(first, lambda: False)
    task.request(request(2))
    task.step(first, lambda: False)
    assert (first.steps, first.ended) == (2, 1)
    run(task, Counting())
    assert (first.steps, first.ended, events) == (2, 2, [])
    task.request(replace(request(1), model_id="another"))
    run(task, first)
    assert (first.steps, events) == (2, [])


def test_a_refusal_is_reported_and_a_lost_device_is_left_to_the_thread(
    task: CountersTask, events: list[RenderEvent]
) -> None:
    refusal = DeviceError("No.")
    task.request(request(1))
    run(task, Counting(refusal))
    assert events == [CountersMeasured(refusal)]
    task.request(request(1))
    run(task, Counting(DeviceLostError("Gone.")))
    assert len(events) == 1


def test_a_plan_that_was_freed_meanwhile_ends_the_measurement_with_its_reason(
    task: CountersTask, events: list[RenderEvent]
) -> None:
    freed = CancelledError("The plan was freed.")
    task.request(request(1))
    run(task, Counting(freed))
    assert events == [CountersMeasured(freed)]


def test_closing_ends_a_measurement_under_way(task: CountersTask) -> None:
    renderer: Any = Counting()
    task.request(request(1))
    task.step(renderer, lambda: False)
    task.close()
    task.close()
    assert renderer.ended == 1
    assert task.seconds_until_ready() is None
