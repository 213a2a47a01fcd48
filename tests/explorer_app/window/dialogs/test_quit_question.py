"""Quitting while an export runs, or while the session cannot be saved."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QMessageBox
from pytestqt.qtbot import QtBot

from explorer_app.controller.progress import ExportProgress
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController
from tests.helpers.windows import calls


@pytest.fixture
def box(window: MainWindow, controller: FakeController) -> QMessageBox:
    """The question of a window that was asked to close during an export."""
    controller.progress(ExportProgress("walk", 37, 96))
    window.close()
    box = window.quit_question.box
    assert box is not None
    return box


def button(box: QMessageBox, text: str) -> QAbstractButton:
    return next(button for button in box.buttons() if button.text().replace("&", "") == text)


def press(box: QMessageBox, text: str) -> None:
    QTest.mouseClick(button(box, text), Qt.MouseButton.LeftButton)


def closed(window: MainWindow, controller: FakeController) -> bool:
    return not window.isVisible() and bool(calls(controller, "close"))


def test_the_window_stays_and_asks(window: MainWindow, controller: FakeController, box: QMessageBox) -> None:
    assert window.isVisible()
    assert "“walk” is running: 37 of 96 frames" in box.text()
    words = {item.text().replace("&", "") for item in box.buttons()}
    assert words == {"Finish, then quit", "Stop and keep for later", "Cancel"}


def test_keeping_for_later_closes_at_once(window: MainWindow, controller: FakeController, box: QMessageBox) -> None:
    press(box, "Stop and keep for later")
    assert closed(window, controller)


def test_cancel_goes_on_and_the_next_close_asks_again(
    window: MainWindow, controller: FakeController, box: QMessageBox
) -> None:
    press(box, "Cancel")
    assert window.isVisible()
    controller.progress(None)
    assert window.isVisible()
    controller.progress(ExportProgress("walk", 37, 96))
    window.close()
    assert window.quit_question.box is not None


def test_finishing_closes_when_the_export_is_done(
    window: MainWindow, controller: FakeController, box: QMessageBox
) -> None:
    press(box, "Finish, then quit")
    assert window.isVisible()
    controller.progress(ExportProgress("walk", 95, 96))
    assert window.isVisible()
    controller.export.has_succeeded = True
    controller.progress(None)
    assert closed(window, controller)


def test_an_export_that_fails_keeps_the_window_so_that_it_can_tell_why(
    window: MainWindow, controller: FakeController, box: QMessageBox
) -> None:
    press(box, "Finish, then quit")
    controller.progress(None)
    assert window.isVisible()


def test_an_export_that_ends_meanwhile_takes_the_question_away(
    window: MainWindow, controller: FakeController, box: QMessageBox
) -> None:
    controller.export.has_succeeded = True
    controller.progress(None)
    assert window.quit_question.box is None
    assert window.isVisible()


def test_a_program_that_gets_a_signal_to_end_asks_nothing(window: MainWindow, controller: FakeController) -> None:
    controller.progress(ExportProgress("walk", 37, 96))
    window.close_now()
    assert closed(window, controller)
    assert window.quit_question.box is None


UNSAVED = "The session could not be saved in /home (No space left on device); Latent Loom tries again until it can."


@pytest.fixture
def unsaved(window: MainWindow, controller: FakeController) -> QMessageBox:
    """The question of a window that was asked to close while its session cannot be saved."""
    controller.editing.unsaved = UNSAVED
    window.close()
    box = window.quit_question.box
    assert box is not None
    return box


def test_changes_that_cannot_be_saved_are_not_lost_without_a_question(
    window: MainWindow, controller: FakeController, unsaved: QMessageBox
) -> None:
    assert window.isVisible()
    assert UNSAVED in unsaved.informativeText()
    words = {item.text().replace("&", "") for item in unsaved.buttons()}
    assert words == {"Try again", "Quit without saving", "Cancel"}
    press(unsaved, "Cancel")
    assert window.isVisible()
    window.close()
    again = window.quit_question.box
    assert again is not None
    press(again, "Quit without saving")
    assert closed(window, controller)


def test_once_they_are_saved_the_window_closes_without_a_question(
    window: MainWindow, controller: FakeController, unsaved: QMessageBox
) -> None:
    press(unsaved, "Try again")
    assert calls(controller, "save_now")
    controller.editing.unsaved = ""
    window.close()
    assert closed(window, controller)


def test_an_export_and_changes_that_cannot_be_saved_are_two_questions(
    window: MainWindow, controller: FakeController, box: QMessageBox, qtbot: QtBot
) -> None:
    controller.editing.unsaved = UNSAVED
    press(box, "Stop and keep for later")
    assert window.isVisible()
    qtbot.waitUntil(lambda: window.quit_question.box not in (None, box))
    second = window.quit_question.box
    assert second is not None
    assert UNSAVED in second.informativeText()
    press(second, "Quit without saving")
    assert closed(window, controller)
