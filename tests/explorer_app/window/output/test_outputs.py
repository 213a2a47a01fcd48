"""The picture alone on a screen: placement, looks, and what closes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QAction, QActionGroup, QColor, QGuiApplication, QScreen
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.messages import MessageLog
from explorer_app.session.session import Session
from explorer_app.settings import Settings
from explorer_app.window.output.output_window import OutputWindow, _placed
from explorer_app.window.output.outputs import Outputs
from tests.helpers.fake_controller import FakeController

RED = (0, 0, 255, 255)


class Stage:
    """Outputs over a preview whose frames a test makes."""

    def __init__(self, window: QWidget, settings: Settings, messages: MessageLog) -> None:
        self.engine = FakeController().engine
        self.messages = messages
        self.outputs = Outputs(window, self.engine.preview, settings, messages)  # type: ignore[arg-type]
        self.screen = window.screen()
        self.changes: list[bool] = []
        self.outputs.changed.connect(lambda: self.changes.append(self.outputs.is_open))

    def show(self, width: int = 64, height: int = 64) -> None:
        """Bring a red frame."""
        preview = self.engine.preview
        pixels = np.full((height, width, 4), RED, np.uint8)
        assert preview.frame is not None
        preview.frame = replace(preview.frame, pixels=pixels)
        preview.frame_changed.emit()

    def open(self) -> OutputWindow:
        self.outputs.set_on(self.screen, True)
        output = self.outputs.windows[self.screen.name()]
        output.resize(200, 100)
        return output


@pytest.fixture
def stage(qtbot: QtBot, settings: Settings, messages: MessageLog) -> Iterator[Stage]:
    window = QWidget()
    qtbot.addWidget(window)
    stage = Stage(window, settings, messages)
    stage.engine.render(Session())
    yield stage
    stage.outputs.close()


@pytest.mark.parametrize(
    ("is_whole", "size", "expected"),
    [
        (False, (64, 64), QRectF(50, 0, 100, 100)),
        (True, (64, 64), QRectF(68, 18, 64, 64)),
        (True, (30, 30), QRectF(55, 5, 90, 90)),
        (True, (400, 400), QRectF(50, 0, 100, 100)),
        (False, (64, 16), QRectF(0, 25, 200, 50)),
    ],
)
def test_a_picture_is_centred_and_as_large_as_it_may_be(
    is_whole: bool, size: tuple[int, int], expected: QRectF
) -> None:
    assert _placed(QSize(*size), 200, 100, is_whole=is_whole, ratio=1.0) == expected


def test_every_frame_of_the_canvas_is_shown_without_another_render(stage: Stage) -> None:
    output = stage.open()
    renders = len(stage.engine._calls)
    for _ in range(3):
        stage.show()
        assert output.frame is stage.engine.preview.frame
    shot = output.grab().toImage()
    assert shot.pixelColor(100, 50) == QColor(255, 0, 0)
    assert shot.pixelColor(5, 50) == QColor(0, 0, 0)
    assert len(stage.engine._calls) == renders


def test_borders_may_be_the_blurred_picture_darkened(stage: Stage, settings: Settings) -> None:
    output = stage.open()
    stage.show()
    stage.outputs.choose("borders", "blurred")
    border = output.grab().toImage().pixelColor(5, 50)
    assert 60 < border.red() < 200
    assert (border.green(), border.blue()) == (0, 0)
    assert settings.choice("output.borders") == "blurred"


def test_whole_pixels_are_chosen_for_open_outputs_and_remembered(stage: Stage) -> None:
    output = stage.open()
    stage.show(30, 30)
    assert output.picture_rect().width() == 100
    stage.outputs.choose("scaling", "whole")
    assert output.picture_rect().width() == 90
    assert stage.outputs.scaling == "whole"


def test_a_draft_takes_the_place_of_the_picture(stage: Stage) -> None:
    output = stage.open()
    stage.outputs.choose("scaling", "whole")
    stage.show(30, 30)
    place = output.picture_rect()
    preview = stage.engine.preview
    assert preview.frame is not None
    preview.frame = replace(
        preview.frame,
        pixels=np.zeros((20, 20, 4), np.uint8),
        is_draft=True,
    )
    preview.frame_changed.emit()
    assert output.picture_rect() == place


def test_escape_closes_an_output_and_the_pointer_is_hidden(stage: Stage) -> None:
    output = stage.open()
    assert output.cursor().shape() == Qt.CursorShape.BlankCursor
    QTest.keyClick(output, Qt.Key.Key_Escape)
    assert stage.changes == [True, False]
    stage.show()  # a frame after that finds no window


def test_an_output_that_covers_the_window_takes_the_shortcuts_that_it_is_given(stage: Stage, qtbot: QtBot) -> None:
    played: list[bool] = []
    play, toggle = QAction(checkable=True), QAction(checkable=True, checked=True)
    play.setShortcut("Ctrl+Space")
    toggle.setShortcut("Ctrl+F11")
    play.toggled.connect(played.append)
    toggle.toggled.connect(stage.outputs.toggle)
    stage.outputs.actions = (play, toggle)
    output = stage.open()
    with qtbot.waitActive(output):
        output.activateWindow()
    QTest.keyClick(output, Qt.Key.Key_Space, Qt.KeyboardModifier.ControlModifier)
    assert played == [True]
    assert stage.outputs.is_open
    QTest.keyClick(output, Qt.Key.Key_F11, Qt.KeyboardModifier.ControlModifier)
    assert not stage.outputs.is_open


def test_the_same_action_opens_and_closes(stage: Stage) -> None:
    stage.outputs.toggle(True)
    assert list(stage.outputs.windows) == [stage.screen.name()]
    stage.outputs.toggle(True)
    stage.outputs.toggle(False)
    assert stage.changes == [True, False]


def test_a_screen_that_is_gone_takes_its_output_along_and_reports_it(stage: Stage) -> None:
    stage.open()
    stage.outputs._screen_removed(stage.screen)
    assert not stage.outputs.is_open
    assert "was disconnected, so its output was closed" in stage.messages.messages[-1].sentence


def test_a_screen_that_went_away_while_the_menu_was_open_is_left_alone(stage: Stage, qtbot: QtBot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    menu = stage.outputs.make_menu(holder)
    stage.outputs._screens = lambda: ()
    menu.actions()[0].trigger()
    assert not stage.outputs.is_open


def test_the_menu_lists_every_screen_and_the_looks(stage: Stage, qtbot: QtBot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    menu = stage.outputs.make_menu(holder)
    first = menu.actions()[0]
    assert first.text().startswith("Output on screen &1: ")
    first.trigger()
    assert stage.outputs.is_open
    menu.aboutToShow.emit()
    chosen = [action.text() for action in menu.actions() if action.isChecked()]
    assert chosen[1:] == ["Smooth scaling", "Black borders"]
    assert len(menu.actions()) == len(QGuiApplication.screens()) + 6
    menu.actions()[0].trigger()
    assert not stage.outputs.is_open


class FakeNdi:
    """Notes the pictures that are sent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: list[object] = []
        self.is_closed = False

    def show(self, pixels: object) -> None:
        self.sent.append(pixels)

    def close(self) -> None:
        self.is_closed = True


