"""How long input events waited."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QFocusEvent, QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.window.gestures.input_age import InputAge


class Clock:
    def __init__(self) -> None:
        self.now_s = 500.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ages() -> list[float]:
    return []


@pytest.fixture
def age(ages: list[float], clock: Clock) -> InputAge:
    return InputAge(ages.append, clock=clock)


def test_the_quickest_event_came_at_once_and_others_are_compared_with_it(age: InputAge, clock: Clock) -> None:
    for stamp_s, now_s, waited_s in ((1000.0, 500.0, 0.0), (1000.1, 500.13, 0.03), (1000.2, 500.2, 0.0)):
        clock.now_s = now_s
        assert age.age_s(stamp_s) == pytest.approx(waited_s, abs=1e-4)


def test_a_quicker_event_sets_what_at_once_is(age: InputAge, clock: Clock) -> None:
    clock.now_s = 500.05
    assert age.age_s(1000.0) == 0.0
    clock.now_s = 500.1
    assert age.age_s(1000.1) == 0.0
    clock.now_s = 500.22
    assert age.age_s(1000.2) == pytest.approx(0.02, abs=1e-4)


def test_a_clock_of_events_that_runs_slow_is_followed(age: InputAge, clock: Clock) -> None:
    for minute in range(60):
        clock.now_s = 500.0 + 60 * minute
        assert age.age_s(1000.0 + 60 * minute * (1 - 5e-5)) < 0.005


def test_a_clock_of_events_that_was_reset_starts_over(age: InputAge, clock: Clock) -> None:
    age.age_s(4_294_967.0)
    clock.now_s = 501.0
    assert age.age_s(0.7) == 0.0


def test_input_to_a_window_is_reported_and_nothing_is_held_back(qtbot: QtBot, age: InputAge, ages: list[float]) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    age.watch(widget)
    event = QMouseEvent(
        QEvent.Type.MouseButtonPress,
        QPointF(1, 1),
        QPointF(1, 1),
        Qt.MouseButton.LeftButton,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(widget, event)
    assert ages == []  # nobody stamped it
    event.setTimestamp(4_000)
    QApplication.sendEvent(widget, event)
    QApplication.sendEvent(widget, QFocusEvent(QEvent.Type.FocusIn))
    assert ages == [0.0]
    age.watch(None)
