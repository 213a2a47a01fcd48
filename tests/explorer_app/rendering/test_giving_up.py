"""What is given up while it is being rendered, and what is not."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from explorer_app.rendering.lifecycle import Lifecycle
from explorer_app.rendering.render_events import (
    ExportEnded,
    ModelRefused,
    RenderFailed,
    ThumbnailFailed,
    ThumbnailMade,
)
from gpu_backend import DeviceError, RenderRequest
from tests.helpers.fake_renderer import Engine
from tests.helpers.render_harness import OTHER, Harness, Job, request, seed_of


def test_a_cancelled_export_cancels_the_frame_under_way(harness: Harness, engine: Engine) -> None:
    engine.gate.shut()
    job = Job(1, 2, 3)
    harness.thread.export(job)
    engine.gate.wait_for_knock()
    harness.thread.cancel_export(job)
    engine.gate.open()
    harness.until(lambda: harness.of(ExportEnded))
    assert job.got == []
    assert job.stopped == [True]
    assert harness.of(ExportEnded)[0].is_cancelled
    assert harness.of(ExportEnded)[0].error is None


def under_way(harness: Harness, engine: Engine, seed: int, *, at_rest: bool) -> None:
    """Have a preview stand at the gate, which is shut behind it."""
    engine.gate.shut()
    harness.thread.submit(request(seed), 0.0, at_rest=at_rest)
    engine.gate.wait_for_knock()


def seeds(requests: list[RenderRequest]) -> list[int]:
    return [seed_of(item) for item in requests]


@pytest.mark.parametrize("at_rest", [True, False])
def test_a_picture_at_rest_is_cancelled_for_whatever_is_newer(harness: Harness, engine: Engine, at_rest: bool) -> None:
    under_way(harness, engine, 1, at_rest=True)
    harness.thread.submit(request(2), 0.0, at_rest=at_rest)
    engine.gate.open()
    harness.until(lambda: harness.frames)
    assert (seeds(engine.given_up), seeds(engine.requests)) == ([1], [2])
    assert seed_of(harness.frames[0].request) == 2
    assert not harness.of(RenderFailed)
    assert harness.thread.frames_dropped == 0


def test_a_picture_in_a_movement_is_finished_so_that_an_endless_drag_shows_something(
    harness: Harness, engine: Engine
) -> None:
    under_way(harness, engine, 1, at_rest=False)
    harness.submit(2)
    engine.gate.open()
    harness.until(lambda: seeds(engine.requests) == [1, 2])
    assert not engine.given_up


def test_a_picture_is_not_cancelled_for_itself(harness: Harness, engine: Engine) -> None:
    under_way(harness, engine, 1, at_rest=True)
    harness.thread.submit(request(1), 0.0, at_rest=True)
    engine.gate.open()
    harness.until(lambda: harness.frames)
    assert not engine.given_up


def test_of_pictures_at_rest_every_second_one_is_finished_so_that_a_held_key_shows_something(
    harness: Harness, engine: Engine
) -> None:
    def came(seed: int) -> bool:
        return seed in seeds(engine.given_up + engine.requests)

    under_way(harness, engine, 1, at_rest=True)
    for seed in (2, 3, 4):
        harness.thread.submit(request(seed), 0.0, at_rest=True)
        engine.gate.let_through()
        harness.until(partial(came, seed - 1))
        engine.gate.wait_for_knock()
    engine.gate.open()
    harness.until(lambda: harness.frames and seed_of(harness.frames[-1].request) == 4)
    assert (seeds(engine.given_up), seeds(engine.requests)) == ([1, 3], [2, 4])


def test_a_preview_comes_before_the_turn_of_an_export(harness: Harness, engine: Engine) -> None:
    under_way(harness, engine, 1, at_rest=True)
    harness.thread.export(Job(100))
    harness.submit(2)
    engine.gate.open()
    harness.until(lambda: harness.of(ExportEnded))
    assert seeds(engine.requests) == [2, 100]


def test_a_thumbnail_is_cancelled_for_a_preview_and_made_afterwards(harness: Harness, engine: Engine) -> None:
    engine.gate.shut()
    harness.thread.request_thumbnail("key", lambda: request(50))
    engine.gate.wait_for_knock()
    harness.submit(1)
    engine.gate.open()
    harness.until(lambda: harness.of(ThumbnailMade))
    assert (seeds(engine.given_up), seeds(engine.requests)) == ([50], [1, 50])
    assert not harness.of(ThumbnailFailed)


@pytest.mark.parametrize("at_rest", [True, False])
def test_a_preview_yields_to_a_model_and_is_rendered_after_all_if_that_is_refused(
    harness: Harness, engine: Engine, at_rest: bool
) -> None:
    under_way(harness, engine, 1, at_rest=at_rest)
    engine.refusing = DeviceError("Too large.")
    harness.thread.open(OTHER)
    engine.gate.open()
    harness.until(lambda: harness.frames)
    assert harness.of(ModelRefused)
    assert (seeds(engine.given_up), seeds(engine.requests)) == ([1], [1])


def test_an_export_frame_is_not_cancelled_for_a_preview(harness: Harness, engine: Engine) -> None:
    engine.gate.shut()
    harness.thread.export(Job(100))
    engine.gate.wait_for_knock()
    harness.submit(1)
    engine.gate.open()
    harness.until(lambda: harness.frames)
    assert seeds(engine.requests) == [100, 1]


def begin_to_close(harness: Harness, engine: Engine) -> None:
    """Close while something stands at the gate, which opens once the thread knows that it is to end."""

    def open_gate() -> None:
        while harness.thread.state is Lifecycle.RUNNING:
            threading.Event().wait(0.001)
        engine.gate.open()

    opener = threading.Thread(target=open_gate)
    opener.start()
    harness.thread.close()
    opener.join()


@pytest.mark.parametrize("at_rest", [True, False])
def test_closing_cancels_the_picture_under_way(harness: Harness, engine: Engine, at_rest: bool) -> None:
    under_way(harness, engine, 1, at_rest=at_rest)
    begin_to_close(harness, engine)
    assert (seeds(engine.given_up), seeds(engine.requests)) == ([1], [])
    harness.event += harness.thread.take_events()
    assert not harness.of(RenderFailed)


def test_closing_cancels_the_frame_of_a_sequence_but_no_picture_that_was_saved(
    harness: Harness, engine: Engine
) -> None:
    engine.gate.shut()
    sequence, saved = Job(100, 101), Job(7)
    harness.thread.export(sequence)
    engine.gate.wait_for_knock()
    harness.thread.export(saved, urgent=True)
    begin_to_close(harness, engine)
    assert (sequence.got, sequence.stopped) == ([], [False])
    assert (saved.got, saved.stopped) == ([7], [])


def test_closing_finishes_a_saved_picture_that_is_under_way(harness: Harness, engine: Engine) -> None:
    engine.gate.shut()
    saved = Job(7)
    harness.thread.export(saved, urgent=True)
    engine.gate.wait_for_knock()
    begin_to_close(harness, engine)
    assert (saved.got, saved.stopped) == ([7], [])
