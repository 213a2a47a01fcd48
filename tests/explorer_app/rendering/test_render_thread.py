from __future__ import annotations

import threading
from typing import Any

from PySide6.QtCore import Qt

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.lifecycle import Lifecycle
from explorer_app.rendering.news import (
    ExportAdvanced,
    ExportEnded,
    ModelOpened,
    ModelRefused,
    RenderFailed,
    ThumbnailFailed,
    ThumbnailMade,
)
from explorer_app.rendering.render_thread import RenderThread
from gpu_backend import DeviceError, Model
from tests.helpers.fake_renderer import Engine
from tests.helpers.render_desk import MODEL, OTHER, Desk, Job, request, seed_of


def test_the_renderer_is_made_used_and_closed_on_one_thread(desk: Desk, engine: Engine):
    desk.ask(1)
    desk.until(lambda: desk.frames)
    desk.thread.close()
    assert engine.threads == {"rendering"}
    assert engine.made[0].closed == 1


def test_of_many_requests_only_the_one_under_way_and_the_newest_are_rendered(desk: Desk, engine: Engine):
    engine.gate.shut()
    desk.ask(0)
    engine.gate.wait_for_knock()
    for seed in range(1, 1000):
        desk.ask(seed)
    engine.gate.open()
    desk.until(lambda: desk.frames and seed_of(desk.frames[-1].request) == 999)
    assert [seed_of(item) for item in engine.requests] == [0, 999]


def test_frames_that_nobody_took_are_replaced_and_announced_once(desk: Desk, engine: Engine):
    # This thread does not look while the other one renders, as a window that is held up.
    for seed in range(5):
        desk.ask(seed)
        while not (engine.requests and seed_of(engine.requests[-1]) == seed):
            threading.Event().wait(0.001)
    desk.until(lambda: desk.frames and seed_of(desk.frames[-1].request) == 4)
    assert desk.announced <= 2
    assert desk.thread.frames_dropped >= 3


def test_a_late_request_for_another_model_is_dropped(desk: Desk, engine: Engine):
    desk.ask(1, OTHER)
    desk.ask(1)
    desk.until(lambda: desk.frames)
    desk.open(OTHER)
    desk.ask(2, MODEL)
    desk.ask(3, OTHER)
    desk.until(lambda: len(desk.frames) == 2)
    assert [item.model_id for item in engine.requests] == ["sha of cats.pkl", "sha of dogs.pkl"]


def test_previews_are_served_between_the_frames_of_an_export(desk: Desk, engine: Engine):
    job = Job(*range(100, 106))
    engine.gate.shut()
    desk.thread.export(job)
    engine.gate.wait_for_knock()
    desk.ask(1)
    engine.gate.open()
    desk.until(lambda: job.is_over)
    order = [seed_of(item) for item in engine.requests]
    assert order == [100, 1, *range(101, 106)]


def test_an_export_goes_on_while_previews_never_stop(desk: Desk, engine: Engine):
    job = Job(*range(100, 105))
    desk.thread.frame_ready.connect(lambda: desk.ask(len(desk.frames)), Qt.ConnectionType.QueuedConnection)
    desk.ask(0)
    desk.thread.export(job)
    desk.until(lambda: desk.of(ExportEnded))
    assert job.got == [100, 101, 102, 103, 104]
    assert job.stopped == []


def test_every_frame_of_every_export_arrives_in_order(desk: Desk):
    first, second = Job(1, 2, 3), Job(4, 5)
    desk.thread.export(first)
    desk.thread.export(second)
    desk.until(lambda: len(desk.of(ExportEnded)) == 2)
    assert (first.got, second.got) == ([1, 2, 3], [4, 5])
    assert [news.job for news in desk.of(ExportEnded)] == [first, second]
    assert len(desk.of(ExportAdvanced)) == 5


def test_what_a_job_raises_stops_that_job_alone(desk: Desk):
    error = DeviceError("The disk is full.")
    bad, good = Job(1, 2, failing=error), Job(3)
    desk.thread.export(bad)
    desk.thread.export(good)
    desk.until(lambda: len(desk.of(ExportEnded)) == 2)
    assert [news.error for news in desk.of(ExportEnded)] == [error, None]
    assert bad.stopped == [False]
    assert good.got == [3]


def test_a_failing_render_is_told_and_the_thread_goes_on(desk: Desk, engine: Engine):
    engine.failing = DeviceError("Out of memory.")
    desk.ask(1)
    desk.until(lambda: desk.of(RenderFailed))
    engine.failing = None
    desk.ask(2)
    desk.until(lambda: desk.frames)
    assert desk.of(RenderFailed)[0].error.sentence == "Out of memory."


