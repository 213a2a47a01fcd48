"""A thousand events of a pointer between two ticks are one way."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from pytestqt.qtbot import QtBot

from explorer_app.window.gestures.pointer_way import CTRL, SHIFT, PointerWay

NONE = Qt.KeyboardModifier.NoModifier


def moved(x: float, keys: Qt.KeyboardModifier = NONE) -> QMouseEvent:
    at = QPointF(x, 0.0)
    left = Qt.MouseButton.LeftButton
    return QMouseEvent(QEvent.Type.MouseMove, at, at, Qt.MouseButton.NoButton, left, keys)


class Follower(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.ways: list[tuple[float, int]] = []
        self.way = PointerWay(lambda dx, dy, keys: self.ways.append((dx, keys)), self)
        self.way.begin(QPointF())


@pytest.fixture
def follower(qapp: object) -> Follower:
    return Follower()


def test_the_first_event_is_followed_at_once_and_a_thousand_after_it_as_one(follower: Follower, qtbot: QtBot) -> None:
    for x in range(1, 1002):
        follower.way.move(moved(float(x)))
    assert follower.ways == [(1.0, 0)]
    qtbot.waitUntil(lambda: len(follower.ways) == 2)
    assert follower.ways == [(1.0, 0), (1000.0, 0)]


def test_what_is_left_at_the_end_is_followed(follower: Follower) -> None:
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


def test_a_pointer_that_stands_still_follows_nothing(follower: Follower) -> None:
    follower.way.move(moved(0.0))
    follower.way.flush()
    assert follower.ways == []
    assert not follower.way._tick.isActive()
