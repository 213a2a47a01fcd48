"""The rows of the timeline: names, heights and places of tracks, the range of their values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetrics

from explorer_app.session.parameter_names import parameter_name
from explorer_app.session.parameters import parameter
from explorer_app.session.session import Session
from explorer_app.session.timeline.easing import NAMES
from explorer_app.session.timeline.evaluation import value_at
from explorer_app.session.tracks import STATE, WALK, Timeline, Track
from explorer_app.window.look import theme
from gpu_backend import dataclass

WAYS = {
    "w-linear": "straight in w",
    "w-cubic": "cubic in w",
    "w-slerp": "arc in w",
    "z-linear": "straight in z",
    "z-slerp": "arc in z",
}
"""What ways through latents are called."""


@dataclass(frozen=True, slots=True)
class TrackRow:
    """A displayed track.

    Attributes
    ----------
    top, height
        In px from the first row.
    colour
        Place in the list, which gives the colour.
    low, high
        Values at the lower and upper edge of a curve.
    has_curve, has_pictures
        Whether its values are numbers, or pictures.
    """

    track: Track
    name: str
    detail: str
    top: int
    height: int
    colour: int
    low: float = 0.0
    high: float = 1.0
    has_curve: bool = False
    has_pictures: bool = False

    def y(self, value: float) -> float:
        """Return the height of a value in px from the first row; values outside stay in the row."""
        share = (value - self.low) / (self.high - self.low)
        pad = theme.px(7)
        return self.top + pad + (self.height - 2 * pad) * (1.0 - min(max(share, -0.1), 1.1))

    def value(self, y: float) -> float:
        """Return the value at a height."""
        pad = theme.px(7)
        return self.low + (1.0 - (y - self.top - pad) / (self.height - 2 * pad)) * (self.high - self.low)


def rows_of(timeline: Timeline, session: Session) -> list[TrackRow]:
    """Return the rows of a timeline from top to bottom."""
    rows: list[TrackRow] = []
    top = 0
    for place, track in enumerate(timeline.tracks):
        has_pictures = track.path in (STATE, "pinned_blend")
        height = theme.px(42 if has_pictures else 36)
        is_number = not has_pictures and track.path != WALK and parameter(track.path).kind in _NUMBERS
        low, high = _range(track) if is_number else (0.0, 1.0)
        name = parameter_name(track.path, session)
        detail = _detail(track)
        rows.append(
            TrackRow(track, name, detail, top, height, place, low, high, is_number and bool(track.keys), has_pictures)
        )
        top += height
    return rows


def row_of(path: str, name: str, top: int, low: float, high: float) -> TrackRow:
    """Return a row of a parameter that has no track yet, with a curve between two values."""
    low, high = _widened(low, high)
    return TrackRow(Track(path), name, "", top, theme.px(36), 0, low, high, has_curve=True)


_NUMBERS = ("number", "angle", "integer")
_UNWRITTEN = (STATE, WALK, "pinned_blend")
"""Tracks without a value in words."""


def value_text(timeline: Timeline, track: Track, t: Fraction) -> str:
    """Return the value of a track at a time as a person reads it; empty for whole pictures."""
    if track.path in _UNWRITTEN or not track.keys:
        return ""  # whole pictures between keys would take a while to compute
    return shown_value(track, value_at(timeline, track.path, float(t)))


def shown_value(track: Track, value: Any) -> str:
    """Return a value of a track as a person reads it; empty for whole pictures."""
    if track.path in _UNWRITTEN:
        return ""
    row = parameter(track.path)
    return "" if row.kind in ("point", "weights", "strengths") else row.shown(value)


def times_of(timeline: Timeline, track: Track) -> list[float]:
    """Return the times of a track's keys in seconds, kept with the track."""
    key = ("times", timeline.grid)
    times = track.derived.get(key)
    if times is None:
        times = track.derived[key] = [float(timeline.seconds(item)) for item in track.keys]
    assert isinstance(times, list)
    return times


def visible_keys(times: Sequence[float], start: float, end: float, least_gap: float) -> list[int]:
    """Return which keys to draw: keys between two times; of several within `least_gap` seconds, only one."""
    first, last = bisect_left(times, start), bisect_right(times, end)
    if last - first < 256:
        return list(range(first, last))
    chosen: list[int] = []
    index = first
    while index < last:
        chosen.append(index)
        index = max(index + 1, bisect_left(times, times[index] + least_gap, index, last))
    return chosen


def _range(track: Track) -> tuple[float, float]:
    """Return the range of a curve: what its keys cover, widened; that of its handles is not counted."""
    known = track.derived.get("range")
    if known is None:
        values = [float(key.value or 0.0) for key in track.keys] or [0.0]
        known = track.derived["range"] = _widened(min(values), max(values))
    low, high = known
    return float(low), float(high)


def _widened(low: float, high: float) -> tuple[float, float]:
    """Return a range that is not empty."""
    return (low, high) if high - low >= 1e-9 else (low - 0.5, high + 0.5)


def _detail(track: Track) -> str:
    """Return the second line of a track's label."""
    if track.is_muted:
        return "muted"
    if track.path == WALK:
        return f"{float(track.period):g} s · radius {track.radius:g}"
    count = len(track.keys)
    keys = f"{count:,} key{'' if count == 1 else 's'}"
    if track.path in (STATE, "pinned_blend"):
        return f"{keys} · {WAYS[track.way]}"
    kinds = {key.easing.kind for key in track.keys[:64]}
    easing = NAMES[next(iter(kinds))].lower() if len(kinds) == 1 else "mixed" if kinds else ""
    outside = {"hold": "", "loop": " · repeats", "mirror": " · back and forth"}[track.outside]
    return f"{keys} · {easing}{outside}" if count else "no keys"


def row_at(rows: Sequence[TrackRow], y: float) -> TrackRow | None:
    """Return the row at a height in px from the first row."""
    return next((row for row in rows if row.top <= y < row.top + row.height), None)


def fitted_name(row: TrackRow, metrics: QFontMetrics, room_px: float) -> str:
    """Return a track's name in so many px, cut in the middle: style channels of a layer differ at the end."""
    return metrics.elidedText(row.name, Qt.TextElideMode.ElideMiddle, int(room_px))
