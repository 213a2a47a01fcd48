"""A thousand events of a pointer between two ticks are one way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.window.gestures.input_age import InputAge
from explorer_app.window.gestures.pointer_path import CTRL, SHIFT, PointerPath

NONE = Qt.KeyboardModifier.NoModifier


def moved(x: float, keys: Qt.KeyboardModifier = NONE) -> QMouseEvent:
    at = QPointF(x, 0.0)
    left = Qt.MouseButton.LeftButton
    return QMouseEvent(QEvent.Type.MouseMove, at, at, Qt.MouseButton.NoButton, left, keys)


class Follower(QWidget):
    """A widget that hands its moves on and counts them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.ways: list[tuple[float, int]] = []
        self.way = PointerPath(lambda dx, dy, keys: self.ways.append((dx, keys)), self)
        self.way.begin(QPointF())
        self.moves = self.releases = self.menus = 0

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        self.way.begin(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        self.moves += 1
        self.way.move(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        self.way.flush()
        self.releases += 1

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802 - Qt's name
        self.menus += 1


@pytest.fixture
def follower(qapp: object) -> Follower:
    return Follower()


def test_the_first_event_is_followed_at_once_and_a_thousand_after_it_as_one(follower: Follower, qtbot: QtBot) -> None:
    for x in range(1, 1002):
        follower.way.move(moved(float(x)))
    assert follower.ways == [(1.0, 0)]
    qtbot.waitUntil(lambda: len(follower.ways) == 2)
    assert follower.ways == [(1.0, 0), (1000.0, 0)]


def test_moves_left_at_the_release_are_applied(follower: Follower) -> None:
    for x in (1.0, 2.0, 5.0):
        follower.way.move(moved(x))
    follower.way.flush()
    follower.way.flush()
    assert follower.ways == [(1.0, 0), (4.0, 0)]


def test_a_key_counts_for_the_way_that_it_was_held(follower: Follower) -> None:
    follower.way.move(moved(1.0))
    follower.way.move(moved(3.0))
    follower.way.move(moved(4.0, Qt.KeyboardModifier.ShiftModifier))
    follower.way.move(moved(6.0, Qt.KeyboardModifier.ControlModifier))
    follower.way.flush()
    assert follower.ways == [(1.0, 0), (2.0, 0), (1.0, SHIFT), (2.0, CTRL)]


def test_a_pointer_that_is_at_rest_follows_nothing(follower: Follower) -> None:
    follower.way.move(moved(0.0))
    follower.way.flush()
    assert follower.ways == []
    assert not follower.way._tick.isActive()


def send(
    window: QWidget,
    kind: QEvent.Type,
    x: float,
    *,
    held: bool = True,
    keys: Qt.KeyboardModifier = NONE,
    stamp_ms: int = 0,
    button: Qt.MouseButton = Qt.MouseButton.LeftButton,
) -> None:
    """Send an event the way that the system's take: to the native window."""
    at = QPointF(x, 20.0)
    left, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton
    event = QMouseEvent(
        kind,
        at,
        at,
        QPointF(window.mapToGlobal(at.toPoint())),
        none if kind == QEvent.Type.MouseMove else button,
        left if held else none,
        keys,
    )
    event.setTimestamp(stamp_ms)
    QApplication.sendEvent(window.windowHandle(), event)


@pytest.fixture
def inside(qtbot: QtBot) -> Iterator[Follower]:
    """A follower that does not lie in the corner of its window."""
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(1200, 100)
    follower = Follower(window)
    follower.setGeometry(10, 10, 1180, 80)
    window.show()
    qtbot.waitExposed(window)
    yield follower
    window.close()


def test_no_move_of_a_drag_is_dispatched_and_a_thousand_are_two_ways(inside: Follower) -> None:
    window = inside.window()
    send(window, QEvent.Type.MouseButtonPress, 20.0)
    inside.way._tick.setInterval(60_000)
    for x in range(21, 1021):
        send(window, QEvent.Type.MouseMove, float(x))
    assert (inside.moves, inside.ways) == (0, [(1.0, 0)])
    inside.way.flush()  # as the tick does
    assert (inside.moves, inside.ways) == (0, [(1.0, 0), (999.0, 0)])


def test_a_key_pressed_during_a_drag_counts_from_the_next_move_on(inside: Follower) -> None:
    window = inside.window()
    send(window, QEvent.Type.MouseButtonPress, 20.0)
    inside.way._tick.setInterval(60_000)
    for x in (21.0, 25.0):
        send(window, QEvent.Type.MouseMove, x)
    shift = Qt.KeyboardModifier.ShiftModifier
    QApplication.sendEvent(window.windowHandle(), QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Shift, shift))
    send(window, QEvent.Type.MouseMove, 26.0, keys=shift)
    inside.way.flush()
    assert inside.ways == [(1.0, 0), (4.0, 0), (1.0, SHIFT)]


def test_a_key_pressed_in_another_window_counts_from_the_next_report_on(inside: Follower) -> None:
    window = inside.window()
    send(window, QEvent.Type.MouseButtonPress, 20.0)
    inside.way._tick.setInterval(60_000)
    shift = Qt.KeyboardModifier.ShiftModifier
    for x, keys in ((21.0, NONE), (25.0, NONE), (26.0, shift)):
        send(window, QEvent.Type.MouseMove, x, keys=keys)
    inside.way.flush()
    send(window, QEvent.Type.MouseMove, 28.0, keys=shift)
    inside.way.flush()
    assert inside.ways == [(1.0, 0), (5.0, 0), (2.0, SHIFT)]


def test_the_age_of_the_newest_absorbed_event_is_reported_once_for_each_way(inside: Follower) -> None:
    window = inside.window()
    ages: list[float] = []
    InputAge(ages.append, window, clock=lambda: 100.0)
    send(window, QEvent.Type.MouseButtonPress, 20.0)
    inside.way._tick.setInterval(60_000)
    for x, stamp_ms in ((21.0, 99_000), (22.0, 98_000), (23.0, 98_500)):
        send(window, QEvent.Type.MouseMove, x, stamp_ms=stamp_ms)
    assert ages == [0.0]
    inside.way.flush()
    inside.way.flush()
    assert ages == [0.0, pytest.approx(0.5)]


def test_a_release_follows_the_way_up_to_it_and_later_moves_reach_the_widget(inside: Follower) -> None:
    window = inside.window()
    send(window, QEvent.Type.MouseButtonPress, 20.0)
    inside.way._tick.setInterval(60_000)
    for x in (21.0, 25.0, 30.0):
        send(window, QEvent.Type.MouseMove, x)
    send(window, QEvent.Type.MouseButtonRelease, 30.0, held=False)
    assert inside.ways == [(1.0, 0), (9.0, 0)]
    inside.setMouseTracking(True)
    moves = inside.moves
    for x in (40.0, 50.0, 60.0):
        send(window, QEvent.Type.MouseMove, x, held=False)
    assert inside.moves == moves + 3


def open_menu(window: QWidget) -> None:
    at = QPoint(30, 20)
    QApplication.sendEvent(
        window.windowHandle(), QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, window.mapToGlobal(at))
    )


