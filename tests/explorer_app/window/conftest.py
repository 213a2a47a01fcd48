"""Every test of the window: themed, off screen, quiet, and leaving no window behind."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.messages import MessageLog
from explorer_app.settings import Settings
from explorer_app.window.gestures import plane_drag
from explorer_app.window.look import appearance, fonts
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import ModelFacts
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.fonts import FONTS, provide
from tests.helpers.shared_window import SharedWindow, Shelf, show
from tests.helpers.windows import Make

_UNAVOIDABLE = "This plugin does not support "
"""Said by the off-screen platform whenever a dialog has a fixed size or a popup opens."""


@pytest.fixture(scope="module", params=FONTS)
def each_font(request: pytest.FixtureRequest, qapp: QApplication) -> str:
    """The test runs once with each font: the shipped one, a narrow one, DejaVu Sans and a wide one.

    The tests of a module run with one font after the other, so that they share its window.
    """
    return provide(request.param)


@pytest.fixture(autouse=True)
def themed(request: pytest.FixtureRequest, qapp: QApplication) -> None:
    """Dark, in the shipped font or in the one of `each_font`."""
    if "each_font" in request.fixturenames:
        fonts.use_family(request.getfixturevalue("each_font"))
    else:
        fonts.use("inter")
    appearance.apply(qapp, "dark")


_SHELF = Shelf()
_FOLDER = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In each folder begin with the tests that need no shared window: theme and fonts of a hidden one are costly."""
    places = [place for place, item in enumerate(items) if item.path.is_relative_to(_FOLDER)]
    ours = sorted((items[place] for place in places), key=lambda item: (str(item.path.parent), _uses_window(item)))
    for place, item in zip(places, ours, strict=True):
        items[place] = item


def _uses_window(item: pytest.Item) -> bool:
    return "window" in getattr(item, "fixturenames", ())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Close the shared windows after the last test of a folder: the next ones may have no use for them."""
    yield
    if nextitem is None or nextitem.path.parent != item.path.parent:
        _SHELF.close()


@pytest.fixture
def first_model() -> ModelFacts | None:
    """The model that the shared window opens with."""
    return facts()


@pytest.fixture(autouse=True)
def quiet(qapp: QApplication, qtlog: Any, themed: None) -> Iterator[None]:
    """No Qt message, and no window that outlives its test but for the shared one."""
    before = {id(widget) for widget in qapp.topLevelWidgets() if widget.isVisible()}
    yield
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    known = before | _SHELF.ids
    left = [widget for widget in qapp.topLevelWidgets() if widget.isVisible() and id(widget) not in known]
    said = [record.message for record in qtlog.records if not record.message.startswith(_UNAVOIDABLE)]
    for widget in left:
        widget.close()
    assert not left, f"left open: {left}"
    assert not said, f"Qt said: {said}"


@pytest.fixture(autouse=True)
def lent(
    request: pytest.FixtureRequest, first_model: ModelFacts | None, quiet: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SharedWindow | None]:
    """The shared window, for a test that has the fixture `window`; None for another test."""
    if not _uses_window(request.node):
        _SHELF.hide()
        yield None
        return
    shared = _SHELF.lend(first_model)
    yield shared
    monkeypatch.undo()  # what the test replaced in the window
    _SHELF.take_back(shared)


@pytest.fixture
def quick_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every drag is let go as a flick, however slow the machine is at the moment."""
    monkeypatch.setattr(plane_drag, "_FLICK_WINDOW_MS", 60_000)
    monkeypatch.setattr(plane_drag, "_FLICK_SEEDS_PER_S", 0.0)


@pytest.fixture
def messages(lent: SharedWindow | None) -> MessageLog:
    return lent.messages if lent else MessageLog()


@pytest.fixture
def settings(lent: SharedWindow | None, messages: MessageLog) -> Settings:
    return lent.settings if lent else Settings(None, messages)


@pytest.fixture
def controller(lent: SharedWindow | None) -> FakeController:
    return lent.controller if lent else FakeController()


@pytest.fixture
def make(qtbot: QtBot, settings: Settings, messages: MessageLog) -> Iterator[Make]:
    """Makes main windows and closes them."""
    made: list[MainWindow] = []

    def build(controller: FakeController, width: int = 1280, height: int = 800) -> MainWindow:
        window = MainWindow(controller, settings, messages)  # type: ignore[arg-type]
        made.append(window)
        qtbot.addWidget(window)
        with qtbot.waitExposed(window):
            show(window, width, height)
        QApplication.processEvents()
        return window

    yield build
    for window in made:
        window.close()


@pytest.fixture
def window(lent: SharedWindow | None) -> MainWindow:
    """The window that tests share, of `shared_window.SIZE`, as it is when it is new."""
    assert lent is not None
    return lent.window
