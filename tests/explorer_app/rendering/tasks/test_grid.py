"""The pictures of a grid: in batches, drafts first, the newest order wins."""

from __future__ import annotations

import threading
from dataclasses import replace

from explorer_app.rendering.render_events import GridFailed, GridRendered, RenderEvent
from explorer_app.rendering.tasks.grid import GridOrder, GridTask
from explorer_app.rendering.tasks.preview_rest import PreviewRest
from explorer_app.rendering.tasks.task import Priority
from gpu_backend import Frame, RequestError
from tests.helpers.fake_renderer import GPU, Engine, FakeRenderer
from tests.helpers.render_harness import MODEL, OTHER, request


def task_of(events: list[RenderEvent], rest: PreviewRest | None = None) -> GridTask:
    return GridTask(
        threading.Condition(), events.append, lambda error: False, lambda draft: draft, rest or PreviewRest(0.0)
    )


def order(number: int, cells: int, first_seed: int = 0, *, has_finals: bool = False) -> GridOrder:
    finals = tuple((cell, request(first_seed + cell)) for cell in range(cells))
    drafts = tuple((cell, replace(item, resolution=64)) for cell, item in finals)
    return GridOrder(number, drafts, finals if has_finals else (), 32)


def made(events: list[RenderEvent]) -> list[tuple[int, object]]:
    return [(item.number, cell) for item in events if isinstance(item, GridRendered) for cell, _ in item.cells]


def run(task: GridTask, renderer: FakeRenderer) -> None:
    while task.seconds_until_ready() == 0.0:
        task.step(renderer, lambda: False)


def test_a_gpu_renders_eight_cells_a_step_and_the_cpu_one() -> None:
    for device, batches in ((GPU, [8, 8, 4]), (None, [1] * 20)):
        engine = Engine()
        events: list[RenderEvent] = []
        task = task_of(events)
        task.request(order(1, 20))
        run(task, FakeRenderer(MODEL, engine, device))
        assert engine.batches == batches
        assert made(events) == [(1, cell) for cell in range(20)]


def test_drafts_of_all_cells_come_before_the_first_final_picture() -> None:
    engine = Engine()
    events: list[RenderEvent] = []
    task = task_of(events)
    task.request(order(1, 3, has_finals=True))
    run(task, FakeRenderer(MODEL, engine))
    assert [item.resolution for item in engine.requests] == [64, 64, 64, None, None, None]


def test_frames_are_as_small_as_the_cells_and_own_their_pixels() -> None:
    events: list[RenderEvent] = []
    task = task_of(events)
    task.request(order(1, 1, has_finals=True))
    run(task, FakeRenderer(MODEL, Engine()))
    frames: list[Frame] = [frame for item in events if isinstance(item, GridRendered) for _, frame in item.cells]
    assert [(frame.width, frame.pixels.flags.owndata) for frame in frames] == [(32, True), (32, True)]


def test_the_newest_order_replaces_the_one_before_and_cells_that_waited_longest_come_first() -> None:
    events: list[RenderEvent] = []
    task, renderer = task_of(events), FakeRenderer(MODEL, Engine())
    for number in range(1, 5):
        task.request(order(number, 4, 10 * number))
        task.step(renderer, lambda: False)
    assert made(events) == [(1, 0), (2, 1), (3, 2), (4, 3)]


def test_an_order_that_comes_during_a_step_loses_no_cell() -> None:
    events: list[RenderEvent] = []
    task, engine = task_of(events), Engine()
    renderer = FakeRenderer(MODEL, engine)
    task.request(order(1, 3))
    render = renderer.render_batch

    def interrupted(*arguments: object, **options: object) -> tuple[Frame, ...]:
        renderer.render_batch = render  # type: ignore[method-assign]
        task.request(order(2, 3, 10))
        return render(*arguments, **options)  # type: ignore[arg-type]

    renderer.render_batch = interrupted  # type: ignore[method-assign]
    run(task, renderer)
    assert sorted(made(events)) == [(1, 0), (2, 0), (2, 1), (2, 2)]


def test_final_pictures_wait_until_previews_rest_and_yield_to_them() -> None:
    events: list[RenderEvent] = []
    rest = PreviewRest(3600.0)
    task = task_of(events, rest)
    renderer = FakeRenderer(MODEL, Engine())
    task.request(order(1, 1, has_finals=True))
    rest.note_request()
    assert task.seconds_until_ready() == 0.0
    task.step(renderer, lambda: False)
    assert Priority.PREVIEW not in task.yields_to
    assert 3500.0 < (task.seconds_until_ready() or 0.0) <= 3600.0
    assert not task.step(renderer, lambda: True)
    assert Priority.PREVIEW in task.yields_to
    assert task.step(renderer, lambda: False)
    assert task.seconds_until_ready() is None


def test_an_error_is_reported_once_and_ends_the_order() -> None:
    events: list[RenderEvent] = []
    task = task_of(events)
    task.request(order(7, 5))
    run(task, FakeRenderer(MODEL, Engine(failing=RequestError("No."))))
    assert [type(item) for item in events] == [GridFailed]
    assert task.seconds_until_ready() is None


def test_a_device_that_is_replaced_leaves_the_cells_waiting() -> None:
    events: list[RenderEvent] = []
    task = GridTask(threading.Condition(), events.append, lambda error: True, lambda draft: draft, PreviewRest(0.0))
    task.request(order(1, 2))
    task.step(FakeRenderer(MODEL, Engine(failing=RequestError("Lost."))), lambda: False)
    run(task, FakeRenderer(MODEL, Engine()))
    assert made(events) == [(1, 0), (1, 1)]


def test_cells_of_a_model_that_has_gone_are_dropped() -> None:
    events: list[RenderEvent] = []
    task = task_of(events)
    task.request(order(1, 3))
    run(task, FakeRenderer(OTHER, Engine()))
    assert events == []


def test_nothing_is_left_to_do_once_the_grid_is_forgotten() -> None:
    task = task_of([])
    task.request(order(1, 3, has_finals=True))
    task.forget()
    assert task.seconds_until_ready() is None
    assert task.step(FakeRenderer(MODEL, Engine()), lambda: False)
