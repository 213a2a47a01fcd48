"""The performance panel: what frames cost, how promptly they follow the hand, and where the time goes."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer_app.rendering.frame_statistics import FRAME_BUDGET_MS, FrameStatistics
from explorer_app.window import theme
from explorer_app.window.performance.figure import Figure
from explorer_app.window.performance.frame_plot import FramePlot
from explorer_app.window.performance.step_table import StepTable

_FIGURES_MS = 200
"""Figures that change more often cannot be read."""
_PLOT_MS = 100
_TABLE_MS = 500


class PerformancePanel(QWidget):
    """Shows statistics, each part at a rate that eyes can follow; nothing is drawn while it is hidden."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("performance")
        self._statistics: FrameStatistics | None = None
        self.p50 = Figure("frame p50", "ms", "Half of the newest frames took at most this long.")
        self.p99 = Figure("p99 · p95 –", "ms", "Ninety-nine frames of a hundred took at most this long.")
        self.fps = Figure("frames / s", "", "Frames a second while the picture last moved.")
        self.dropped = Figure("dropped", "", "Frames that a newer one replaced before they could be shown.")
        self.plot = FramePlot(self)
        self.latency = QLabel(self)
        self.latency.setToolTip("Median time from a gesture to its picture being painted, over the newest 60.")
        theme.set_role(self.latency, "dim")
        self.budget = QLabel(f"budget {FRAME_BUDGET_MS:.0f} ms", self)
        self.budget.setToolTip("A frame that takes longer is no longer felt as following the hand.")
        theme.set_role(self.budget, "dim")
        self.table = StepTable(self)
        self.empty = QLabel("No steps measured yet: move the picture.", self)
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        theme.set_role(self.empty, "dim")

        figures = QHBoxLayout()
        figures.setSpacing(theme.px(8))
        for figure, stretch in ((self.p50, 5), (self.p99, 6), (self.fps, 4), (self.dropped, 3)):
            figures.addWidget(figure, stretch)
        line = QHBoxLayout()
        line.addWidget(self.latency)
        line.addStretch(1)
        line.addWidget(self.budget)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.px(8), theme.MARGIN, theme.px(6))
        layout.setSpacing(theme.px(8))
        layout.addLayout(figures)
        layout.addWidget(self.plot)
        layout.addLayout(line)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.empty, 1)
        self.table.setMinimumHeight(theme.px(70))
        self._show_latency(0.0)
        self._show_steps()

        self._timers = []
        for interval, show in (
            (_FIGURES_MS, self._show_figures),
            (_PLOT_MS, self._show_plot),
            (_TABLE_MS, self._show_steps),
        ):
            timer = QTimer(self)
            timer.setSingleShot(True)
            timer.setInterval(interval)
            timer.timeout.connect(show)
            self._timers.append(timer)

    def show_statistics(self, statistics: FrameStatistics) -> None:
        """Show statistics soon; however often this is called, each part keeps its own rate."""
        self._statistics = statistics
        if self.isVisible():
            for timer in self._timers:
                if not timer.isActive():
                    timer.start()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Catch up with what happened while hidden."""
        super().showEvent(event)
        for timer in self._timers:
            timer.start()

    @Slot()
    def _show_figures(self) -> None:
        statistics = self._statistics
        if statistics is None or statistics.newest_ms == 0:
            for figure in (self.p50, self.p99, self.fps, self.dropped):
                figure.show_value("–")
            return
        self.p50.show_value(milliseconds(statistics.p50_ms))
        self.p99.show_value(milliseconds(statistics.p99_ms), f"p99 · p95 {milliseconds(statistics.p95_ms)}")
        self.fps.show_value(f"{statistics.fps:.0f}" if statistics.fps else "–")
        self.dropped.show_value(str(statistics.dropped))
        self._show_latency(statistics.gesture_to_screen_ms)

    @Slot()
    def _show_plot(self) -> None:
        if self._statistics is not None:
            self.plot.show_times(self._statistics.frame_times_ms)

    @Slot()
    def _show_steps(self) -> None:
        steps = self._statistics.steps if self._statistics is not None else ()
        self.table.show_steps(steps)
        self.table.setVisible(bool(steps))
        self.empty.setVisible(not steps)

    def _show_latency(self, latency_ms: float) -> None:
        figure = f"{milliseconds(latency_ms)} ms" if latency_ms > 0 else "–"
        self.latency.setText(f"gesture to screen {figure}")


def milliseconds(value: float) -> str:
    """Return a time with three figures at most, so that it keeps its width: 0.42, 4.21, 42.1, 421."""
    if value < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"