def test_a_model_that_is_refused_leaves_the_former_one_in_place(desk: Desk, engine: Engine):
    engine.refusing = DeviceError("Too large.")
    desk.thread.open(OTHER)
    desk.until(lambda: desk.of(ModelRefused))
    desk.ask(7)
    desk.until(lambda: desk.frames)
    assert desk.of(ModelRefused)[0].path == "dogs.pkl"
    assert not engine.made[0].closed


def test_the_former_renderer_is_closed_when_the_next_one_takes_over(desk: Desk, engine: Engine):
    desk.open(OTHER)
    desk.until(lambda: [renderer.closed for renderer in engine.made] == [1, 0])


def test_a_model_is_told_open_before_the_former_renderer_is_closed(desk: Desk, engine: Engine, monkeypatch: Any):
    told = threading.Event()
    close = engine.made[0].close
    monkeypatch.setattr(engine.made[0], "close", lambda: close() if told.wait(20) else None)
    desk.open(OTHER)
    assert not engine.made[0].closed
    told.set()
    desk.until(lambda: engine.made[0].closed)


def test_thumbnails_wait_until_nothing_else_is_to_do(desk: Desk, engine: Engine):
    engine.gate.shut()
    desk.ask(1)
    engine.gate.wait_for_knock()
    for seed in (50, 51):
        desk.thread.ask_thumbnail(seed, lambda seed=seed: request(seed))
    desk.thread.export(Job(100, 101))
    desk.ask(2)
    engine.gate.open()
    desk.until(lambda: len(desk.of(ThumbnailMade)) == 2)
    assert [seed_of(item) for item in engine.requests][-2:] == [51, 50]
    assert desk.of(ThumbnailMade)[0].frame.width == 64


def test_thumbnails_stay_away_while_pictures_move(engine: Engine, qtbot: Any, qapp: Any):
    thread = RenderThread(engine, thumbnail_rest_s=3600.0)
    desk = Desk(thread, qtbot)
    thread.start()
    desk.open()
    desk.ask(1)
    thread.ask_thumbnail("key", lambda: request(50))
    desk.until(lambda: desk.frames)
    desk.ask(2)
    desk.until(lambda: len(desk.frames) == 2)
    thread.close()
    assert not desk.of(ThumbnailMade)


def test_a_thumbnail_that_cannot_be_made_is_told_once(desk: Desk, engine: Engine):
    engine.failing = DeviceError("No.")
    desk.thread.ask_thumbnail("key", lambda: request(50))
    desk.until(lambda: desk.of(ThumbnailFailed))
    assert desk.of(ThumbnailFailed)[0].key == "key"


def test_closing_ends_an_export_as_cancelled_and_leaves_no_thread(desk: Desk, engine: Engine):
    engine.gate.shut()
    first, second = Job(1, 2), Job(3)
    desk.thread.export(first)
    desk.thread.export(second)
    engine.gate.wait_for_knock()
    engine.gate.open()
    desk.thread.close()
    desk.thread.close()
    assert desk.thread.state is Lifecycle.CLOSED
    assert first.is_over
    assert second.is_over
    assert not [thread for thread in threading.enumerate() if thread.name == "rendering"]
    desk.ask(5)
    assert desk.thread.take_frame() is None


def test_a_thread_that_never_started_closes_too(engine: Engine, qapp: Any):
    thread = RenderThread(engine)
    assert thread.state is Lifecycle.NEW
    thread.close()
    assert thread.state is Lifecycle.CLOSED
    thread.start()
    assert thread.state is Lifecycle.CLOSED


def test_opening_that_was_cancelled_throws_the_new_renderer_away(desk: Desk, engine: Engine, monkeypatch: Any):
    started, go_on = threading.Event(), threading.Event()
    make = engine.make_renderer

    def slow(model: Model, choice: DeviceChoice) -> Any:
        started.set()
        assert go_on.wait(10)
        return make(model, choice)

    monkeypatch.setattr(engine, "make_renderer", slow)
    desk.thread.open(OTHER)
    assert started.wait(10)
    desk.thread.cancel_opening()
    go_on.set()
    desk.ask(1)
    desk.until(lambda: desk.frames)
    assert [renderer.closed for renderer in engine.made] == [0, 1]
    assert len(desk.of(ModelOpened)) == 1
