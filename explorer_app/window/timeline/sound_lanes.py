"""The sounds below the tracks of the timeline: their waveforms on its axis of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer_app.audio.analysis import Analysis
from explorer_app.session.tracks import Sound
from explorer_app.window.controls.announce import announce
from explorer_app.window.look import fonts, theme
from explorer_app.window.timeline.key_drags import STILL_PX
from explorer_app.window.timeline.timeline_view import TimelineView
from gpu_backend import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

LANE_PX, LOW_LANE_PX = 34, 20
"""Height of a lane with two lines of text, and of one with a single line, where two would leave the tracks little."""

MOST_LANES = 4
"""Lanes that are shown at a time; more are reached by the wheel."""

_PEAKS_HZ = 100

AnalysisOf = Callable[[str], Analysis | None]
"""SHA-256 -> analysis; None until it was read."""


class SoundLanes(QWidget):
    """A lane for each sound: drag it to move the sound, right-click it for more.

    With the focus, Up and Down choose a sound, Left and Right move it by a frame (with Shift by ten), Enter and the
    menu key open its menu.

    Signals
    -------
    changed(object, str, bool)
        A sound in another place, the label of the edit, and whether it is the last one of a gesture.
    cancelled()
        Escape ended a drag.
    menu_requested(str, QPoint)
        A right click on the sound of this name, Enter or the menu key.
    """

    changed = Signal(object, str, bool)
    cancelled = Signal()
    menu_requested = Signal(str, QPoint)

    def __init__(self, view: TimelineView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = view
        self._sounds: tuple[Sound, ...] = ()
        self._analysis_of: AnalysisOf = lambda digest: None
        self._is_missing: Callable[[str], bool] = lambda digest: False
        self._first, self._most = 0, MOST_LANES
        self._chosen = 0
        """Place of the sound that keys act on."""
        self._lane_px = LANE_PX
        self._room_px = 0.0
        self._drag: tuple[Sound, float] | None = None
        self._has_moved = False
        self.setAccessibleName("Sounds")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip("Drag a sound to move it; right-click for its volume, its tempo and what it moves.")
        self.setVisible(False)
        view.redrawn.connect(self.update)

    def serve(self, analysis_of: AnalysisOf, is_missing: Callable[[str], bool]) -> None:
        """Say where analyses come from."""
        self._analysis_of, self._is_missing = analysis_of, is_missing

    def show_sounds(self, sounds: tuple[Sound, ...]) -> None:
        """Show a timeline's sounds."""
        if sounds == self._sounds:
            return
        self._sounds = sounds
        self._chosen = max(0, min(self._chosen, len(sounds) - 1))
        self.setVisible(bool(sounds))
        self._fit()

    def set_room(self, height_px: float) -> None:
        """Take a part of the height that tracks and lanes share.

        Lanes are low if they took more than a third otherwise. They take at most half, but there is always one; the
        wheel brings the others.
        """
        self._room_px = height_px
        self._fit()

    def _fit(self) -> None:
        shown = min(len(self._sounds), MOST_LANES)
        self._lane_px = LANE_PX if shown * theme.px(LANE_PX) <= self._room_px / 3 else LOW_LANE_PX
        self._most = max(1, min(MOST_LANES, int(self._room_px / 2 // theme.px(self._lane_px))))
        self._scroll_to(self._first)
        self.updateGeometry()

    @property
    def _shown(self) -> tuple[Sound, ...]:
        return self._sounds[self._first : self._first + self._most]

    def _scroll_to(self, first: int) -> None:
        self._first = max(0, min(first, len(self._sounds) - self._most))
        self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return a size with room for the lanes that are shown at a time."""
        return QSize(theme.px(300), theme.px(self._lane_px) * min(max(1, len(self._sounds)), self._most))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return the same height: a lane that is cut off cannot be read."""
        return QSize(theme.px(100), self.sizeHint().height())

    def lane_of(self, name: str) -> QRectF | None:
        """Return where a sound is painted, in px; None if it is scrolled away or there is none."""
        for place, sound in enumerate(self._shown):
            if sound.name == name:
                left, right = (self._view.axis.x(float(sound.start) + t) for t in (0.0, sound.seconds))
                return QRectF(left, place * theme.px(self._lane_px), right - left, theme.px(self._lane_px))
        return None

    # -- painting ---------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the lanes and the playhead."""
        tokens, axis = theme.current(), self._view.axis
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(tokens.panel))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for sound in self._shown:
            lane = self.lane_of(sound.name)
            assert lane is not None
            self._paint_lane(painter, sound, lane)
        painter.setPen(QPen(QColor(tokens.edge), 1))
        painter.drawLine(QPointF(0, 0.5), QPointF(self.width(), 0.5))
        painter.drawLine(QPointF(axis.left - 0.5, 0), QPointF(axis.left - 0.5, self.height()))
        x = axis.x(float(self._view.time))
        if axis.left - 1 <= x <= self.width():
            painter.setPen(QPen(QColor(tokens.strong), 1))
            painter.drawLine(QPointF(round(x) + 0.5, 0), QPointF(round(x) + 0.5, self.height()))
        if self.hasFocus():
            top = (self._chosen - self._first) * theme.px(self._lane_px)
            painter.fillRect(QRectF(0, top, theme.px(3), theme.px(self._lane_px)), QColor(tokens.accent))
            painter.setPen(QPen(theme.alpha(tokens.accent, 0.7), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        if len(self._shown) < len(self._sounds):
            share = self.height() / len(self._sounds)
            bar = QRectF(self.width() - theme.px(5), self._first * share, theme.px(4), len(self._shown) * share)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(tokens.edge))
            painter.drawRoundedRect(bar, 2, 2)
        painter.end()

    def _paint_lane(self, painter: QPainter, sound: Sound, lane: QRectF) -> None:
        tokens, axis = theme.current(), self._view.axis
        colour = QColor(tokens.dim if sound.is_muted else tokens.accent)
        pad = theme.px(8)
        self._paint_label(painter, sound, QRectF(pad, lane.top(), axis.left - 2 * pad, lane.height()))
        painter.save()
        painter.setClipRect(QRectF(axis.left, lane.top(), axis.width, lane.height()))
        gap = theme.px(2 if self._lane_px == LOW_LANE_PX else 3)
        box = lane.adjusted(0, gap, 0, -gap)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.alpha(colour.name(), 0.12))
        painter.drawRoundedRect(box, 3, 3)
        analysis = self._analysis_of(sound.digest)
        if analysis is not None:
            self._paint_wave(painter, sound, box, analysis, colour)
        painter.restore()

    def _paint_label(self, painter: QPainter, sound: Sound, area: QRectF) -> None:
        """Paint a sound's name and, below it or at its right, what is known of it."""
        tokens, gap = theme.current(), theme.px(8)
        detail, is_low = self._detail(sound), self._lane_px == LOW_LANE_PX
        painter.setFont(fonts.caption())
        painter.setPen(QColor(tokens.bad_text if self._is_missing(sound.digest) else tokens.dim))
        detail_px = painter.fontMetrics().horizontalAdvance(detail) + gap if is_low else 0
        bottom = Qt.AlignmentFlag.AlignRight if is_low else Qt.AlignmentFlag.AlignLeft
        below = area if is_low else area.adjusted(0, area.height() / 2, 0, -theme.px(2))
        painter.drawText(below, Qt.AlignmentFlag.AlignVCenter | bottom, detail)
        painter.setFont(fonts.body())
        painter.setPen(QColor(tokens.text))
        name = painter.fontMetrics().elidedText(sound.name, Qt.TextElideMode.ElideRight, int(area.width() - detail_px))
        above = area.adjusted(0, 0, 0, 0 if is_low else -area.height() / 2 + theme.px(2))
        painter.drawText(above, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, name)

    def _paint_wave(self, painter: QPainter, sound: Sound, box: QRectF, analysis: Analysis, colour: QColor) -> None:
        """Paint a line from the least to the greatest sample of each pixel that can be seen."""
        axis = self._view.axis
        first = max(int(axis.left), int(box.left()))
        last = min(int(axis.left + axis.width), int(box.right()) + 1)
        if last <= first or not len(analysis.peaks):
            return
        edges = (axis.start + (np.arange(first, last + 1) - axis.left) / axis.scale - float(sound.start)) * _PEAKS_HZ
        low, high = pixel_peaks(analysis.peaks, edges)
        middle, half = box.center().y(), box.height() / 2 - 1
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(QPen(colour, 1))
        for x, bottom, top in zip(range(first, last), low.tolist(), high.tolist(), strict=True):
            painter.drawLine(QPointF(x, middle - top / 127 * half), QPointF(x, middle - bottom / 127 * half))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)

    def _detail(self, sound: Sound) -> str:
        if self._is_missing(sound.digest):
            return "file is missing"
        analysis = self._analysis_of(sound.digest)
        if analysis is None:
            return "being read…"
        parts = ["muted"] if sound.is_muted else [f"{sound.gain_db:+g} dB".replace("-", "−")] if sound.gain_db else []
        parts.append(f"{float(analysis.bpm):g} bpm" if analysis.bpm else f"{sound.seconds:.1f} s")
        return " · ".join(parts)

    # -- mouse ------------------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Take hold of a sound."""
        if event.buttons() == event.button():
            self.undo_drag()  # a menu that a key opened has taken its release
        sound = self._sound_at(event.position())
        if sound is not None:
            self._choose(self._sounds.index(sound))
        if (
            event.button() == Qt.MouseButton.LeftButton
            and sound is not None
            and event.position().x() >= self._view.axis.left
        ):
            self._drag = sound, event.position().x()
            self._has_moved = False

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Move the sound."""
        self._move(event.position(), final=False)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Let go of the sound."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._move(event.position(), final=True)
            self._drag = None

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Choose a sound, move it, open its menu; let Escape put a sound back that is being moved."""
        key = event.key()
        step = -1 if key in (Qt.Key.Key_Up, Qt.Key.Key_Left) else 1
        if self._drag is not None and key == Qt.Key.Key_Escape:
            self.undo_drag()
        elif self._drag is not None or not self._sounds:
            super().keyPressEvent(event)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._choose(self._chosen + step)
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            frames = step * (10 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
            sound = self._sounds[self._chosen]
            self.changed.emit(replace(sound, start=sound.start + frames / self._view.timeline.fps), "Move sound", True)
            announce(self, self._text())
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._open_menu()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """Say which sound keys act on."""
        super().focusInEvent(event)
        self.setAccessibleDescription(self._text())

    def _choose(self, place: int) -> None:
        self._chosen = max(0, min(place, len(self._sounds) - 1))
        self._scroll_to(min(max(self._first, self._chosen - self._most + 1), self._chosen))
        announce(self, self._text())

    def _text(self) -> str:
        """Return what a person who does not see the lanes needs to know."""
        if not self._sounds:
            return ""
        sound, count = self._sounds[self._chosen], len(self._sounds)
        at = f"{float(sound.start):.2f}".replace("-", "−")
        return f"{sound.name}, sound {self._chosen + 1} of {count}, {self._detail(sound)}, starts at {at} s"

    def _open_menu(self) -> None:
        self._choose(self._chosen)
        lane = self.lane_of(self._sounds[self._chosen].name)
        if lane is not None:
            self.menu_requested.emit(
                self._sounds[self._chosen].name, self.mapToGlobal(QPoint(theme.px(8), int(lane.bottom())))
            )

    def undo_drag(self) -> bool:
        """Put a sound back that is being moved; return whether it had moved."""
        if self._drag is None:
            return False
        self._drag = None
        self.cancelled.emit()
        return self._has_moved

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Scroll by a lane; of the timeline's own ways of the wheel, those with Ctrl and Shift stay the timeline's."""
        if event.modifiers() or not event.angleDelta().y() or self._drag is not None:
            self._view.wheelEvent(event)
            return
        self._scroll_to(self._first + (-1 if event.angleDelta().y() > 0 else 1))
        event.accept()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802
        """Open the menu of the sound under the pointer; none while a sound is moved."""
        if self._drag is not None:
            return
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            if self._sounds:
                self._open_menu()
            return
        sound = self._sound_at(QPointF(event.pos()))
        if sound is not None:
            self.menu_requested.emit(sound.name, event.globalPos())

    def _move(self, place: QPointF, *, final: bool) -> None:
        if self._drag is None:
            return
        sound, from_x = self._drag
        by = (place.x() - from_x) / self._view.axis.scale
        if abs(place.x() - from_x) < theme.px(STILL_PX) and not self._has_moved:
            return  # a click
        self._has_moved = True
        # A sound may start anywhere, not only on frames.
        start = Fraction(round((float(sound.start) + by) * 1000), 1000)
        self.changed.emit(replace(sound, start=start), "Move sound", final)

    def _sound_at(self, place: QPointF) -> Sound | None:
        index = self._first + int(place.y() // theme.px(self._lane_px))
        return self._sounds[index] if place.y() >= 0 and index < len(self._sounds) else None


def pixel_peaks(peaks: NDArray[np.int8], edges: NDArray[np.floating]) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return the least and the greatest sample between each two edges, which count hundredths of a second.

    Edges closer than 0.01 s give the block that contains them; outside of the sound is silence.
    """
    first = np.clip(np.floor(edges[:-1]).astype(np.int64), 0, len(peaks) - 1)
    last = np.clip(np.ceil(edges[1:]).astype(np.int64), 1, len(peaks))
    start, end = int(first[0]), int(last[-1])
    part = peaks[start:end]
    low = np.minimum.reduceat(part[:, 0], np.minimum(first - start, len(part) - 1))
    high = np.maximum.reduceat(part[:, 1], np.minimum(first - start, len(part) - 1))
    outside = (edges[1:] < 0) | (edges[:-1] > len(peaks))
    low[outside] = high[outside] = 0
    return low, high
