from __future__ import annotations

import threading
from collections.abc import Generator
from functools import partial
from typing import Any

import pytest
from PySide6.QtCore import Qt

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.lifecycle import Lifecycle
from explorer_app.rendering.render_events import (
    DragAdvanced,
    ExportAdvanced,
    ExportEnded,
    ModelOpened,
    ModelRefused,
    ProjectionAdvanced,
    RenderFailed,
    RowsMade,
    ThumbnailFailed,
    ThumbnailMade,
)
from explorer_app.rendering.render_thread import RenderThread
from gpu_backend import DeviceError, Model, RenderRequest
from tests.helpers.fake_drag import FakeDrag
from tests.helpers.fake_projection import FakeProjection
from tests.helpers.fake_renderer import Engine, FakeRenderer
from tests.helpers.render_harness import MODEL, OTHER, Harness, Job, request, seed_of


def test_the_renderer_is_made_used_and_closed_on_one_thread(harness: Harness, engine: Engine) -> None:
    harness.submit(1)
    harness.until(lambda: harness.frames)
    harness.thread.close()
    assert engine.threads == {"rendering"}
    assert engine.made[0].closed == 1


def test_of_many_requests_only_the_one_under_way_and_the_newest_are_rendered(harness: Harness, engine: Engine) -> None:
    engine.gate.shut()
    harness.submit(0)
    engine.gate.wait_for_knock()
    for seed in range(1, 1000):
        harness.submit(seed)
    engine.gate.open()
    harness.until(lambda: harness.frames and seed_of(harness.frames[-1].request) == 999)
    assert [seed_of(item) for item in engine.requests] == [0, 999]


def test_frames_not_taken_are_replaced_and_announced_once(harness: Harness, engine: Engine) -> None:
    # This thread does not look while the other one renders, as a window that is held up.
    for seed in range(5):
        harness.submit(seed)
        while not (engine.requests and seed_of(engine.requests[-1]) == seed):
            threading.Event().wait(0.001)
    harness.until(lambda: harness.frames and seed_of(harness.frames[-1].request) == 4)
    assert harness.announced <= 2
    assert harness.thread.frames_dropped >= 3


def test_a_late_request_for_another_model_is_dropped(harness: Harness, engine: Engine) -> None:
    harness.submit(1, OTHER)
    harness.submit(1)
    harness.until(lambda: harness.frames)
    harness.open(OTHER)
    harness.submit(2, MODEL)
    harness.submit(3, OTHER)
    harness.until(lambda: len(harness.frames) == 2)
    assert [item.model_id for item in engine.requests] == ["sha of cats.pkl", "sha of dogs.pkl"]


def test_previews_are_served_between_the_frames_of_an_export(harness: Harness, engine: Engine) -> None:
    job = Job(*range(100, 106))
    engine.gate.shut()
    harness.thread.export(job)
    engine.gate.wait_for_knock()
    harness.submit(1)
    engine.gate.open()
    harness.until(lambda: job.is_over)
    order = [seed_of(item) for item in engine.requests]
    assert order == [100, 1, *range(101, 106)]


def test_an_export_goes_on_while_previews_never_stop(harness: Harness, engine: Engine) -> None:
    job = Job(*range(100, 105))
    harness.thread.frame_ready.connect(lambda: harness.submit(len(harness.frames)), Qt.ConnectionType.QueuedConnection)
    harness.submit(0)
    harness.thread.export(job)
    harness.until(lambda: harness.of(ExportEnded))
    assert job.got == [100, 101, 102, 103, 104]
    assert job.stopped == []


def test_every_frame_of_every_export_arrives_in_order(harness: Harness) -> None:
    first, second = Job(1, 2, 3), Job(4, 5)
    harness.thread.export(first)
    harness.thread.export(second)
    harness.until(lambda: len(harness.of(ExportEnded)) == 2)
    assert (first.got, second.got) == ([1, 2, 3], [4, 5])
    assert [event.job for event in harness.of(ExportEnded)] == [first, second]
    assert len(harness.of(ExportAdvanced)) == 5


