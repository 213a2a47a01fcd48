"""The switches of the fast path, the time with and without each, and the difference of the pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QPushButton, QWidget

from explorer_app.window.controls.hint_label import HintLabel
from explorer_app.window.controls.switch import Switch
from explorer_app.window.look import theme
from explorer_app.window.performance.figure import milliseconds, short_milliseconds
from gpu_backend import RenderOptions

if TYPE_CHECKING:
    from gpu_backend import Comparison

_NO_GRAPH = "The CPU has no graph: it runs the steps one after the other."
_GRAPH = "On: all kernels of a frame are launched as one CUDA graph. Off: one launch per kernel."
_FUSED = "On: the fused kernels. Off: the plain reference kernels; the picture must be the same."


class FastPath(QWidget):
    """Graph on or off, fused or reference.

    Signals
    -------
    options_changed(object)
        New `RenderOptions` were selected.
    compare_requested()
        The button that measures all options and compares the pictures was pressed.
    """

    options_changed = Signal(object)
    compare_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._options = RenderOptions()
        self._has_graph = True
        self._comparison: Comparison | None = None
        self._is_running = False
        self._has_model = True
        self.graph = Switch("Graph", self)
        self.fused = Switch("Fused", self)
        self.fused.setToolTip(_FUSED)
        self.compare = QPushButton("Compare", self)
        self.compare.setToolTip(
            "Render this picture with all options; show their times and the largest pixel difference."
        )
        self.compare.clicked.connect(self.compare_requested)
        self.graph_times = _note(self)
        self.fused_times = _note(self)
        self.difference = _note(self)
        self.difference.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(theme.px(8))
        grid.setVerticalSpacing(theme.px(1))
        left, right = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignRight
        for column, (control, note, stretch, side) in enumerate(
            (
                (self.graph, self.graph_times, 10, left),
                (self.fused, self.fused_times, 10, left),
                (self.compare, self.difference, 8, right),
            )
        ):
            grid.addWidget(control, 0, column, side | Qt.AlignmentFlag.AlignVCenter)
            grid.addWidget(note, 1, column)
            grid.setColumnStretch(column, stretch)
        for switch in (self.graph, self.fused):
            switch.clicked.connect(self._switched)
        self.show_graph(True)
        self.show_options(self._options)
        self.show_comparison(None)

    def show_graph(self, exists: bool) -> None:
        """Enable the graph's switch, or show why it is unavailable."""
        self._has_graph = exists
        self.graph.setToolTip(_GRAPH if exists else _NO_GRAPH)
        self.graph_times.setToolTip(_GRAPH if exists else _NO_GRAPH)
        self.graph.setChecked(exists and self._options.use_graph)
        self._enable()
        self._update_words()

    def show_options(self, options: RenderOptions) -> None:
        """Show the render options without emitting."""
        self._options = options
        self.graph.setChecked(self._has_graph and options.use_graph)
        self.fused.setChecked(options.use_fused)

    def show_comparison(self, comparison: Comparison | None, *, is_running: bool = False) -> None:
        """Show times and differences; None if nothing was compared yet."""
        self._comparison, self._is_running = comparison, is_running
        self._enable()
        self._update_words()

    def set_has_model(self, has_model: bool) -> None:
        """Enable the switches and the comparison if a model is open."""
        self._has_model = has_model
        self._enable()

    def _enable(self) -> None:
        self.graph.setEnabled(self._has_model and self._has_graph)
        self.fused.setEnabled(self._has_model)
        self.compare.setEnabled(self._has_model and not self._is_running)

    def _update_words(self) -> None:
        comparison = self._comparison
        if comparison is None:
            self.graph_times.show_text("on – · off –" if self._has_graph else "no graph here", "")
            self.fused_times.show_text("on – · off –")
            self.difference.show_text("comparing…" if self._is_running else "not compared yet", "")
            self.difference.setToolTip("")
            return
        if self._has_graph:
            self.graph_times.show_text(*_both(comparison.graph_ms, comparison.no_graph_ms))
        else:
            self.graph_times.show_text("no graph here", "")
        fused, reference = comparison.fused_ms, comparison.reference_ms
        self.fused_times.show_text(
            f"fused {milliseconds(fused)} · reference {milliseconds(reference)} ms", *_both(fused, reference)
        )
        largest = f"{comparison.largest_difference} / 255"
        if self._is_running:
            self.difference.show_text("comparing…")
        else:
            self.difference.show_text(f"largest difference {largest}", f"differ by {largest}", f"± {largest}", largest)
        self.difference.setToolTip(
            f"Fused and reference: the largest pixel difference is {largest}, "
            f"the mean is {comparison.mean_difference:.3g} on average."
        )

    def _switched(self) -> None:
        use_graph = self.graph.isChecked() if self._has_graph else self._options.use_graph
        self._options = replace(self._options, use_graph=use_graph, use_fused=self.fused.isChecked())
        self.options_changed.emit(self._options)
        self.compare_requested.emit()


def _note(parent: QWidget) -> HintLabel:
    label = HintLabel("", parent)
    label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    label.setFixedHeight(theme.px(16))
    theme.set_role(label, "caption")
    return label


def _both(on: float | None, off: float | None) -> tuple[str, ...]:
    """Return wordings of the times with and without an option, the longest first."""
    (full_on, full_off), (short_on, short_off) = (
        ["–" if value is None else write(value) for value in (on, off)] for write in (milliseconds, short_milliseconds)
    )
    return f"on {full_on} · off {full_off} ms", f"on {full_on}, off {full_off}", f"on {short_on}, off {short_off}"
