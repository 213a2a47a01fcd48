"""The event loop pauses between the reports of a drag."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import SIGNAL, QAbstractEventDispatcher, QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.window.gestures.move_pacer import MovePacer
from explorer_app.window.gestures.pointer_path import PointerPath


class Pauses:
    """Records the pauses that a pacer makes, in seconds, and makes none; a clock that a test winds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.is_painting = False
        """Whether a frame is to be painted, so that nothing is waited for."""
        self.now_s = 100.0

    def wait(self, seconds: float) -> bool:
        if not self.is_painting:
            self.seconds.append(round(seconds, 6))
        return not self.is_painting


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def pacer(qapp: object, pauses: Pauses) -> Iterator[MovePacer]:
    """A pacer of a drag that reported just now, and reports 60 times a second."""
    pacer = MovePacer(pauses.wait, clock=lambda: pauses.now_s)
    pacer.begin(1 / 60, lambda: None)
    pacer.reported()
    yield pacer
    pacer.end()


def block() -> None:
    """Announce, as the event loop does, that nothing is left to do."""
    dispatcher = QAbstractEventDispatcher.instance()
    assert dispatcher is not None
    dispatcher.aboutToBlock.emit()


def test_the_loop_pauses_once_after_a_move_until_the_report_is_due(pacer: MovePacer, pauses: Pauses) -> None:
    for stamp_ms in (1000, 1001, 1002):
        pacer.note(stamp_ms)
    block()
    block()
    assert pauses.seconds == [pytest.approx(1 / 60, abs=1e-5)]
    pauses.now_s += 0.01
    pacer.note(1003)
    block()
    assert pauses.seconds[1:] == [pytest.approx(1 / 60 - 0.01, abs=1e-5)]


def test_no_pause_is_made_once_the_report_is_due(pacer: MovePacer, pauses: Pauses) -> None:
    pacer.note(1000)
    pacer.note(1001)
    assert not pacer.is_due
    pauses.now_s += 1 / 60
    assert pacer.is_due
    block()
    assert pauses.seconds == []


@pytest.mark.parametrize(
    ("late_s", "next_s"),
    [
        pytest.param(0.003, 1 / 60 - 0.003, id="a late report delays no later one"),
        pytest.param(0.5, 1 / 60, id="missed reports are not made up for"),
        pytest.param(-0.01, 1 / 60, id="a report before its time starts a new period"),
    ],
)
def test_reports_follow_each_other_at_the_rate_of_the_screen(
    pacer: MovePacer, pauses: Pauses, late_s: float, next_s: float
) -> None:
    pauses.now_s += 1 / 60 + late_s
    pacer.reported()
    assert pacer.due_s - pauses.now_s == pytest.approx(next_s)


def test_a_frame_interrupts_no_pause_where_its_paint_is_sent_to_the_screen_at_once(
    qapp: object, pauses: Pauses
) -> None:
    def wait_for_a_frame(seconds: float) -> bool:
        pauses.now_s += min(seconds, 0.003)
        return pauses.wait(seconds)

    for sends_paints, count in ((True, 2), (False, 1)):
        pauses.seconds.clear()
        pacer = MovePacer(wait_for_a_frame, clock=lambda: pauses.now_s, sends_paints=sends_paints)
        pacer.begin(1 / 60, lambda: None)
        pacer.reported()
        pacer.note(1000)
        pacer.note(1001)
        block()
        pacer.end()
        assert pauses.seconds == [pytest.approx(1 / 60 - 0.003 * number, abs=1e-5) for number in range(count)]


def test_a_pause_that_a_paint_prevents_is_made_after_the_paint(pacer: MovePacer, pauses: Pauses) -> None:
    pacer.note(1000)
    pacer.note(1001)
    pauses.is_painting = True
    block()
    pauses.is_painting = False
    block()
    block()
    assert len(pauses.seconds) == 1


@pytest.mark.parametrize("stamps_ms", [(1000, 1004), (1000, 1008), (1000, 1016, 1024)])
def test_a_mouse_that_sends_two_moves_in_most_of_a_refresh_is_paced(
    pacer: MovePacer, pauses: Pauses, stamps_ms: tuple[int, ...]
) -> None:
    for stamp_ms in stamps_ms:
        pacer.note(stamp_ms)
    block()
    assert len(pauses.seconds) == 1


@pytest.mark.parametrize("stamps_ms", [(1000, 1012, 1024), (0, 0, 0), (1000, 999)])
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


def test_a_drag_paces_its_window_until_the_button_is_released(qtbot: QtBot, pauses: Pauses) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    MovePacer(pauses.wait, window, clock=lambda: pauses.now_s)
    ways: list[float] = []
    way = PointerPath(lambda dx, _dy, _keys: ways.append(dx), window)
    window.show()
    qtbot.waitExposed(window)
    way.begin(QPointF())
    none, left = Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton

    def send(kind: QEvent.Type, x: float, stamp_ms: int) -> None:
        at = QPointF(x, 5.0)
        button, held = (none, left) if kind == QEvent.Type.MouseMove else (left, none)
        event = QMouseEvent(kind, at, at, at, button, held, Qt.KeyboardModifier.NoModifier)
        event.setTimestamp(stamp_ms)
        QApplication.sendEvent(window.windowHandle(), event)

    for number in range(1, 10):
        send(QEvent.Type.MouseMove, float(number), 1000 + number)
    block()
    assert len(pauses.seconds) == 1
    assert ways == [1.0]
    pauses.now_s += 1 / 60
    send(QEvent.Type.MouseMove, 10.0, 1010)
    send(QEvent.Type.MouseMove, 11.0, 1010)
    assert ways == [1.0], "all moves that came during the pause are taken before the report"
    block()
    assert ways == [1.0, 10.0], "the report is made ahead of the timer"
    send(QEvent.Type.MouseMove, 13.0, 1011)
    qtbot.waitUntil(lambda: ways == [1.0, 10.0, 2.0])  # by the timer: no other move comes
    count = len(pauses.seconds)
    send(QEvent.Type.MouseButtonRelease, 12.0, 1012)
    send(QEvent.Type.MouseMove, 15.0, 1013)
    block()
    assert len(pauses.seconds) == count


def test_drags_leave_nothing_connected_to_the_event_loop(pacer: MovePacer) -> None:
    dispatcher = QAbstractEventDispatcher.instance()
    assert dispatcher is not None
    signal = SIGNAL("aboutToBlock()")
    pacer.end()
    before = dispatcher.receivers(signal)
    for _ in range(3):  # a drag may begin while another one is paced
        pacer.begin(1 / 60, lambda: None)
        assert not pacer.is_pacing
        for stamp_ms in (1000, 1001, 1002):
            pacer.note(stamp_ms)
        assert dispatcher.receivers(signal) == before + 1
    pacer.end()
    assert dispatcher.receivers(signal) == before
