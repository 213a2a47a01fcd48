"""A small timeline, where its keys are, and drags of them."""

from __future__ import annotations

from fractions import Fraction

from PySide6.QtCore import QEvent, QPoint, Qt

from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.tracks import LINEAR, Timeline
from explorer_app.window.timeline.timeline_view import TimelineView
from explorer_app.window.timeline.track_rows import times_of
from tests.helpers.panels import LEFT, NO_KEYS, Edits, mouse

MOVE, PRESS, RELEASE = QEvent.Type.MouseMove, QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease
PSI, GAIN = "truncation.psi", "noise.gain"


def piece() -> Session:
    """Return a session with keys of psi at 0, 4 and 8 s, of the noise at 2 s, at 10 frames a second."""
    timeline = Timeline(fps=Fraction(10))
    for t, value in ((0, 0.0), (4, 1.0), (8, 0.5)):
        timeline = with_key(timeline, PSI, Fraction(t), value, LINEAR)
    return Session(timeline=with_key(timeline, GAIN, Fraction(2), 1.0))


def times(edits: Edits, path: str = PSI) -> list[Fraction]:
    """Return the times of a track's keys in seconds, none if there is no such track."""
    track = edits.session.timeline.track(path)
    return [] if track is None else [edits.session.timeline.seconds(key) for key in track.keys]


def at(view: TimelineView, path: str, t: float) -> QPoint:
    """Return the place of a track's key at a time in seconds."""
    row = next(row for row in view.rows if row.track.path == path)
    return view.scene.key_place(row, times_of(view.timeline, row.track).index(float(t))).toPoint()


def drag(view: TimelineView, *places: QPoint, keys: Qt.KeyboardModifier = NO_KEYS, release: bool = True) -> None:
    """Press at the first place, move over the others, and release."""
    mouse(view.viewport(), PRESS, places[0], LEFT, keys)
    for place in places[1:]:
        mouse(view.viewport(), MOVE, place, LEFT, keys)
    if release:
        mouse(view.viewport(), RELEASE, places[-1], LEFT, keys)


def shift(view: TimelineView, place: QPoint, seconds: float) -> QPoint:
    """Return a place some seconds to the right."""
    return QPoint(round(place.x() + seconds * view.axis.scale), place.y())
