"""The frame-time plot: the newest frames as a line, the budget as a dashed one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from explorer_app.rendering.frame_statistics import FRAME_BUDGET_MS, RING_SIZE
from explorer_app.window import fonts, theme
from explorer_app.window.plotting import pyqtgraph as _pg

_MARKS_MS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, FRAME_BUDGET_MS)
"""Where the dashed line may be: at the budget, or lower where frames take a small part of it."""

_HEADROOM = 1.4
"""The scale leaves room for the words above the dashed line."""


def mark_for(median_ms: float) -> float:
    """Return where the dashed line is, in ms: a little above what frames take, and never above the budget."""
    return next((mark for mark in _MARKS_MS if mark >= 1.3 * median_ms), FRAME_BUDGET_MS)


class FramePlot(QWidget):
    """A quiet plot without axes; its scale grows at once and shrinks slowly, so that the line does not dance."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("frame-plot")
        self.setAccessibleName("Frame times")
        self.setToolTip(f"Times of the newest {RING_SIZE} frames in milliseconds; the dashed line says its own.")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._plot: Any = _pg.PlotWidget(self, background=None)
        self._plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._plot.setMenuEnabled(False)
        self._plot.setMouseEnabled(False, False)
        self._plot.hideButtons()
        for side in ("left", "bottom"):
            self._plot.hideAxis(side)
        self._plot.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._plot.getViewBox().setBorder(None)
        self._plot.plotItem.setContentsMargins(0, 0, 0, 0)
        self._plot.setXRange(0, RING_SIZE - 1, padding=0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._plot)
        self._line: Any = self._plot.plot([], [], antialias=True)
        self._budget: Any = _pg.InfiniteLine(angle=0, movable=False)
        self._label: Any = _pg.TextItem("", anchor=(0, 1))
        self._label.setZValue(1)
        self._plot.addItem(self._budget)
        self._plot.addItem(self._label)
        self._top = 0.0
        self._mark_ms = 0.0
        self._mark(FRAME_BUDGET_MS)
        self._scale_to(0.0)
        self._colour()

    @property
    def shown_ms(self) -> NDArray[np.float64]:
        """The times that the line shows, (n,) float64."""
        return np.array(self._line.yData if self._line.yData is not None else [], dtype=np.float64)

    def show_times(self, times_ms: NDArray[np.float64]) -> None:
        """Show frame times, (n,) float64, newest last and at the right end."""
        places = np.arange(RING_SIZE - len(times_ms), RING_SIZE)
        self._line.setData(places, times_ms)
        self._mark(mark_for(float(np.median(times_ms))) if len(times_ms) else FRAME_BUDGET_MS)
        self._scale_to(float(times_ms.max()) if len(times_ms) else 0.0)

    def _mark(self, at_ms: float) -> None:
        """Move the dashed line."""
        if at_ms != self._mark_ms:
            self._mark_ms = at_ms
            self._top = 0.0
            self._budget.setPos(at_ms)
            self._label.setPos(0, at_ms)
            self._label.setText(f"{at_ms:g} ms")

    def _scale_to(self, highest_ms: float) -> None:
        wanted = max(self._mark_ms * _HEADROOM, highest_ms) * 1.2
        top = wanted if wanted > self._top else self._top + (wanted - self._top) * 0.1
        if abs(top - self._top) > 0.01 * wanted:
            self._top = top
            self._plot.setYRange(0, top, padding=0)

    def _colour(self) -> None:
        tokens = theme.current()
        ground = theme.mixed(tokens.panel, tokens.well, 0.45)
        self._plot.setBackground(ground)
        self._label.fill = _pg.mkBrush(theme.alpha(ground.name(), 0.7))  # times go behind the words, not through them
        self._line.setPen(_pg.mkPen(QColor(tokens.accent), width=1))
        self._budget.setPen(_pg.mkPen(theme.mixed(tokens.panel, tokens.dim, 0.5), width=1, style=Qt.PenStyle.DashLine))
        self._label.setFont(fonts.caption())
        self._label.setColor(QColor(tokens.dim))

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return a low, wide strip."""
        return QSize(theme.px(320), theme.px(72))

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Take over the colours of the new theme."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_label"):
            self._colour()
