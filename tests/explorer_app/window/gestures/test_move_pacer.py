"""The event loop pauses between the moves of a fast mouse, and only between those."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QAbstractEventDispatcher, QEvent, QEventLoop, QPointF, Qt, QTimer
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.window.gestures.move_pacer import MovePacer
from explorer_app.window.gestures.pointer_way import PointerWay


class Pauses:
    """Records the pauses that a pacer makes, in seconds, and makes none."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.is_painting = False
        """Whether a frame is to be painted, so that nothing is waited for."""

    def wait(self, seconds: float) -> bool:
        if not self.is_painting:
            self.seconds.append(seconds)
        return not self.is_painting


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def report(qapp: object) -> Iterator[QTimer]:
    timer = QTimer(singleShot=True, interval=60_000)
    timer.start()
    yield timer
    timer.stop()


@pytest.fixture
def pacer(pauses: Pauses, report: QTimer) -> Iterator[MovePacer]:
    pacer = MovePacer(pauses.wait)
    pacer.begin(report)
    yield pacer
    pacer.end()


def block() -> None:
    """Announce, as the event loop does, that nothing is left to do."""
    dispatcher = QAbstractEventDispatcher.instance()
    assert dispatcher is not None
    dispatcher.aboutToBlock.emit()


def test_the_loop_pauses_once_after_a_move_of_a_fast_mouse(pacer: MovePacer, pauses: Pauses) -> None:
    for stamp_ms in (1000, 1001, 1002):
        pacer.note(stamp_ms)
    block()
    block()
    assert pauses.seconds == [30.0]
    pacer.note(1003)
    block()
    assert pauses.seconds == [30.0, 30.0]


def test_no_pause_is_made_shortly_before_the_report_which_takes_the_newest_moves(
    pacer: MovePacer, pauses: Pauses, report: QTimer
) -> None:
    pacer.note(1000)
    pacer.note(1001)
    report.start(1)
    block()
    assert pauses.seconds == []


def test_a_pause_that_a_paint_prevents_is_made_after_the_paint(pacer: MovePacer, pauses: Pauses) -> None:
    pacer.note(1000)
    pacer.note(1001)
    pauses.is_painting = True
    block()
    pauses.is_painting = False
    block()
    block()
    assert pauses.seconds == [30.0]


@pytest.mark.parametrize("stamps_ms", [(1000, 1008, 1016), (0, 0, 0), (1000, 999)])
def test_a_slow_mouse_and_one_without_timestamps_are_not_paced(
    pacer: MovePacer, pauses: Pauses, stamps_ms: tuple[int, ...]
) -> None:
    for stamp_ms in stamps_ms:
        pacer.note(stamp_ms)
    block()
    assert pauses.seconds == []


def test_no_pause_follows_the_end_of_a_drag_which_may_come_twice(pacer: MovePacer, pauses: Pauses) -> None:
    pacer.note(1000)
    pacer.note(1001)
    pacer.end()
    pacer.end()
    block()
    assert pauses.seconds == []


def test_a_drag_tells_the_pacer_of_its_window_until_the_button_is_released(qtbot: QtBot, pauses: Pauses) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    MovePacer(pauses.wait, window)
    way = PointerWay(lambda *_: None, window)
    window.show()
    qtbot.waitExposed(window)
    way.begin(QPointF())
    way._tick.setInterval(60_000)
    none, left = Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton

    def send(kind: QEvent.Type, x: float, stamp_ms: int) -> None:
        at = QPointF(x, 5.0)
        button, held = (none, left) if kind == QEvent.Type.MouseMove else (left, none)
        event = QMouseEvent(kind, at, at, at, button, held, Qt.KeyboardModifier.NoModifier)
        event.setTimestamp(stamp_ms)
        QApplication.sendEvent(window.windowHandle(), event)

    for number in range(1, 10):
        send(QEvent.Type.MouseMove, float(number), 1000 + number)
    loop = QEventLoop()
    QTimer.singleShot(0, loop.quit)
    loop.exec()
    assert len(pauses.seconds) == 1
    send(QEvent.Type.MouseButtonRelease, 9.0, 1010)
    send(QEvent.Type.MouseMove, 12.0, 1011)
    block()
    assert len(pauses.seconds) == 1
