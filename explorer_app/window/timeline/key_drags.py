"""Gestures of the mouse on the timeline: each moves what was there when it began, so that nothing adds up."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

from PySide6.QtCore import QPointF, QRectF, Qt

from explorer_app.session.timeline.easing import as_bezier
from explorer_app.session.timeline.edits import (
    KeyName,
    copied_keys,
    moved_keys,
    pasted_keys,
    snapped,
    span_of,
    stretched_keys,
    with_track,
)
from explorer_app.session.tracks import MAX_SECONDS, Easing, Timeline
from explorer_app.window.look import theme
from explorer_app.window.timeline.time_axis import TimeAxis
from explorer_app.window.timeline.timeline_scene import Scene
from explorer_app.window.timeline.track_rows import TrackRow, times_of

STILL_PX = 3
"""A key that is moved by less stays where it is: the press selected it."""

Modifiers = Qt.KeyboardModifier


class EditableView(Protocol):
    """What gestures and commands on keys need of the view; its signals are described there."""

    timeline: Timeline
    time: Fraction
    axis: TimeAxis
    selection: frozenset[KeyName]
    rows: list[TrackRow]
    sought: Any
    cancelled: Any
    refused: Any

    @property
    def scene(self) -> Scene:
        """What is painted now."""
        ...

    @property
    def tracks_area(self) -> QRectF:
        """Where keys are seen, in px."""
        ...

    def select(self, names: frozenset[KeyName]) -> None:
        """Select keys."""
        ...

    def scroll_to(self, axis: TimeAxis) -> None:
        """Show another part of the time."""
        ...

    def emit_change(self, timeline: Timeline, label: str, final: bool = True) -> None:
        """Show another timeline and report it."""
        ...


class Drag(Protocol):
    """A gesture under way. `is_edit` tells whether it changes the timeline."""

    is_edit: bool

    def move(self, place: QPointF, modifiers: Modifiers) -> None:
        """Follow the pointer."""
        ...

    def end(self, place: QPointF, modifiers: Modifiers) -> None:
        """Take the pointer's last place."""
        ...

    def cancel(self) -> None:
        """Bring back what was before."""
        ...


class SeekDrag:
    """Moves the playhead."""

    is_edit = False

    def __init__(self, view: EditableView) -> None:
        self._view, self._before = view, view.time

    def move(self, place: QPointF, modifiers: Modifiers) -> None:
        """Put the playhead under the pointer."""
        self._view.sought.emit(self._at(place, modifiers), False)

    def end(self, place: QPointF, modifiers: Modifiers) -> None:
        """Leave the playhead there."""
        self._view.sought.emit(self._at(place, modifiers), True)

    def cancel(self) -> None:
        """Put the playhead back."""
        self._view.sought.emit(self._before, True)

    def _at(self, place: QPointF, modifiers: Modifiers) -> Fraction:
        t = self._view.axis.t(place.x())
        return t if modifiers & Modifiers.AltModifier else _on_frame(self._view.timeline, t)


class LoopDrag:
    """Draws the range that plays, or moves its nearer end."""

    is_edit = True

    def __init__(self, view: EditableView, place: QPointF) -> None:
        self._view = view
        self._before = view.timeline
        at = _on_frame(view.timeline, view.axis.t(place.x()))
        first, last = view.timeline.playing_range
        reach = Fraction(theme.px(6)) / Fraction(view.axis.scale)
        self._fixed = last if abs(at - first) <= reach else first if abs(at - last) <= reach else at
        self._loop = view.timeline.loop
        self._start = place
        self._has_moved = False

    def move(self, place: QPointF, modifiers: Modifiers) -> None:
        """Draw the range between where the gesture began and the pointer; a click leaves it as it is."""
        if self._has_moved or abs(place.x() - self._start.x()) >= theme.px(STILL_PX):
            self._show(place, final=False)

    def end(self, place: QPointF, modifiers: Modifiers) -> None:
        """Leave the range."""
        if self._has_moved:
            self._show(place, final=True)

    def cancel(self) -> None:
        """Bring the former range back."""
        self._view.cancelled.emit()

    def _show(self, place: QPointF, *, final: bool) -> None:
        at = min(_on_frame(self._before, self._view.axis.t(place.x())), self._before.end)
        if at != self._fixed:
            self._has_moved = True
            self._loop = (min(at, self._fixed), max(at, self._fixed))
        elif not final:
            return  # no range is empty: the last one stays
        self._view.emit_change(replace(self._before, loop=self._loop), "Loop", final)


