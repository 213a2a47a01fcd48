"""Quitting while an export runs."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QMessageBox

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
