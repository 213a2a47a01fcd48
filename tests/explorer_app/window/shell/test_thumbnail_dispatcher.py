"""Small pictures on their way to the widgets that want them."""

from __future__ import annotations

from collections.abc import Hashable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.rendering.thumbnails import ThumbnailStore
from explorer_app.session.session import ModelReference, Session
from explorer_app.window.shell.main_window import MainWindow
from explorer_app.window.shell.thumbnail_dispatcher import MAX_PENDING, ThumbnailDispatcher
from gpu_backend import RenderRequest
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.fake_engine import fake_frame
from tests.helpers.windows import Make


class Widget:
    def __init__(self) -> None:
        self.shown: list[object] = []

    def show_thumbnail(self, key: object, image: QImage) -> None:
        self.shown.append(key)


class Thumbnails(QObject):
    """Stands for `ThumbnailService`; remembers what is requested."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.store = ThumbnailStore()
        self.requested: list[Hashable] = []

    def request(self, key: Hashable, what: object, *, on_disk: bool = False) -> None:
        self.requested.append(key)


def test_pending_thumbnails_are_requested_of_the_next_model_and_finished_ones_are_not(qapp: QApplication) -> None:
    thumbnails, widget, parent = Thumbnails(), Widget(), QObject()
    dispatcher = ThumbnailDispatcher(thumbnails, parent)  # type: ignore[arg-type]
    dispatcher.request("list", widget, 1, Session())
    dispatcher.request("list", widget, 2, Session())
    thumbnails.store.put(("list", 1), fake_frame(RenderRequest("x")))
    thumbnails.changed.emit()
    assert widget.shown == [1]
    thumbnails.requested.clear()
    dispatcher.retry("x")
    assert thumbnails.requested == [("list", 2)]


def test_a_picture_that_another_model_made_is_requested_again_once_its_own_is_open(qapp: QApplication) -> None:
    thumbnails, widget, parent = Thumbnails(), Widget(), QObject()
    dispatcher = ThumbnailDispatcher(thumbnails, parent)  # type: ignore[arg-type]
    dispatcher.request("list", widget, 1, Session(model=ModelReference("cats.pkl", "cats", "cats")))

    def make_with(model_id: str) -> None:
        thumbnails.store.put(("list", 1), fake_frame(RenderRequest(model_id)))
        thumbnails.changed.emit()

    def requested_by(model_id: str) -> list[Hashable]:
        thumbnails.store.clear()
        thumbnails.requested.clear()
        dispatcher.retry(model_id)
        return thumbnails.requested

    make_with("dogs")
    assert requested_by("birds") == []
    assert requested_by("cats") == [("list", 1)]
    make_with("cats")
    assert widget.shown == [1, 1]
    assert requested_by("cats") == []


def test_the_oldest_of_too_many_pending_thumbnails_are_dropped(qapp: QApplication) -> None:
    thumbnails, widget, parent = Thumbnails(), Widget(), QObject()
    dispatcher = ThumbnailDispatcher(thumbnails, parent)  # type: ignore[arg-type]
    for key in (0, 1, 0, *range(2, MAX_PENDING + 1)):
        dispatcher.request("plane", widget, key, Session())
    thumbnails.requested.clear()
    dispatcher.retry("x")
    assert thumbnails.requested == [("plane", key) for key in (0, *range(2, MAX_PENDING + 1))]


def test_a_session_that_comes_back_gets_its_thumbnail_when_its_model_is_open(make: Make, qtbot: QtBot) -> None:
    controller = FakeController(with_model=False, serves_thumbnails=True)
    controller.editing.history = controller.editing.history.added(controller.editing.session, "Start")
    window: MainWindow = make(controller)
    pictures = window.history.steps.entries.pictures
    timer = window.history.steps._request_timer
    qtbot.waitUntil(lambda: not timer.isActive())
    controller.engine.model.facts = facts()
    controller.engine.model_changed.emit()  # the history stays the same, and is not told again
    qtbot.waitUntil(lambda: len(pictures) == 1)
