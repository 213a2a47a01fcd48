"""Messages over the canvas."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QEnterEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.messages import MessageLog
from explorer_app.window.messages.message_view import SHOWN_MS, MessageView
from explorer_app.window.messages.toast import Toast
from gpu_backend import ModelFileError, read_model


@pytest.fixture
def host(qtbot: QtBot) -> QWidget:
    host = QWidget()
    qtbot.addWidget(host)
    host.resize(700, 600)
    host.show()
    return host


@pytest.fixture
def view(host: QWidget, messages: MessageLog) -> Iterator[MessageView]:
    view = MessageView(messages, host)
    yield view
    view.close()


def sentences(view: MessageView) -> list[str]:
    return [toast.message.sentence for toast in view.toasts]


def shorten(toast: Toast) -> None:
    """Let the rest of its time be over at once."""
    if toast._timer.isActive():
        toast._timer.start(0)


def test_a_message_lies_at_the_bottom_right(
    host: QWidget, view: MessageView, messages: MessageLog, qtbot: QtBot
) -> None:
    messages.info("Saved a.png.")
    qtbot.waitUntil(lambda: len(view.toasts) == 1)
    toast = view.toasts[0]
    assert toast.geometry().right() > host.width() - 20
    assert toast.geometry().bottom() > host.height() - 20
    host.resize(500, 400)
    view.place()
    qtbot.waitUntil(lambda: toast.geometry().right() < 500)
    assert host.rect().contains(toast.geometry())


def test_what_was_said_before_there_was_a_window_is_shown(host: QWidget, messages: MessageLog, qtbot: QtBot) -> None:
    messages.info("Said early.")
    view = MessageView(messages, host)
    qtbot.waitUntil(lambda: sentences(view) == ["Said early."])
    view.close()


def test_a_message_from_another_thread_arrives_on_the_windows_own(
    view: MessageView, messages: MessageLog, qtbot: QtBot
) -> None:
    teller = threading.Thread(target=messages.warning, args=("From elsewhere.",))
    teller.start()
    teller.join()
    assert view.toasts == ()
    qtbot.waitUntil(lambda: sentences(view) == ["From elsewhere."])


def test_a_message_goes_after_six_seconds(view: MessageView, messages: MessageLog, qtbot: QtBot) -> None:
    messages.info("Soon gone.")
    qtbot.waitUntil(lambda: len(view.toasts) == 1)
    assert view.toasts[0]._timer.interval() == SHOWN_MS == 6000
    shorten(view.toasts[0])
    qtbot.waitUntil(lambda: not view.toasts)


def test_an_error_stays_until_it_is_closed(view: MessageView, messages: MessageLog, qtbot: QtBot) -> None:
    messages.error("It did not work.")
    qtbot.waitUntil(lambda: len(view.toasts) == 1)
    toast = view.toasts[0]
    assert not toast._timer.isActive()
    qtbot.mouseClick(toast.close_button, Qt.MouseButton.LeftButton)
    assert view.toasts == ()


def test_time_does_not_pass_while_somebody_reads(view: MessageView, messages: MessageLog, qtbot: QtBot) -> None:
    messages.info("Being read.")
    qtbot.waitUntil(lambda: len(view.toasts) == 1)
    toast = view.toasts[0]
    at = QPointF(5, 5)
    QApplication.sendEvent(toast, QEnterEvent(at, at, at))
    assert not toast._timer.isActive()


def test_at_most_three_are_shown_and_the_oldest_makes_room(
    view: MessageView, messages: MessageLog, qtbot: QtBot
) -> None:
    for number in range(5):
        messages.info(f"Number {number}.")
    qtbot.waitUntil(lambda: sentences(view) == ["Number 2.", "Number 3.", "Number 4."])
    tops = [toast.y() for toast in view.toasts]
    assert tops == sorted(tops)
    assert not any(a.geometry().intersects(b.geometry()) for a in view.toasts for b in view.toasts if a is not b)


def test_errors_are_not_pushed_out_but_wait_for_a_place(view: MessageView, messages: MessageLog, qtbot: QtBot) -> None:
    for number in range(4):
        messages.error(f"Error {number}.")
    qtbot.waitUntil(lambda: len(view.toasts) == 3)
    assert sentences(view) == ["Error 0.", "Error 1.", "Error 2."]
    qtbot.mouseClick(view.toasts[1].close_button, Qt.MouseButton.LeftButton)
    assert sentences(view) == ["Error 0.", "Error 2.", "Error 3."]


def test_the_same_message_again_is_counted_not_stacked(view: MessageView, messages: MessageLog, qtbot: QtBot) -> None:
    for _ in range(3):
        messages.warning("The disk is slow.")
    qtbot.waitUntil(lambda: len(view.toasts) == 1 and "×3" in view.toasts[0].sentence.text())


def test_details_open_stay_and_are_copied(host: QWidget, view: MessageView, messages: MessageLog, qtbot: QtBot) -> None:
    messages.warning("Two layers are slow.", "b128.conv0\nb256.conv0")
    qtbot.waitUntil(lambda: len(view.toasts) == 1)
    toast = view.toasts[0]
    low = toast.height()
    qtbot.mouseClick(toast.details_button, Qt.MouseButton.LeftButton)
    assert toast.details.isVisible()
    assert toast.details.toPlainText() == "b128.conv0\nb256.conv0"
    assert toast.height() > low
    assert host.rect().contains(toast.geometry())
    assert not toast._timer.isActive()
    qtbot.mouseClick(toast.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "Two layers are slow.\n\nb128.conv0\nb256.conv0"


def test_escape_closes_a_message(view: MessageView, messages: MessageLog, qtbot: QtBot) -> None:
    messages.error("It did not work.")
    qtbot.waitUntil(lambda: len(view.toasts) == 1)
    QTest.keyClick(view.toasts[0], Qt.Key.Key_Escape)
    assert view.toasts == ()


def test_notes_are_not_shown(view: MessageView, messages: MessageLog, qtbot: QtBot) -> None:
    messages.note("For a report.")
    messages.info("For the person.")
    qtbot.waitUntil(lambda: bool(view.toasts))
    assert sentences(view) == ["For the person."]


def test_a_click_on_a_message_does_not_reach_the_canvas(
    host: QWidget, view: MessageView, messages: MessageLog, qtbot: QtBot
) -> None:
    class Below(QWidget):
        presses = 0

        def mousePressEvent(self, event: object) -> None:  # noqa: N802
            self.presses += 1

    below = Below(host)
    below.resize(host.size())
    below.show()
    inner = MessageView(messages, below)
    messages.info("On top.")
    qtbot.waitUntil(lambda: len(inner.toasts) == 1)
    qtbot.mouseClick(inner.toasts[0], Qt.MouseButton.LeftButton, pos=QPoint(8, 8))
    assert below.presses == 0
    inner.close()


def test_after_closing_nothing_is_shown_any_more(view: MessageView, messages: MessageLog, qtbot: QtBot) -> None:
    view.close()
    view.close()
    messages.info("Too late.")
    qtbot.wait(20)
    assert view.toasts == ()


def test_a_refused_model_tells_its_particulars_on_demand(
    view: MessageView, messages: MessageLog, qtbot: QtBot, tmp_path: Path
) -> None:
    (tmp_path / "photo.pkl").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "photo.pkl")
    messages.exception(caught.value)
    qtbot.waitUntil(lambda: len(view.toasts) == 1)
    toast = view.toasts[0]
    QTest.mouseClick(toast.details_button, Qt.MouseButton.LeftButton)
    assert toast.details.isVisible()
    assert str(tmp_path / "photo.pkl") in toast.details.toPlainText()
    assert "8 bytes" in toast.details.toPlainText()
    assert "a PNG picture" in toast.details.toPlainText()
