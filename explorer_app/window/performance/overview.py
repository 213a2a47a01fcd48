"""Overview of performance: headline figures, a plot of frame times, and the input latency."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer_app.rendering.frame_statistics import FRAME_BUDGET_MS, FrameStatistics
from explorer_app.window.controls.hint_label import HintLabel
from explorer_app.window.look import theme
from explorer_app.window.performance.figure import Figure, milliseconds, short_count, short_milliseconds
from explorer_app.window.performance.frame_plot import FramePlot

_FPS = ("fps", "", "Frames per second during the last movement.")
_GRAPH_SHARES, _FPS_SHARES = (5, 6, 7, 3), (16, 17, 11, 10)
"""Stretch factors of the figures: the graph's time has the longest caption; times on a CPU have four digits."""
_WIDEST = "gesture to screen 00.00 ms"
_GRAPH_TIP = (
    "Time of a frame on the GPU, from the first kernel to the last; gaps: the time in which no kernel ran, "
    "from the last measurement of the steps; only CUPTI measures them; with events the gaps count as kernel time."
)


class Overview(QWidget):
    """Figures of constant width above a plot; on a GPU the third figure is the graph's time."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._has_graph = False
        self.p50 = Figure("frame p50", "ms", "Median time of the newest frames, drafts included.")
        self.p99 = Figure("p99 · p95 –", "ms", "99 % of the newest frames took at most this long.")
        self.third = Figure(*_FPS)
        self.dropped = Figure("dropped", "", "Frames replaced by a newer one before they were shown.")
        self.plot = FramePlot(self)
        self.latency = QLabel(self)
        self.latency.setToolTip(
            "Median time from an input event's timestamp to the paint of its picture, over the newest 60."
        )
        self.host = HintLabel("", self)
        for label in (self.latency, self.host):
            theme.set_role(label, "dim")
        metrics = self.latency.fontMetrics()  # fixed size, so that a new text triggers no layout
        self.latency.setFixedSize(metrics.horizontalAdvance(_WIDEST) + 2, metrics.height())
        figures = QHBoxLayout()
        figures.setSpacing(theme.px(4))
        for figure in (self.p50, self.p99, self.third, self.dropped):
            figures.addWidget(figure)
        self._figures = figures
        line = QHBoxLayout()
        line.addWidget(self.latency)
        line.addWidget(self.host, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(6))
        layout.addLayout(figures)
        layout.addWidget(self.plot)
        layout.addLayout(line)
        self.show_graph(False)
        self.show_times(None)

    def show_graph(self, exists: bool) -> None:
        """Show the graph's time if there is a CUDA graph, otherwise frames per second."""
        self._has_graph = exists
        self.third.set_meaning(*(("graph", "ms", _GRAPH_TIP) if exists else _FPS))
        for place, stretch in enumerate(_GRAPH_SHARES if exists else _FPS_SHARES):
            self._figures.setStretch(place, stretch)

    def show_times(self, statistics: FrameStatistics | None) -> None:
        """Show frame times and dropped frames; dashes before the first frame."""
        if statistics is None or statistics.newest_ms == 0:
            for figure in (self.p50, self.dropped):
                figure.show_value("–")
            self.p99.show_value("–", "p99 · p95 –")
            self.third.show_value("–", "graph" if self._has_graph else "fps")
            self._show_line(0.0, None)
            return
        p50, p95, p99 = statistics.percentiles_ms(50, 95, 99)
        self.p50.show_value(milliseconds(p50), short=(short_milliseconds(p50), self.p50.caption))
        self.p99.show_value(
            milliseconds(p99),
            f"p99 · p95 {milliseconds(p95)}",
            short=(short_milliseconds(p99), f"p99 · p95 {short_milliseconds(p95)}"),
        )
        if self._has_graph:
            self._show_graph(statistics)
        else:
            self.third.show_value(f"{statistics.fps:.0f}" if statistics.fps else "–")
        self.dropped.show_value(str(statistics.dropped), short=(short_count(statistics.dropped), self.dropped.caption))
        self._show_line(statistics.gesture_to_screen_ms, statistics.host_ms)

    def show_plot(self, statistics: FrameStatistics) -> None:
        """Show the newest frame times."""
        if self.plot.isVisible():
            self.plot.show_times(statistics.frame_times_ms)

    def _show_graph(self, statistics: FrameStatistics) -> None:
        device, gaps = statistics.device_ms, statistics.idle_ms
        full, short = (
            ("–" if device is None else write(device), f"graph · gaps {'–' if gaps is None else write(gaps)}")
            for write in (milliseconds, short_milliseconds)
        )
        self.third.show_value(*full, short=short)

    def _show_line(self, latency_ms: float, host_ms: float | None) -> None:
        figure = "–"
        if latency_ms > 0:  # in seconds if milliseconds are too long for the label
            figure = f"{milliseconds(latency_ms)} ms" if latency_ms < 9999.5 else f"{latency_ms / 1000:.1f} s"
        self.latency.setText(f"gesture to screen {figure}")
        if self._has_graph:
            host = "–" if host_ms is None else f"{milliseconds(host_ms)} ms"
            self.host.show_text(f"host work {host} a frame", f"host {host}", "")
            self.host.setToolTip("Median CPU time per frame, without waiting for the GPU.")
        else:
            self.host.show_text(f"budget {FRAME_BUDGET_MS:.0f} ms", "")
            self.host.setToolTip("Slower frames feel detached from the pointer.")
