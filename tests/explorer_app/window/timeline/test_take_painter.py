"""Curves of what is being recorded."""

from __future__ import annotations

from fractions import Fraction

from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.tracks import Timeline
from explorer_app.window.look import theme
from explorer_app.window.timeline.take_painter import take_rows
from explorer_app.window.timeline.timeline_view import TimelineView
from explorer_app.window.timeline.track_rows import rows_of

GAIN, PSI = "noise.gain", "truncation.psi"
RISE = [(Fraction(n, 10), n / 10) for n in range(20)]


def with_gain() -> Session:
    return Session(timeline=with_key(Timeline(), GAIN, Fraction(0), 1.0))


def test_a_take_is_shown_in_its_track_or_in_a_row_below_the_others() -> None:
    session = with_gain()
    rows = rows_of(session.timeline, session)
    own, other = take_rows(rows, {GAIN: [RISE], PSI: [RISE], "noise.mode": [[(Fraction(0), "none")]]}, session)
    assert (own[0].track, own[0].top, own[1]) == (rows[0].track, rows[0].top, RISE)
    assert own[0].low <= 0.0 < 1.9 <= own[0].high
    assert other[0].track.path == PSI
    assert other[0].top == rows[0].top + rows[0].height
    assert (other[0].low, other[0].high) == (0.0, 1.9)


def test_each_pass_is_a_curve_and_a_rest_has_a_height() -> None:
    passes = [[(Fraction(1), 0.5)], [], [(Fraction(0), 0.5)]]
    shown = list(take_rows([], {PSI: passes}, Session()))
    assert [samples for _, samples in shown] == [passes[0], passes[2]]
    assert shown[0][0].low < 0.5 < shown[0][0].high


def test_the_timeline_shows_what_is_recorded_until_it_is_keys(qtbot: QtBot) -> None:
    view = TimelineView()
    qtbot.addWidget(view)
    view.resize(600, 200)
    view.show_session(Session())
    takes: dict[str, list[list[tuple[Fraction, float]]]] = {}
    view.show_recording(frozenset(), True, takes)
    view.show()

    def reds() -> int:
        image = view.viewport().grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
        left, bad = int(view.axis.left) + 4, QColor(theme.current().bad).rgb()
        places = ((x, y) for x in range(left, image.width(), 2) for y in range(view.scene.ruler_px, image.height()))
        return sum(image.pixel(x, y) == bad for x, y in places)

    before = reds()
    takes[PSI] = [[(t + 2, value) for t, value in RISE]]
    assert reds() > before + 10
    del takes[PSI]
    assert reds() == before
