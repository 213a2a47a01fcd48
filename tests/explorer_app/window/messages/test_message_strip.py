"""Messages below the canvas."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QAccessible, QEnterEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.messages import Action, Level, MessageLog
from explorer_app.window.messages.message_line import MessageLine
from explorer_app.window.messages.message_strip import SHOWN_MS, MessageStrip
from gpu_backend import ModelFileError, read_model


@pytest.fixture
def host(qtbot: QtBot) -> QWidget:
    host = QWidget()
    qtbot.addWidget(host)
    host.resize(700, 600)
    host.show()
    return host


@pytest.fixture
def strip(host: QWidget, messages: MessageLog) -> Iterator[MessageStrip]:
    strip = MessageStrip(messages, host)
    layout = QVBoxLayout(host)
    layout.addStretch(1)
    layout.addWidget(strip)
    yield strip
    strip.stop()


def sentences(strip: MessageStrip) -> list[str]:
    return [line.message.sentence for line in strip.lines]


def earlier(strip: MessageStrip) -> list[str]:
    return [line.message.sentence for line in strip.earlier.lines]


def shorten(line: MessageLine) -> None:
    """Let the rest of its time be over at once."""
    if line._timer.isActive():
        line._timer.start(0)


def test_a_message_closes_once_its_action_is_needless_and_is_not_shown_later(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    waiting = {"first", "second"}
    for name in ("first", "second"):
        needed = partial(waiting.__contains__, name)
        messages.post(Level.INFO, f"Waiting for the {name}.", action=Action("Cancel", lambda: None, needed))
    waiting.remove("second")
    messages.info("Done.")
    qtbot.waitUntil(lambda: sentences(strip) == ["Waiting for the first.", "Done."])
    waiting.clear()
    strip.close_needless()
    assert sentences(strip) == ["Done."]


def test_an_error_about_a_file_closes_once_the_file_is_opened(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    names = ("a.pkl", "b.pkl", "c.pkl", "d.pkl")
    for name in names:
        messages.error(f"{name} was not opened.", about=Path(name))
    qtbot.waitUntil(lambda: len(strip.earlier.lines) == 3)
    for name in ("a.pkl", "c.pkl", "c.pkl", "e.pkl"):  # all but the last one gave their place to a newer one
        messages.note_success(Path(name))
    qtbot.waitUntil(lambda: earlier(strip) == ["b.pkl was not opened."])
    assert sentences(strip) == ["d.pkl was not opened."]
    assert len([item for item in messages.messages if item.level is Level.NOTE]) == 2
    messages.error("a.pkl was not opened.", about=Path("a.pkl"))
    qtbot.waitUntil(lambda: sentences(strip)[-1] == "a.pkl was not opened.")


def test_a_long_word_does_not_widen_what_is_around_the_message(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    name = "x" * 200 + ".loom"
    messages.error(f"{name} could not be saved.")
    qtbot.waitUntil(lambda: len(strip.lines) == 1)
    line = strip.lines[0]
    assert strip.minimumSizeHint().width() < 600
    assert line.sentence.text().endswith(".loom could not be saved.")
    assert line.sentence.toolTip() == f"{name} could not be saved."
    line.copy_button.click()
    assert QGuiApplication.clipboard().text() == f"{name} could not be saved."
    messages.error(f"{name} could not be saved.")
    qtbot.waitUntil(lambda: "×2" in line.sentence.text())
    assert strip.minimumSizeHint().width() < 600


def test_the_strip_takes_room_only_while_there_is_something_to_read(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    assert strip.isHidden()
    messages.info("Saved a.png.")
    qtbot.waitUntil(lambda: len(strip.lines) == 1 and strip.isVisible())
    shorten(strip.lines[0])
    qtbot.waitUntil(strip.isHidden)


def test_messages_from_before_the_window_are_shown(host: QWidget, messages: MessageLog, qtbot: QtBot) -> None:
    messages.info("Said early.")
    strip = MessageStrip(messages, host)
    qtbot.waitUntil(lambda: sentences(strip) == ["Said early."])
    strip.stop()


def test_a_stopped_strip_is_empty_and_takes_no_more_messages(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    for number in range(4):
        messages.error(f"Error {number}.")
    qtbot.waitUntil(lambda: len(strip.earlier.lines) == 3)
    messages.info("On its way.")
    strip.stop()
    messages.info("Too late.")
    QApplication.processEvents()
    assert strip.lines == ()
    assert strip.isHidden()
    assert not [line for line in strip.findChildren(MessageLine) if line.isVisible()]


def test_a_message_from_another_thread_arrives_on_the_windows_own(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    thread = threading.Thread(target=messages.warning, args=("From elsewhere.",))
    thread.start()
    thread.join()
    assert strip.lines == ()
    qtbot.waitUntil(lambda: sentences(strip) == ["From elsewhere."])


def test_a_message_goes_after_six_seconds(strip: MessageStrip, messages: MessageLog, qtbot: QtBot) -> None:
    messages.info("Soon gone.")
    qtbot.waitUntil(lambda: len(strip.lines) == 1)
    assert strip.lines[0]._timer.interval() == SHOWN_MS == 6000
    shorten(strip.lines[0])
    qtbot.waitUntil(lambda: not strip.lines)


def test_an_error_stays_until_it_is_closed(strip: MessageStrip, messages: MessageLog, qtbot: QtBot) -> None:
    messages.error("It did not work.")
    qtbot.waitUntil(lambda: len(strip.lines) == 1)
    line = strip.lines[0]
    assert not line._timer.isActive()
    qtbot.mouseClick(line.close_button, Qt.MouseButton.LeftButton)
    assert strip.lines == ()


def test_a_message_does_not_expire_under_the_pointer(strip: MessageStrip, messages: MessageLog, qtbot: QtBot) -> None:
    messages.info("Being read.")
    qtbot.waitUntil(lambda: len(strip.lines) == 1)
    line = strip.lines[0]
    at = QPointF(5, 5)
    QApplication.sendEvent(line, QEnterEvent(at, at, at))
    assert not line._timer.isActive()


def test_at_most_three_are_shown_and_the_oldest_makes_room(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    for number in range(5):
        messages.info(f"Number {number}.")
    qtbot.waitUntil(lambda: sentences(strip) == ["Number 2.", "Number 3.", "Number 4."])
    tops = [line.y() for line in strip.lines]
    assert tops == sorted(tops)
    assert not any(a.geometry().intersects(b.geometry()) for a in strip.lines for b in strip.lines if a is not b)


def test_of_several_errors_the_newest_is_shown_and_the_others_are_counted_and_listed(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    messages.error("Error 0.")
    qtbot.waitUntil(lambda: sentences(strip) == ["Error 0."])
    assert strip.earlier.isHidden()
    for number in (1, 2):
        messages.error(f"Error {number}.")
    qtbot.waitUntil(lambda: sentences(strip) == ["Error 2."])
    assert earlier(strip) == ["Error 0.", "Error 1."]
    assert strip.earlier.count.text() == "2 earlier errors"
    assert not strip.earlier.list.isVisible()
    low = strip.sizeHint().height()
    strip.earlier.show_button.click()
    qtbot.waitUntil(lambda: all(line.isVisible() for line in strip.earlier.lines))
    assert strip.sizeHint().height() > low
    messages.error("Error 0.")
    qtbot.waitUntil(lambda: sentences(strip) == ["Error 0."])
    assert "×2" in strip.lines[0].sentence.text(), "an earlier error is not lost, but counted"
    assert earlier(strip) == ["Error 1.", "Error 2."]


def test_an_error_that_is_closed_brings_no_earlier_one_back(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    for number in range(4):
        messages.error(f"Error {number}.")
    qtbot.waitUntil(lambda: sentences(strip) == ["Error 3."])
    qtbot.mouseClick(strip.lines[0].close_button, Qt.MouseButton.LeftButton)
    assert sentences(strip) == []
    assert strip.earlier.count.text() == "3 earlier errors"
    strip.earlier.show_button.click()
    qtbot.mouseClick(strip.earlier.lines[1].close_button, Qt.MouseButton.LeftButton)
    assert earlier(strip) == ["Error 0.", "Error 2."]
    QTest.keyClick(strip.earlier, Qt.Key.Key_Escape)
    assert not strip.earlier.list.isVisible()
    assert len(strip.earlier.lines) == 2
    strip.earlier.show_button.click()
    for line in strip.earlier.lines:
        line.close_button.click()
    assert strip.isHidden()
    for number in range(2):
        messages.error(f"Later {number}.")
    qtbot.waitUntil(lambda: earlier(strip) == ["Later 0."])
    assert not strip.earlier.list.isVisible()


def test_all_errors_are_closed_together_and_nothing_else(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    messages.info("Saved a.png.")
    for number in range(3):
        messages.error(f"Error {number}.")
    qtbot.waitUntil(lambda: sentences(strip) == ["Saved a.png.", "Error 2."])
    qtbot.mouseClick(strip.earlier.close_button, Qt.MouseButton.LeftButton)
    assert sentences(strip) == ["Saved a.png."]
    assert strip.earlier.isHidden()


def test_an_error_stays_while_informations_come_and_go(strip: MessageStrip, messages: MessageLog, qtbot: QtBot) -> None:
    messages.error("Error.")
    for number in range(4):
        messages.info(f"Number {number}.")
    qtbot.waitUntil(lambda: sentences(strip) == ["Error.", "Number 2.", "Number 3."])


def test_the_same_message_again_is_counted_not_stacked(strip: MessageStrip, messages: MessageLog, qtbot: QtBot) -> None:
    for _ in range(3):
        messages.warning("The disk is slow.")
    qtbot.waitUntil(lambda: len(strip.lines) == 1 and "×3" in strip.lines[0].sentence.text())


def test_the_same_words_with_another_action_are_another_message(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    called: list[int] = []
    for number in (1, 2, 2):
        action = Action("Keep again", partial(called.append, number) if number == 1 else called.clear, lambda: True)
        messages.post(Level.INFO, "2 pictures are kept no longer.", action=action)
    qtbot.waitUntil(lambda: len(strip.lines) == 2 and "×2" in strip.lines[1].sentence.text())
    strip.lines[0].action_button.click()
    assert called == [1]


def test_details_open_stay_and_are_copied(
    host: QWidget, strip: MessageStrip, messages: MessageLog, qtbot: QtBot
) -> None:
    messages.warning("Two layers are slow.", "b128.conv0\nb256.conv0")
    qtbot.waitUntil(lambda: len(strip.lines) == 1)
    line = strip.lines[0]
    low = line.height()
    qtbot.mouseClick(line.details_button, Qt.MouseButton.LeftButton)
    assert line.details.isVisible()
    assert line.details.toPlainText() == "b128.conv0\nb256.conv0"
    assert line.height() > low
    assert strip.rect().contains(line.geometry())
    assert not line._timer.isActive()
    qtbot.mouseClick(line.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "Two layers are slow.\n\nb128.conv0\nb256.conv0"


def test_escape_closes_a_message(strip: MessageStrip, messages: MessageLog, qtbot: QtBot) -> None:
    messages.error("It did not work.")
    qtbot.waitUntil(lambda: len(strip.lines) == 1)
    QTest.keyClick(strip.lines[0], Qt.Key.Key_Escape)
    assert strip.lines == ()


def test_notes_are_not_shown(strip: MessageStrip, messages: MessageLog, qtbot: QtBot) -> None:
    messages.note("For a report.")
    messages.info("For the person.")
    qtbot.waitUntil(lambda: bool(strip.lines))
    assert sentences(strip) == ["For the person."]


def test_after_closing_nothing_is_shown(strip: MessageStrip, messages: MessageLog, qtbot: QtBot) -> None:
    strip.stop()
    strip.stop()
    messages.info("Too late.")
    qtbot.wait(20)
    assert strip.lines == ()


def test_a_refused_model_reports_its_particulars_on_demand(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot, tmp_path: Path
) -> None:
    (tmp_path / "photo.pkl").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(ModelFileError) as caught:
        read_model(tmp_path / "photo.pkl")
    messages.exception(caught.value)
    qtbot.waitUntil(lambda: len(strip.lines) == 1)
    line = strip.lines[0]
    QTest.mouseClick(line.details_button, Qt.MouseButton.LeftButton)
    assert line.details.isVisible()
    assert str(tmp_path / "photo.pkl") in line.details.toPlainText()
    assert "8 bytes" in line.details.toPlainText()
    assert "a PNG picture" in line.details.toPlainText()


def test_screen_readers_hear_messages_as_they_come_and_as_they_come_again(
    strip: MessageStrip, messages: MessageLog, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(QAccessible, "isActive", lambda: True)
    monkeypatch.setattr(QAccessible, "updateAccessibility", lambda event: heard.append(event.message()))
    for sentence in ("No sound device was found.", "The disk is full.", "The disk is full."):
        messages.warning(sentence)
    qtbot.waitUntil(lambda: len(heard) == 3)
    assert heard == ["No sound device was found.", "The disk is full.", "The disk is full."]
    assert strip.accessibleDescription() == "The disk is full."
