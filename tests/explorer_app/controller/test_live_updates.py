"""A thousand events between two frames are one request and one notification."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from explorer_app.controller.live_updates import (
    PATIENCE_MS,
    REFRESHES_PER_PANEL_UPDATE,
    LiveUpdates,
    refresh_ms,
    refresh_s,
)

TELL_MS = REFRESHES_PER_PANEL_UPDATE * refresh_ms()


class Heard:
    """What was asked and told, and a clock that a test winds."""

    def __init__(self) -> None:
        self.calls = self.told = 0
        self.now_s = 0.0
        self.live = LiveUpdates(self._ask, self._tell, lambda: self.now_s)

    def _ask(self) -> None:
        self.calls += 1

    def _tell(self) -> None:
        self.told += 1

    def tick(self, ms: float) -> None:
        """Let so much time pass, and the timer fire."""
        self.now_s += ms / 1000.0
        self.live._advance()


@pytest.fixture
def heard(qapp: object) -> Iterator[Heard]:
    heard = Heard()
    yield heard
    heard.live.stop()


def test_the_first_change_is_requested_and_reported_at_once(heard: Heard) -> None:
    heard.live.changed()
    assert (heard.calls, heard.told) == (1, 1)


def test_a_thousand_changes_between_two_frames_are_one_request_and_one_notification(heard: Heard) -> None:
    heard.live.changed()
    for _ in range(1000):
        heard.live.changed()
    heard.tick(TELL_MS)
    assert (heard.calls, heard.told) == (2, 1), "the frame is not there yet"
    heard.live.frame_shown()
    heard.live.frame_shown()
    assert (heard.calls, heard.told) == (2, 2)


def test_a_change_near_the_end_of_a_tick_does_not_wait_for_its_timer(heard: Heard) -> None:
    heard.live.changed()
    heard.now_s += refresh_s() / 2
    heard.live.changed()
    assert heard.calls == 1
    heard.now_s += 0.3 * refresh_s()
    heard.live.changed()
    assert heard.calls == 2


def test_changes_that_come_early_by_turns_start_no_timer_and_no_more_requests_than_refreshes(heard: Heard) -> None:
    for number in range(60):
        heard.now_s = number * refresh_s() - (0.003 if number % 2 else 0.0)
        heard.live.changed()
        assert not heard.live._tick.isActive()
    assert heard.calls == 60
    for number in range(1000):  # a thousand a second, which nothing paces
        heard.now_s = 1.0 + number / 1000.0
        heard.live.changed()
        if heard.live._tick.isActive() and heard.now_s >= heard.live._tick_end_s:
            heard.live._advance()
    assert heard.calls <= 60 + 61


def test_panels_are_updated_with_a_frame_while_frames_come(heard: Heard) -> None:
    heard.live.changed()
    heard.live.frame_shown()
    heard.now_s += TELL_MS / 1000.0
    heard.live.changed()
    assert (heard.calls, heard.told) == (2, 1)
    heard.live.frame_shown()
    assert heard.told == 2


def test_the_newest_change_is_requested_by_the_timer(heard: Heard, qtbot: QtBot) -> None:
    heard.live.changed()
    heard.live.changed()
    qtbot.waitUntil(lambda: heard.calls == 2)


def test_panels_hear_no_more_often_than_they_can_be_read_while_frames_come_quicker(heard: Heard) -> None:
    for _ in range(TELL_MS):
        heard.live.changed()
        heard.tick(1.0)
        heard.live.frame_shown()
    assert heard.told == 2


@pytest.mark.parametrize(("hz", "ms"), [(60.0, 16), (59.94, 16), (144.0, 6), (1000.0, 4), (0.0, 16)])
def test_requests_follow_the_refresh_rate_of_the_screen(heard: Heard, hz: float, ms: int) -> None:
    heard.live.follow_screen(hz)
    heard.live.changed()
    heard.live.changed()
    assert heard.live._tick.interval() == refresh_ms(hz) == ms


def test_a_change_that_was_answered_too_soon_is_reported_later(heard: Heard) -> None:
    heard.live.changed()
    heard.live.changed()
    heard.tick(1.0)
    heard.live.frame_shown()
    assert heard.told == 1
    heard.tick(TELL_MS)
    assert heard.told == 2


def test_panels_do_not_wait_for_a_slow_frame_for_ever(heard: Heard) -> None:
    heard.live.changed()
    heard.live.changed()
    heard.tick(PATIENCE_MS - 1)
    assert heard.told == 1
    heard.tick(1)
    assert heard.told == 2


def test_stopped_updates_neither_request_nor_notify(heard: Heard) -> None:
    heard.live.changed()
    heard.live.changed()
    heard.live.stop()
    heard.tick(PATIENCE_MS)
    heard.live.frame_shown()
    assert (heard.calls, heard.told) == (1, 1)
    assert not heard.live._tick.isActive()
    assert not heard.live._late.isActive()


def test_changes_at_the_pace_of_the_screen_start_no_timer_each(heard: Heard) -> None:
    for _ in range(10):
        heard.live.changed()
        assert not heard.live._tick.isActive()
        heard.live.frame_shown()
        heard.now_s += 1 / 60
    assert heard.calls == 10


def test_panels_show_the_last_change_without_another_frame(heard: Heard) -> None:
    heard.live.changed()
    heard.now_s += 1 / 60
    heard.live.changed()
    heard.live.frame_shown()
    assert (heard.told, heard.live._waits_for_panels) == (1, True)
    heard.now_s += PATIENCE_MS / 1000.0
    heard.live._late.timeout.emit()
    assert heard.told == 2


def test_panels_that_a_frame_has_updated_meanwhile_are_updated_an_interval_later(heard: Heard) -> None:
    heard.live.changed()
    heard.now_s += 0.095
    heard.live.changed()
    heard.now_s += 0.002
    heard.live.frame_shown()
    heard.live.changed()
    heard.now_s += 0.09
    heard.live._late.timeout.emit()
    assert (heard.told, heard.live._waits_for_panels) == (2, True)
    heard.now_s += PATIENCE_MS / 1000.0
    heard.live._late.timeout.emit()
    assert (heard.told, heard.live._waits_for_panels) == (3, False)


def test_no_timer_runs_while_nothing_changes(heard: Heard) -> None:
    heard.live.changed()
    heard.tick(TELL_MS)
    assert not heard.live._tick.isActive()
    assert not heard.live._late.isActive()
