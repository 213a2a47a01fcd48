"""What a timeline shows, and where: places of tracks, keys and handles, and what lies at a place."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF

from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import KeyName
from explorer_app.session.tracks import Timeline
from explorer_app.window.look import theme
from explorer_app.window.timeline.time_axis import RulerUnit, TimeAxis
from explorer_app.window.timeline.track_rows import TrackRow, row_at, times_of

RULER_PX, LOOP_PX = 26, 5
"""Heights of the ruler and of the bar of the loop in it."""

GRAB_PX = 6
"""Reach of a press."""


@dataclass(frozen=True)
class Scene:
    """A timeline as it is shown now; places are in px of the viewport.

    Attributes
    ----------
    scroll
        How far the rows are scrolled, in px.
    selection
        Names of the selected keys.
    """

    timeline: Timeline
    session: Session
    rows: Sequence[TrackRow]
    axis: TimeAxis
    scroll: int
    selection: Collection[KeyName]
    unit: RulerUnit
    armed: Collection[str]
    is_recording: bool

    @property
    def ruler_px(self) -> int:
        """Height of the ruler."""
        return theme.px(RULER_PX)

    @property
    def selected_span(self) -> tuple[float, float]:
        """The x of the first and of the last selected key."""
        times = [t for _, t in self.selection]
        return self.axis.x(float(min(times))), self.axis.x(float(max(times)))

    def y(self, row: TrackRow) -> float:
        """Return the y of a row's upper edge."""
        return self.ruler_px + row.top - self.scroll

    def row_at(self, place: QPointF) -> TrackRow | None:
        """Return the row at a place."""
        return row_at(self.rows, place.y() - self.ruler_px + self.scroll)

    def arm_place(self, row: TrackRow) -> QPointF:
        """Return the centre of the dot that arms a track for recording."""
        return QPointF(theme.px(11), self.y(row) + theme.px(11))

    def key_place(self, row: TrackRow, index: int) -> QPointF:
        """Return where a key is painted."""
        x = self.axis.x(times_of(self.timeline, row.track)[index])
        if row.has_curve:
            return QPointF(x, row.y(float(row.track.keys[index].value or 0.0)) + self.y(row) - row.top)
        return QPointF(x, self.y(row) + row.height / 2)

    def handle_places(self, row: TrackRow, index: int) -> list[tuple[int, int, QPointF, QPointF]]:
        """Return the handles of a key: (segment, 0 or 1, place of the key, place of the handle).

        The first handle of the way that begins at the key, and the second of the way that ends there.
        """
        keys = row.track.keys
        times = times_of(self.timeline, row.track)
        found = []
        for segment, which in ((index, 0), (index - 1, 1)):
            if not 0 <= segment < len(keys) - 1 or keys[segment].easing.kind != "bezier":
                continue
            x1, y1, x2, y2 = keys[segment].easing.handles
            share, rise = ((x1, y1), (x2, y2))[which]
            start, end = float(keys[segment].value or 0.0), float(keys[segment + 1].value or 0.0)
            span = end - start if end != start else row.high - row.low
            t = times[segment] + share * (times[segment + 1] - times[segment])
            offset = self.y(row) - row.top
            handle = QPointF(self.axis.x(t), row.y(start + rise * span) + offset)
            value = float(keys[index].value or 0.0)
            found.append((segment, which, QPointF(self.axis.x(times[index]), row.y(value) + offset), handle))
        return found

    def key_near(self, place: QPointF) -> KeyName | None:
        """Return the key at a place, None if there is none within reach."""
        row = self.row_at(place)
        if row is None:
            return None
        reach = theme.px(17 if row.has_pictures else GRAB_PX)
        best: tuple[float, int] | None = None
        times = times_of(self.timeline, row.track)
        at = self.axis.start + (place.x() - self.axis.left) / self.axis.scale
        first = bisect_left(times, at - reach / self.axis.scale)
        for index in range(first, len(times)):
            distance = abs(self.axis.x(times[index]) - place.x())
            if times[index] > at + reach / self.axis.scale:
                break
            if row.has_curve and abs(self.key_place(row, index).y() - place.y()) > theme.px(9):
                continue
            if best is None or distance < best[0]:
                best = distance, index
        if best is None:
            return None
        return row.track.path, self.timeline.seconds(row.track.keys[best[1]])

    def names_in(self, box: QRectF) -> frozenset[KeyName]:
        """Return the keys in a box."""
        names = set()
        for row in self.rows:
            top = self.y(row)
            if top + row.height < box.top() or top > box.bottom():
                continue
            for index, key in enumerate(row.track.keys):
                if box.contains(self.key_place(row, index)):
                    names.add((row.track.path, self.timeline.seconds(key)))
        return frozenset(names)

    def handle_at(self, place: QPointF) -> tuple[TrackRow, int, int] | None:
        """Return the handle at a place: its row, the segment, and which end it shapes."""
        for row in self.rows:
            if not row.has_curve:
                continue
            for index, key in enumerate(row.track.keys):
                if (row.track.path, self.timeline.seconds(key)) not in self.selection:
                    continue
                for segment, which, _, handle in self.handle_places(row, index):
                    if is_near(place, handle):
                        return row, segment, which
        return None


def is_near(place: QPointF, target: QPointF) -> bool:
    """Return whether a press at a place hits a small target."""
    return (place - target).manhattanLength() <= theme.px(8)
