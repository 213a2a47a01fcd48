"""The frame-time plot: recent frames as a line, the budget as a dashed line."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer_app.rendering.frame_statistics import FRAME_BUDGET_MS, RING_SIZE
from explorer_app.window.look import fonts, theme

_MARKS_MS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, FRAME_BUDGET_MS)
"""Possible values of the dashed line in ms: the budget, or lower for frames far below it."""

_HEADROOM = 1.4
"""Factor on the scale that leaves room for the label above the dashed line."""

_PAD_PX = 3
"""Padding beside the label, in px."""


def mark_for(median_ms: float) -> float:
    """Return the value of the dashed line in ms: slightly above the median, and never above the budget."""
    return next((mark for mark in _MARKS_MS if mark >= 1.3 * median_ms), FRAME_BUDGET_MS)


class FramePlot(QWidget):
    """A plot without axes. Its scale grows immediately and shrinks slowly, which keeps the line steady."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("frame-plot")
        self.setAccessibleName("Frame times")
        self.setToolTip(f"Times of the newest {RING_SIZE} frames in milliseconds; the label names the dashed line.")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._times_ms: Sequence[float] = ()
        self._mark_ms = FRAME_BUDGET_MS
        self._top_ms = 0.0
        """Frame time at the upper edge, in ms."""
        self._scale_to(0.0)

    @property
    def shown_ms(self) -> Sequence[float]:
        """The shown frame times in ms."""
        return self._times_ms

    def show_times(self, times_ms: Sequence[float]) -> None:
        """Show frame times in ms; the newest is last, at the right end."""
        self._times_ms = times_ms
        mark_ms = mark_for(sorted(times_ms)[len(times_ms) // 2]) if times_ms else FRAME_BUDGET_MS
        if mark_ms != self._mark_ms:
            self._mark_ms, self._top_ms = mark_ms, 0.0
        self._scale_to(max(times_ms, default=0.0))
        self.update()

    def _scale_to(self, highest_ms: float) -> None:
        wanted = max(self._mark_ms * _HEADROOM, highest_ms) * 1.2
        top = wanted if wanted > self._top_ms else self._top_ms + (wanted - self._top_ms) * 0.1
        if abs(top - self._top_ms) > 0.01 * wanted:
            self._top_ms = top

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the line of times over the dashed line and its label."""
        tokens = theme.current()
        ground = theme.mixed(tokens.panel, tokens.well, 0.45)
        painter = QPainter(self)
        painter.fillRect(self.rect(), ground)
        at = self._height_of(self._mark_ms)
        painter.setPen(QPen(theme.mixed(tokens.panel, tokens.dim, 0.5), 1, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(0, at), QPointF(self.width(), at))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(tokens.accent), 1))
        step = self.width() / (RING_SIZE - 1)
        left = self.width() - step * (len(self._times_ms) - 1)
        painter.drawPolyline(
            [QPointF(left + step * place, self._height_of(time)) for place, time in enumerate(self._times_ms)]
        )
        painter.setFont(fonts.caption())
        label = f"{self._mark_ms:g} ms"
        metrics = painter.fontMetrics()
        area = QRectF(0, at - metrics.height() - 2, metrics.horizontalAdvance(label) + 2 * _PAD_PX, metrics.height())
        painter.fillRect(area, theme.alpha(ground.name(), 0.7))  # keeps the label readable over the line
        painter.setPen(QColor(tokens.dim))
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, label)

    def _height_of(self, time_ms: float) -> float:
        """Return the y coordinate in px of a frame time."""
        return self.height() * (1.0 - time_ms / self._top_ms)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the size of a low, wide strip."""
        return QSize(theme.px(320), theme.px(72))