class KeyDrag:
    """Moves the selected keys, in time or in value, whichever way the pointer goes first; Ctrl or Alt copies them.

    `drops` is the key that a press without a move takes out of the selection.
    """

    is_edit = True

    def __init__(
        self, view: EditableView, name: KeyName, place: QPointF, *, is_copy: bool, drops: KeyName | None = None
    ) -> None:
        self._view, self._name, self._start, self._is_copy, self._drops = view, name, place, is_copy, drops
        self._before: Timeline = view.timeline
        self._chosen = view.selection
        self._rows = {row.track.path: row for row in view.rows}
        self._axis = ""

    def move(self, place: QPointF, modifiers: Modifiers) -> None:
        """Move the keys with the pointer."""
        self._show(place, modifiers, final=False)

    def end(self, place: QPointF, modifiers: Modifiers) -> None:
        """Leave the keys there; a press without a move only selected them."""
        if self._axis:
            self._show(place, modifiers, final=True)
        elif self._drops is not None:
            self._view.selection = self._chosen - {self._drops}

    def cancel(self) -> None:
        """Bring the keys back."""
        if self._axis:
            self._view.cancelled.emit()
        self._view.selection = self._chosen

    def _show(self, place: QPointF, modifiers: Modifiers, *, final: bool) -> None:
        way = place - self._start
        if not self._axis:
            if max(abs(way.x()), abs(way.y())) < theme.px(STILL_PX):
                return
            can_rise = self._rows[self._name[0]].has_curve and not self._is_copy
            self._axis = "value" if can_rise and abs(way.y()) > abs(way.x()) else "time"
        if self._axis == "value":
            row = self._rows[self._name[0]]
            raised = row.value(place.y()) - row.value(self._start.y())
            chosen = [name for name in self._chosen if name[0] == self._name[0]]
            timeline, _ = moved_keys(self._before, chosen, Fraction(0), raised=raised)
            names = self._chosen
        else:
            timeline, names = self._moved(way.x(), modifiers)
        self._view.selection = names
        self._view.emit_change(timeline, "Copy keys" if self._is_copy else "Move keys", final)

    def _moved(self, by_px: float, modifiers: Modifiers) -> tuple[Timeline, frozenset[KeyName]]:
        at = self._name[1] + Fraction(round(by_px / self._view.axis.scale * 1000), 1000)
        is_free = bool(modifiers & Modifiers.AltModifier) and not self._is_copy
        to = at if is_free else snapped(self._before, at)
        if self._is_copy:
            first, last = span_of(self._chosen)
            clip = copied_keys(self._before, self._chosen)
            latest = max(MAX_SECONDS - (last - first), Fraction(0))
            return pasted_keys(self._before, clip, min(max(Fraction(0), first + to - self._name[1]), latest))
        return moved_keys(self._before, self._chosen, to - self._name[1])


class StretchDrag:
    """Moves one end of the selected keys, and the keys between in proportion."""

    is_edit = True

    def __init__(self, view: EditableView, place: QPointF, at: Fraction, pivot: Fraction) -> None:
        times = [t for _, t in view.selection]
        self._start, self._has_moved = place, False
        self._view, self._before, self._chosen = view, view.timeline, view.selection
        first, last = min(times), max(times)
        self._pivot, self._end = (last, first) if at < pivot else (first, last)
        self._factor = Fraction(1)

    def move(self, place: QPointF, modifiers: Modifiers) -> None:
        """Stretch with the pointer; a click leaves the keys as they are."""
        if self._has_moved or abs(place.x() - self._start.x()) >= theme.px(STILL_PX):
            self._has_moved = True
            self._show(place, modifiers, final=False)

    def end(self, place: QPointF, modifiers: Modifiers) -> None:
        """Leave the keys there."""
        if self._has_moved:
            self._show(place, modifiers, final=True)

    def cancel(self) -> None:
        """Bring the keys back."""
        self._view.selection = self._chosen
        self._view.cancelled.emit()

    def _show(self, place: QPointF, modifiers: Modifiers, *, final: bool) -> None:
        axis = self._view.axis
        t = axis.t(axis.x(float(self._end)) + place.x() - self._start.x())
        to = t if modifiers & Modifiers.AltModifier else snapped(self._before, t)
        factor = (to - self._pivot) / (self._end - self._pivot)
        if factor > 0:
            self._factor = factor
        elif not final:
            return  # keys neither turn round nor fall together: the last stretch stays
        timeline, names = stretched_keys(self._before, self._chosen, self._pivot, self._factor)
        self._view.selection = names
        self._view.emit_change(timeline, "Stretch keys", final)


