from __future__ import annotations

import threading

from explorer_app.rendering.render_events import RenderEvent, ThumbnailMade
from explorer_app.rendering.tasks.preview_rest import PreviewRest
from explorer_app.rendering.tasks.thumbnail import MAX_WAITING, ThumbnailTask
from tests.helpers.fake_renderer import Engine, FakeRenderer
from tests.helpers.render_harness import MODEL, request


def made(event: list[RenderEvent]) -> list[object]:
    return [item.key for item in event if isinstance(item, ThumbnailMade)]


def test_the_thumbnail_requested_last_is_made_first_and_each_key_once() -> None:
    event: list[RenderEvent] = []
    task = ThumbnailTask(threading.Condition(), event.append, lambda error: False, PreviewRest(0.0))
    for key in ("a", "b", "c", "a"):
        task.request(key, lambda: request(1))
    renderer = FakeRenderer(MODEL, Engine())
    while task.seconds_until_ready() == 0.0:
        assert task.step(renderer, lambda: False)
    assert made(event) == ["a", "c", "b"]


def test_a_thumbnail_that_was_cancelled_is_made_later_unless_it_was_requested_again() -> None:
    event: list[RenderEvent] = []
    task = ThumbnailTask(threading.Condition(), event.append, lambda error: False, PreviewRest(0.0))
    task.request("a", lambda: request(1))
    renderer = FakeRenderer(MODEL, Engine())
    assert not task.step(renderer, lambda: True)
    assert len(task) == 1
    assert task.step(renderer, lambda: False)
    assert made(event) == ["a"]


def test_orders_that_scrolled_away_are_forgotten() -> None:
    task = ThumbnailTask(threading.Condition(), lambda event: None, lambda error: False, PreviewRest(0.0))
    for key in range(MAX_WAITING + 5):
        task.request(key, lambda: request(1))
    assert len(task) == MAX_WAITING


def test_orders_that_are_cleared_are_not_made() -> None:
    task = ThumbnailTask(threading.Condition(), lambda event: None, lambda error: False, PreviewRest(0.0))
    for key in range(3):
        task.request(key, lambda: request(1))
    task.clear()
    assert len(task) == 0
    assert task.seconds_until_ready() is None


def test_thumbnails_wait_until_previews_have_rested() -> None:
    rest = PreviewRest(3600.0)
    task = ThumbnailTask(threading.Condition(), lambda event: None, lambda error: False, rest)
    task.request("a", lambda: request(1))
    assert task.seconds_until_ready() == 0.0
    rest.note_request()
    assert 3500.0 < (task.seconds_until_ready() or 0.0) <= 3600.0