def test_an_error_of_a_job_stops_that_job_alone(harness: Harness) -> None:
    error = DeviceError("The disk is full.")
    bad, good = Job(1, 2, failing=error), Job(3)
    harness.thread.export(bad)
    harness.thread.export(good)
    harness.until(lambda: len(harness.of(ExportEnded)) == 2)
    assert [event.error for event in harness.of(ExportEnded)] == [error, None]
    assert bad.stopped == [False]
    assert good.got == [3]


def test_a_failing_render_is_reported_and_the_thread_goes_on(harness: Harness, engine: Engine) -> None:
    engine.failing = DeviceError("Out of memory.")
    harness.submit(1)
    harness.until(lambda: harness.of(RenderFailed))
    engine.failing = None
    harness.submit(2)
    harness.until(lambda: harness.frames)
    assert harness.of(RenderFailed)[0].error.sentence == "Out of memory."


def test_a_model_that_is_refused_leaves_the_former_one_in_place(harness: Harness, engine: Engine) -> None:
    engine.refusing = DeviceError("Too large.")
    harness.thread.open(OTHER)
    harness.until(lambda: harness.of(ModelRefused))
    harness.submit(7)
    harness.until(lambda: harness.frames)
    assert harness.of(ModelRefused)[0].path == "dogs.pkl"
    assert not engine.made[0].closed


def test_the_former_renderer_is_closed_when_the_next_one_takes_over(harness: Harness, engine: Engine) -> None:
    harness.open(OTHER)
    harness.until(lambda: [renderer.closed for renderer in engine.made] == [1, 0])


def test_a_model_is_reported_open_before_the_former_renderer_is_closed(
    harness: Harness, engine: Engine, monkeypatch: Any
) -> None:
    told = threading.Event()
    close = engine.made[0].close
    monkeypatch.setattr(engine.made[0], "close", lambda: close() if told.wait(30) else None)
    harness.open(OTHER)
    assert not engine.made[0].closed
    told.set()
    harness.until(lambda: engine.made[0].closed)


def test_thumbnails_wait_for_previews_and_not_for_the_end_of_an_export(harness: Harness, engine: Engine) -> None:
    engine.gate.shut()
    harness.submit(1)
    engine.gate.wait_for_knock()
    for seed in (50, 51):
        harness.thread.request_thumbnail(seed, partial(request, seed))
    job = Job(100, 101)
    harness.thread.export(job)
    harness.submit(2)
    engine.gate.open()
    harness.until(lambda: len(harness.of(ThumbnailMade)) == 2 and job.has_ended)
    rendered = [seed_of(item) for item in engine.requests]
    assert rendered.index(2) < rendered.index(51) < rendered.index(50) < rendered.index(101)
    assert harness.of(ThumbnailMade)[0].frame.width == 64


def test_rows_of_latents_and_small_pictures_come_while_a_photo_is_searched(harness: Harness, engine: Engine) -> None:
    harness.thread.begin_projection(0, lambda: FakeProjection(steps=10**9))
    harness.until(lambda: harness.of(ProjectionAdvanced))
    harness.thread.request_rows(7, [partial(request, 3), partial(request, 4)])
    harness.until(lambda: harness.of(RowsMade))
    assert [len(event.rows) for event in harness.of(RowsMade)] == [2]
    assert engine.requests == []
    harness.thread.request_thumbnail("key", lambda: request(50))
    harness.until(lambda: harness.of(ThumbnailMade))
    harness.thread.cancel_projection()


def test_thumbnails_stay_away_while_pictures_move(engine: Engine, qtbot: Any, qapp: Any) -> None:
    thread = RenderThread(engine, thumbnail_rest_s=3600.0)
    harness = Harness(thread, qtbot)
    thread.start()
    harness.open()
    harness.submit(1)
    thread.request_thumbnail("key", lambda: request(50))
    harness.until(lambda: harness.frames)
    harness.submit(2)
    harness.until(lambda: len(harness.frames) == 2)
    thread.close()
    assert not harness.of(ThumbnailMade)


