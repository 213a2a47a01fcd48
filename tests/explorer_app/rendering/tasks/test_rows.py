"""Rows of w that an action waits for: in order, none dropped, without pictures, in bounded steps."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from functools import partial

from explorer_app.rendering.render_events import RenderEvent, RowsFailed, RowsMade
from explorer_app.rendering.tasks.rows import RowsTask
from gpu_backend import RenderRequest, RequestError
from tests.helpers.fake_renderer import GPU, Engine, FakeRenderer
from tests.helpers.render_harness import MODEL, OTHER, request


def seeds(*numbers: int) -> list[Callable[[], RenderRequest]]:
    return [partial(request, number) for number in numbers]


def made(events: list[RenderEvent]) -> list[tuple[int, list[int]]]:
    renderer = FakeRenderer(MODEL, Engine())
    ids = {seed: bytes(renderer.rows_of(request(seed).blend)) for seed in range(10)}
    return [
        (item.number, [next(seed for seed, rows in ids.items() if rows == row.rows) for row in item.rows])
        for item in events
        if isinstance(item, RowsMade)
    ]


def run(task: RowsTask, renderer: FakeRenderer, *, should_yield: bool = False) -> int:
    steps = 0
    while task.seconds_until_ready() == 0.0:
        assert task.step(renderer, lambda: should_yield)
        steps += 1
    return steps


def test_fetches_are_answered_in_their_order_and_render_no_picture() -> None:
    engine = Engine()
    events: list[RenderEvent] = []
    task = RowsTask(threading.Condition(), events.append, lambda error: False)
    task.request(0, seeds(3, 1))
    task.request(1, seeds(2))
    run(task, FakeRenderer(MODEL, engine))
    assert made(events) == [(0, [3, 1]), (1, [2])]
    assert engine.requests == []


def test_a_step_ends_with_the_first_latent_after_its_time_or_when_a_preview_waits() -> None:
    events: list[RenderEvent] = []
    seconds = itertools.count()
    task = RowsTask(threading.Condition(), events.append, lambda error: False, lambda: float(next(seconds)))
    task.request(0, seeds(1, 2, 3))
    assert run(task, FakeRenderer(MODEL, Engine())) == 3
    patient = RowsTask(threading.Condition(), events.append, lambda error: False, lambda: 0.0)
    patient.request(1, seeds(1, 2, 3))
    assert run(patient, FakeRenderer(MODEL, Engine()), should_yield=True) == 3
    patient.request(2, seeds(1, 2, 3))
    assert run(patient, FakeRenderer(MODEL, Engine())) == 1
    assert made(events) == [(0, [1, 2, 3]), (1, [1, 2, 3]), (2, [1, 2, 3])]


def test_a_latent_that_cannot_be_computed_ends_its_fetch_alone() -> None:
    engine, error = Engine(), RequestError("No.")
    events: list[RenderEvent] = []
    task = RowsTask(threading.Condition(), events.append, lambda error: False)
    task.request(0, seeds(1, 2))
    task.request(1, [partial(request, 1, OTHER)])
    task.request(2, seeds(4))
    engine.failing = error
    task.step(FakeRenderer(MODEL, engine), lambda: False)
    engine.failing = None
    run(task, FakeRenderer(MODEL, engine))
    assert [item.number for item in events if isinstance(item, RowsFailed)] == [0, 1]
    assert made(events) == [(2, [4])]


def test_a_fetch_goes_on_where_it_was_after_another_device_has_taken_over() -> None:
    engine = Engine()
    events: list[RenderEvent] = []
    task = RowsTask(threading.Condition(), events.append, lambda error: True)
    task.request(0, seeds(1, 2))
    task.step(FakeRenderer(MODEL, engine), lambda: True)
    engine.gpu_failing = RequestError("The GPU is lost.")
    assert task.step(FakeRenderer(MODEL, engine, GPU), lambda: True)
    run(task, FakeRenderer(MODEL, engine))
    assert made(events) == [(0, [1, 2])]
    assert engine.calls == ["rows"] * 3


def test_fetches_that_are_cleared_are_not_answered() -> None:
    events: list[RenderEvent] = []
    task = RowsTask(threading.Condition(), events.append, lambda error: False)
    task.request(0, seeds(1))
    task.clear()
    assert task.seconds_until_ready() is None
    assert events == []
