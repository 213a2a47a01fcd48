"""The hints of the first start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.messages import MessageLog
from explorer_app.settings import Settings
from explorer_app.window.shell.hints import HINTS, HintLine
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.panels import drag
from tests.helpers.windows import Make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


@pytest.fixture
def first(controller: FakeController, path: Path, messages: MessageLog) -> Iterator[MainWindow]:
    """The window of somebody who starts the program for the first time."""
    settings = Settings(path, messages)
    window = MainWindow(controller, settings, messages)  # type: ignore[arg-type]
    window.resize(1280, 800)
    window.show_restored()
    yield window
    window.close()
    window.deleteLater()


def test_each_hint_is_in_its_panel_at_the_first_start(first: MainWindow) -> None:
    assert list(first.hints.lines) == ["latent", "sliders", "mix"]
    for key, line in first.hints.lines.items():
        assert first.docks[key].isAncestorOf(line)
        assert not line.isHidden()


def test_hints_wait_for_a_model(path: Path, messages: MessageLog, qtbot: QtBot) -> None:
    controller = FakeController(with_model=False)
    window = MainWindow(controller, Settings(path, messages), messages)  # type: ignore[arg-type]
    qtbot.addWidget(window)
    window.show_restored()
    controller.engine.model_changed.emit()
    assert window.hints.lines == {}
    controller.engine.model.facts = facts()
    controller.engine.model_changed.emit()
    assert list(window.hints.lines) == list(HINTS)
    QTest.mouseClick(window.hints.lines["mix"].button, Qt.MouseButton.LeftButton)
    controller.engine.model_changed.emit()
    assert list(window.hints.lines) == ["latent", "sliders"], "another model brings none back"
    window.close()


def test_hints_leave_if_the_expected_model_cannot_be_opened(first: MainWindow, controller: FakeController) -> None:
    QTest.mouseClick(first.hints.lines["mix"].button, Qt.MouseButton.LeftButton)
    known, controller.engine.model.facts = controller.engine.model.facts, None
    controller.engine.model_changed.emit()
    assert first.hints.lines == {}
    controller.engine.model.facts = known
    controller.engine.model_changed.emit()
    assert list(first.hints.lines) == ["latent", "sliders"]


def test_a_hint_disappears_when_it_is_dismissed_and_when_it_was_followed(
    first: MainWindow, path: Path, messages: MessageLog
) -> None:
    QTest.mouseClick(first.hints.lines["mix"].button, Qt.MouseButton.LeftButton)
    assert "mix" not in first.hints.lines
    QApplication.processEvents()
    first.docks["latent"].setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False)  # wherever docks and pointer are by now
    drag(first.canvas, QPointF(200.0, 200.0), QPointF(260.0, 220.0))
    assert list(first.hints.lines) == ["sliders"]
    first.close()
    assert Settings(path, messages).choice("hints-seen").split() == ["latent", "mix"]


def test_a_hint_that_was_followed_stays_while_the_pointer_is_in_its_panel(
    first: MainWindow, path: Path, messages: MessageLog
) -> None:
    dock = first.docks["sliders"]
    dock.setAttribute(Qt.WidgetAttribute.WA_UnderMouse)
    first.hints.followed("sliders")
    first.hints.followed("mix")
    assert list(first.hints.lines) == ["latent", "sliders"]
    QApplication.sendEvent(dock, QEvent(QEvent.Type.Leave))
    assert list(first.hints.lines) == ["latent"]
    first.docks["latent"].setAttribute(Qt.WidgetAttribute.WA_UnderMouse)
    first.hints.followed("latent")
    first.close()
    assert Settings(path, messages).choice("hints-seen").split() == ["latent", "mix", "sliders"]


def test_dismissed_hints_stay_away_at_the_next_start(
    controller: FakeController, path: Path, messages: MessageLog
) -> None:
    settings = Settings(path, messages)
    settings.choose("hints-seen", "latent mix sliders")
    window = MainWindow(controller, settings, messages)  # type: ignore[arg-type]
    window.show_restored()
    assert window.hints.lines == {}
    window.actions_by_key["tour"].trigger()
    assert set(window.hints.lines) == {"latent", "sliders", "mix"}
    window.close()
    window.deleteLater()


def test_a_window_that_remembers_nothing_gives_no_hints(make: Make, controller: FakeController) -> None:
    assert make(controller).hints.lines == {}


def test_hints_leave_the_sliders_their_height_and_take_it_from_no_single_panel(
    make: Make, controller: FakeController, qtbot: QtBot
) -> None:
    window = make(controller, 1600, 980)
    before = {key: window.docks[key].height() for key in HINTS}
    window.commands.help.show_tour()

    def is_shared() -> bool:
        grown = window.docks["sliders"].height() - before["sliders"]
        return grown < 60 and window.docks["latent"].height() > 0.94 * before["latent"]

    qtbot.waitUntil(is_shared)


def test_a_hint_that_becomes_narrower_while_it_is_hidden_shows_all_its_lines(qtbot: QtBot) -> None:
    panel = QWidget()
    qtbot.addWidget(panel)
    line = HintLine(HINTS["latent"], panel)
    layout = QVBoxLayout(panel)
    layout.addWidget(line)
    layout.addStretch(1)
    panel.resize(900, 300)
    panel.show()
    panel.hide()
    panel.resize(340, 300)
    panel.show()
    QApplication.processEvents()
    assert line.text.height() == line.text.heightForWidth(line.text.width()) > line.text.fontMetrics().height()


def test_f6_enters_the_panel_below_a_hint(first: MainWindow) -> None:
    first.canvas.setFocus()
    for key in HINTS:
        QTest.keySequence(first.focusWidget(), "F6")
        QApplication.processEvents()
        assert first.docks[key].panel.isAncestorOf(first.focusWidget())
        assert not first.hints.lines[key].isAncestorOf(first.focusWidget())