class HandleDrag:
    """Shapes the way between two keys."""

    is_edit = True

    def __init__(self, view: EditableView, row: TrackRow, segment: int, which: int) -> None:
        self._view, self._row, self._segment, self._which = view, row, segment, which
        self._before = view.timeline
        self._last: Timeline | None = None

    def move(self, place: QPointF, modifiers: Modifiers) -> None:
        """Put the handle under the pointer."""
        self._show(place, final=False)

    def end(self, place: QPointF, modifiers: Modifiers) -> None:
        """Leave the handle there."""
        if self._last is not None:
            self._view.emit_change(self._last, "Shape curve", True)

    def cancel(self) -> None:
        """Bring the handle back."""
        self._view.cancelled.emit()

    def _show(self, place: QPointF, *, final: bool) -> None:
        track = self._row.track
        keys, times = track.keys, times_of(self._before, track)
        first, second = keys[self._segment], keys[self._segment + 1]
        start, end = float(first.value or 0.0), float(second.value or 0.0)
        span = end - start if end != start else self._row.high - self._row.low
        t = self._view.axis.start + (place.x() - self._view.axis.left) / self._view.axis.scale
        share = (t - times[self._segment]) / (times[self._segment + 1] - times[self._segment])
        value = self._row.value(place.y() - self._view.scene.y(self._row) + self._row.top)
        handles = list(as_bezier(first.easing).handles)
        handles[2 * self._which] = min(max(share, 0.0), 1.0)
        handles[2 * self._which + 1] = min(max((value - start) / span, -10.0), 10.0)
        easing = Easing("bezier", (handles[0], handles[1], handles[2], handles[3]))
        changed = (*keys[: self._segment], replace(first, easing=easing), *keys[self._segment + 1 :])
        self._last = with_track(self._before, replace(track, keys=changed))
        self._view.emit_change(self._last, "Shape curve", final)


class BoxDrag:
    """Selects the keys in a box; with Shift or Ctrl, more keys."""

    is_edit = False

    def __init__(self, view: EditableView, place: QPointF, modifiers: Modifiers) -> None:
        self._view, self._start = view, place
        adds = bool(modifiers & (Modifiers.ShiftModifier | Modifiers.ControlModifier))
        self._had = view.selection
        self._before = view.selection if adds else frozenset()
        self.box = QRectF(place, place)
        view.select(self._before)

    def move(self, place: QPointF, modifiers: Modifiers) -> None:
        """Draw the box to the pointer, over what is seen: keys that are scrolled away are not selected."""
        self.box = QRectF(self._start, place).normalized().intersected(self._view.tracks_area)
        self._view.select(self._before | self._view.scene.names_in(self.box))

    def end(self, place: QPointF, modifiers: Modifiers) -> None:
        """Leave the selection."""

    def cancel(self) -> None:
        """Select what was selected."""
        self._view.select(self._had)


class PanDrag:
    """Moves the view in time."""

    is_edit = False

    def __init__(self, view: EditableView, place: QPointF) -> None:
        self._view, self._start, self._axis = view, place, view.axis

    def move(self, place: QPointF, modifiers: Modifiers) -> None:
        """Move with the pointer."""
        self._view.scroll_to(self._axis.scrolled(self._start.x() - place.x()))

    def end(self, place: QPointF, modifiers: Modifiers) -> None:
        """Stay there."""

    def cancel(self) -> None:
        """Go back."""
        self._view.scroll_to(self._axis)


def _on_frame(timeline: Timeline, t: Fraction) -> Fraction:
    """Return the time of the nearest frame, or of the nearest part of a beat while keys snap to beats."""
    if timeline.snap == "beat":
        return snapped(timeline, t)
    return round(t * timeline.fps) / timeline.fps
