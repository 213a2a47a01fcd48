"""A small timeline, and where its keys are."""

from __future__ import annotations

from fractions import Fraction

from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.tracks import LINEAR, Timeline
from tests.helpers.panels import Edits

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