@pytest.mark.parametrize("button", [Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton], ids=["right", "middle"])
def test_other_buttons_and_menus_wait_for_the_end_of_a_drag(inside: Follower, button: Qt.MouseButton) -> None:
    window = inside.window()
    send(window, QEvent.Type.MouseButtonPress, 20.0)
    send(window, QEvent.Type.MouseMove, 21.0)
    send(window, QEvent.Type.MouseButtonPress, 21.0, button=button)
    open_menu(window)
    send(window, QEvent.Type.MouseButtonRelease, 21.0, button=button)
    send(window, QEvent.Type.MouseMove, 30.0)
    assert (inside.releases, inside.menus, inside.moves) == (0, 0, 0)
    send(window, QEvent.Type.MouseButtonRelease, 30.0, held=False)
    assert (inside.releases, inside.ways) == (1, [(1.0, 0), (9.0, 0)])
    open_menu(window)
    assert inside.menus == 1


def test_a_drag_whose_release_was_lost_ends_with_the_next_move(inside: Follower) -> None:
    window = inside.window()
    send(window, QEvent.Type.MouseButtonPress, 20.0)
    send(window, QEvent.Type.MouseMove, 25.0)
    send(window, QEvent.Type.MouseMove, 200.0, held=False)
    assert (inside.releases, inside.ways) == (1, [(5.0, 0)])
    inside.setMouseTracking(True)
    moves = inside.moves
    send(window, QEvent.Type.MouseMove, 210.0, held=False)
    assert inside.moves == moves + 1
