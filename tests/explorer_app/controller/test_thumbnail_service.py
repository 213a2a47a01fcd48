"""Small pictures that are kept on disk for later runs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from explorer_app.controller import ThumbnailService
from explorer_app.messages import MessageLog
from explorer_app.rendering.tasks.thumbnail import MAX_WAITING
from explorer_app.rendering.thumbnail_file import ThumbnailFile, session_digest
from explorer_app.session.edits import GoToSeed
from explorer_app.session.session import ModelReference, Session
from gpu_backend import Frame, RenderRequest
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_controller import facts
from tests.helpers.fake_engine import fake_frame


class Idle:
    """Stands for the render thread, which makes nothing, and for the model."""

    def __init__(self) -> None:
        self.facts = facts()
        self.requested: list[Hashable] = []
        self.shown: tuple[Any, Frame] | None = None

    def request_thumbnail(self, key: Hashable, request: object) -> None:
        self.requested.append(key)


@pytest.fixture
def idle() -> Idle:
    return Idle()


@pytest.fixture
def thumbnails(idle: Idle, qapp: QApplication) -> ThumbnailService:
    worker: Any = None
    renders: Any = idle
    return ThumbnailService(renders, renders, MessageLog(), lambda: idle.shown, worker)


def test_requests_that_the_render_thread_has_dropped_wait_no_longer(idle: Idle, thumbnails: ThumbnailService) -> None:
    sessions = [GoToSeed(seed).apply(Session()) for seed in range(MAX_WAITING + 2)]
    for seed in (0, 1, 0, *range(2, MAX_WAITING + 2)):
        thumbnails.request(seed, sessions[seed])
    assert len(idle.requested) == MAX_WAITING + 3
    for seed in (0, 1, 2, MAX_WAITING + 1):
        idle.shown = sessions[seed], fake_frame(RenderRequest("x"))
        thumbnails.take_shown()
    assert [seed in thumbnails.store for seed in (0, 1, 2, MAX_WAITING + 1)] == [False, False, True, True]


def test_a_request_compares_no_other_request_with_the_picture_on_the_screen(
    idle: Idle, thumbnails: ThumbnailService
) -> None:
    class Shown:
        model, compared = ModelReference(), 0

        def __eq__(self, other: object) -> bool:
            Shown.compared += 1
            return False

        __hash__ = None  # type: ignore[assignment]

    idle.shown = Shown(), fake_frame(RenderRequest("x"))
    for seed in range(40):
        thumbnails.request(seed, GoToSeed(seed).apply(Session()))
    assert Shown.compared == 40


def test_a_picture_that_is_kept_on_disk_shows_in_a_later_run_without_a_model(open_harness: Harness) -> None:
    harness = open_harness
    thumbnails = harness.controller.thumbnails
    there = GoToSeed(7).apply(harness.controller.editing.session)
    thumbnails.request("there", there, on_disk=True)
    thumbnails.request("not kept", GoToSeed(8).apply(there))
    harness.until(lambda: len(thumbnails.store) == 2)
    again = harness.reopened()  # not started: no model is open
    later = again.controller.thumbnails
    later.request("kept", there, on_disk=True)
    later.request("other", GoToSeed(8).apply(there), on_disk=True)
    again.until(lambda: len(later.store) == 1)
    found, made = later.store.get("kept"), thumbnails.store.get("there")
    assert found is not None
    assert made is not None
    assert (found.pixels == made.pixels).all()
    again.start()
    later.request("other", GoToSeed(8).apply(there), on_disk=True)
    again.until(lambda: "other" in later.store)


def test_a_picture_made_with_another_model_is_not_kept_for_its_own(open_harness: Harness) -> None:
    harness = open_harness
    there = GoToSeed(7).apply(harness.controller.editing.session)
    harness.open("dogs")
    harness.controller.thumbnails.request("there", there, on_disk=True)
    harness.until(lambda: len(harness.controller.thumbnails.store) == 1)
    harness.reopened()
    file = ThumbnailFile(harness.state / "thumbnails.sqlite")
    assert file.get(session_digest(there)) is None
    file.close()