def test_an_ndi_source_gets_the_frames_where_its_library_is_installed(stage: Stage, qtbot: QtBot) -> None:
    made: list[FakeNdi] = []

    def make(name: str) -> FakeNdi:
        made.append(FakeNdi(name))
        return made[-1]

    holder = QWidget()
    qtbot.addWidget(holder)
    stage.outputs._make_ndi = None
    assert not [action for action in stage.outputs.make_menu(holder).actions() if "NDI" in action.text()]
    stage.outputs._make_ndi = make  # type: ignore[assignment]
    next(action for action in stage.outputs.make_menu(holder).actions() if "NDI" in action.text()).trigger()
    stage.show()
    stage.outputs.close()
    stage.show()
    frame = stage.engine.preview.frame
    assert frame is not None
    assert (made[0].name, len(made[0].sent), made[0].is_closed) == ("Latent Loom", 2, True)


def test_the_menu_shows_the_names_of_screens_and_grows_by_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = QWidget()
    menu = stage.outputs.make_menu(window)
    monkeypatch.setattr(QScreen, "name", lambda screen: "R&B")
    for _ in range(3):
        menu.aboutToShow.emit()
    assert "R&&B" in menu.actions()[0].text()
    assert len(menu.findChildren(QActionGroup)) == 2
    smooth, whole = (action for action in menu.actions() if action.text() in ("Smooth scaling", "Whole pixels"))
    whole.trigger()
    assert (smooth.isChecked(), whole.isChecked()) == (False, True)


def test_keys_stay_with_the_window_while_another_screen_shows_the_picture(
    stage: Stage, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = stage.outputs._window
    with qtbot.waitActive(window):
        window.show()
        window.activateWindow()
    monkeypatch.setattr(window, "screen", lambda: SimpleNamespace(name=lambda: "the hand's"))
    stage.open()
    QApplication.processEvents()
    assert QApplication.activeWindow() is window


def test_an_output_that_covers_the_window_takes_the_keys(stage: Stage, qtbot: QtBot) -> None:
    window = stage.outputs._window
    with qtbot.waitActive(window):
        window.show()
        window.activateWindow()
    output = stage.open()
    QApplication.processEvents()
    assert QApplication.activeWindow() is output