def test_thumbnails_do_not_wait_after_the_pictures_of_a_search(engine: Engine, qtbot: Any, qapp: Any) -> None:
    thread = RenderThread(engine, thumbnail_rest_s=3600.0)
    harness = Harness(thread, qtbot)
    thread.start()
    harness.open()
    thread.submit(request(1), None, at_rest=True, by_hand=False)
    thread.request_thumbnail("key", lambda: request(50))
    harness.until(lambda: harness.frames and harness.of(ThumbnailMade))
    thread.close()
    assert [seed_of(item) for item in engine.requests] == [1, 50], "the picture comes first"


def test_a_thumbnail_that_cannot_be_made_is_reported_once(harness: Harness, engine: Engine) -> None:
    engine.failing = DeviceError("No.")
    harness.thread.request_thumbnail("key", lambda: request(50))
    harness.until(lambda: harness.of(ThumbnailFailed))
    assert harness.of(ThumbnailFailed)[0].key == "key"


def test_closing_ends_an_export_as_cancelled_and_leaves_no_thread(
    threads_before: set[threading.Thread], harness: Harness, engine: Engine
) -> None:
    engine.gate.shut()
    first, second = Job(1, 2), Job(3)
    harness.thread.export(first)
    harness.thread.export(second)
    engine.gate.wait_for_knock()
    engine.gate.open()
    harness.thread.close()
    harness.thread.close()
    assert harness.thread.state is Lifecycle.CLOSED
    assert first.is_over
    assert second.is_over
    assert set(threading.enumerate()) <= threads_before
    harness.submit(5)
    assert harness.thread.take_frame() is None


def test_closing_ends_a_measurement_of_counters_while_there_is_a_device(
    harness: Harness, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun = threading.Event()
    closed: list[int] = []

    def endless(renderer: FakeRenderer, asked: RenderRequest) -> Generator[None, None, None]:
        try:
            while True:
                has_begun.set()
                yield
        finally:
            closed.append(renderer.closed)

    monkeypatch.setattr(FakeRenderer, "counter_steps", endless)
    harness.thread.measure_counters(request(1))
    assert has_begun.wait(60)
    harness.thread.close()
    assert closed == [0]


def test_closing_again_after_ctrl_c_ended_the_first_wait_waits_for_the_thread(
    threads_before: set[threading.Thread], harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            harness.thread.close()
    harness.thread.close()
    assert harness.thread.state is Lifecycle.CLOSED
    assert set(threading.enumerate()) <= threads_before


def test_a_thread_that_never_started_closes_too(engine: Engine, qapp: Any) -> None:
    thread = RenderThread(engine)
    assert thread.state is Lifecycle.NEW
    thread.close()
    assert thread.state is Lifecycle.CLOSED
    thread.start()
    assert thread.state is Lifecycle.CLOSED


def test_opening_that_was_cancelled_throws_the_new_renderer_away(
    harness: Harness, engine: Engine, monkeypatch: Any
) -> None:
    started, go_on = threading.Event(), threading.Event()
    make = engine.make_renderer

    def slow(model: Model, choice: DeviceChoice) -> Any:
        started.set()
        assert go_on.wait(30)
        return make(model, choice)

    monkeypatch.setattr(engine, "make_renderer", slow)
    harness.thread.open(OTHER)
    assert started.wait(30)
    harness.thread.cancel_opening()
    go_on.set()
    harness.submit(1)
    harness.until(lambda: harness.frames)
    assert [renderer.closed for renderer in engine.made] == [0, 1]
    assert len(harness.of(ModelOpened)) == 1


def test_a_drag_is_stepped_beside_previews_until_it_settles(harness: Harness) -> None:
    drag = FakeDrag([0.0], steps=4, step_s=1.0)
    harness.thread.begin_drag(7, lambda: drag)
    harness.submit(1)
    harness.until(lambda: any(event.report.is_settled for event in harness.of(DragAdvanced)))
    assert drag.steps == 4
    assert {event.number for event in harness.of(DragAdvanced)} == {7}
    harness.thread.aim_drag(0, (3.0, 4.0))
    harness.until(lambda: drag.steps == 7)
    assert drag.targets == [(0, (3.0, 4.0))]
    harness.until(lambda: harness.frames)
    harness.thread.end_drag()
