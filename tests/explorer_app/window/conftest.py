"""Every test of the window: themed, off screen, quiet, and leaving no window behind."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from collections.abc import Iterator
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
from tests.helpers.fake_controller import FakeController
from tests.helpers.fonts import FONTS, provide
from tests.helpers.windows import Make

_UNAVOIDABLE = "This plugin does not support "
"""Said by the off-screen platform whenever a dialog has a fixed size or a popup opens."""


@pytest.fixture(autouse=True)
def themed(qapp: QApplication) -> None:
    appearance.apply(qapp, "dark")


@pytest.fixture(params=FONTS)
def each_font(request: pytest.FixtureRequest, themed: None, qapp: QApplication) -> Iterator[str]:
    """The test runs once with each font: the shipped one, a narrow one, DejaVu Sans and a wide one."""
    fonts.use_family(provide(request.param))
    appearance.apply(qapp, "dark")
    yield request.param
    fonts.use("inter")
    appearance.apply(qapp, "dark")


@pytest.fixture(autouse=True)
def quiet(qapp: QApplication, qtlog: Any) -> Iterator[None]:
    """No Qt message, and no window that outlives its test."""
    before = {id(widget) for widget in qapp.topLevelWidgets() if widget.isVisible()}
    yield
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    left = [widget for widget in qapp.topLevelWidgets() if widget.isVisible() and id(widget) not in before]
    said = [record.message for record in qtlog.records if not record.message.startswith(_UNAVOIDABLE)]
    for widget in left:
        widget.close()
    assert not left, f"left open: {left}"
    assert not said, f"Qt said: {said}"


@pytest.fixture
def quick_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every drag is let go as a flick, however slow the machine is at the moment."""
    monkeypatch.setattr(plane_drag, "_FLICK_WINDOW_MS", 60_000)
    monkeypatch.setattr(plane_drag, "_FLICK_SEEDS_PER_S", 0.0)


@pytest.fixture
def messages() -> MessageLog:
    return MessageLog()


@pytest.fixture
def settings(messages: MessageLog) -> Settings:
    return Settings(None, messages)


@pytest.fixture
def controller(qapp: QApplication) -> FakeController:
    return FakeController()


@pytest.fixture
def make(qtbot: QtBot, settings: Settings, messages: MessageLog) -> Iterator[Make]:
    """Makes main windows and closes them."""
    made: list[MainWindow] = []

    def build(controller: FakeController, width: int = 1280, height: int = 800) -> MainWindow:
        window = MainWindow(controller, settings, messages)  # type: ignore[arg-type]
        made.append(window)
        qtbot.addWidget(window)
        for dock in window.docks.values():
            dock.make_panel()
        window.resize(width, height)
        with qtbot.waitExposed(window):
            window.show_restored()
        window.resize(width, height)
        QApplication.processEvents()
        return window

    yield build
    for window in made:
        window.close()


@pytest.fixture
def window(make: Make, controller: FakeController) -> MainWindow:
    return make(controller)
