"""The performance panel: frame times, input latency, and the time of each step."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer_app.controller import Compiling
from explorer_app.rendering.frame_statistics import FrameStatistics
from explorer_app.rendering.renderer_like import MemoryLike
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.look import theme
from explorer_app.window.performance.fast_path import FastPath
from explorer_app.window.performance.kernel_line import KernelLine
from explorer_app.window.performance.overview import Overview
from explorer_app.window.performance.step_csv import step_csv
from explorer_app.window.performance.step_table import StepTable
from gpu_backend import RenderOptions

if TYPE_CHECKING:
    from explorer_app.controller import LadderState
    from explorer_app.window.performance.ladder_view import LadderView
    from explorer_app.window.performance.roofline_plot import RooflinePlot
    from gpu_backend import Comparison, Roofline

_BEAT_MS = 500
"""Shortest update interval in ms: faster figures are hard to read, and each update repaints the window."""

_LOW_PX = 380
"""Below this height in px the plot of frame times and the button to Measure are hidden in favour of the table."""

_ROOFLINE_PX = 520
"""Smallest height with the roofline, in px."""

_FULL_PLOT_PX = 600
"""Below this height in px the plot of frame times is hidden in favour of the roofline."""

_KERNELS, _LADDER = "kernels", "ladder"
_TABS = (
    (_KERNELS, "Kernels", "Time, occupancy and roofline of each kernel of a picture."),
    (_LADDER, "Ladder", "What each optimisation gains on this device."),
)

_NO_MODEL = "Open a model to measure its steps"


class PerformancePanel(QWidget):
    """Shows statistics at a readable rate; a hidden panel draws nothing.

    The compact form in Explore has no roofline and a button to Measure.

    Signals
    -------
    options_changed(object)
        New `RenderOptions` were selected.
    compare_requested()
        The button that measures and compares all options was pressed.
    counters_requested()
        The button that measures hardware counters was pressed.
    measure_requested()
        The button to the Measure workspace was pressed.
    columns_chosen(str)
        The table's columns were changed; `show_columns` restores them.
    ladder_requested(), ladder_stop_requested()
        The buttons of the tab Ladder were pressed.
    """

    options_changed = Signal(object)
    compare_requested = Signal()
    counters_requested = Signal()
    measure_requested = Signal()
    columns_chosen = Signal(str)
    ladder_requested = Signal()
    ladder_stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("performance")
        self._statistics: FrameStatistics | None = None
        self._roofline: Roofline | None = None
        self._is_compact = True
        self._has_graph = False
        self._has_model = False
        self._options = RenderOptions()
        self._ladder_state: LadderState | None = None
        self._is_counting = False
        self._keeps_steps = False
        """Whether only the options changed: the old steps stay until the new ones arrive."""
        self.overview = Overview(self)
        self.fast_path = FastPath(self)
        self.kernels = KernelLine(self)
        self.table = StepTable(self)
        self.table.setMinimumHeight(theme.px(70))
        self.empty = QLabel(_NO_MODEL, self)
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        theme.set_role(self.empty, "dim")
        self.measure = QPushButton("All statistics in Measure", self)
        self.measure.setToolTip("Show all statistics of every kernel, and the roofline (Ctrl+3).")
        self.measure.clicked.connect(self.measure_requested)
        theme.set_role(self.measure, "flat")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.px(8), theme.MARGIN, theme.px(6))
        layout.setSpacing(theme.px(6))
        self.tabs = SegmentedControl(_TABS, "Figures", self)
        self.tabs.show_choice(_KERNELS)
        self.tabs.hide()
        self.counters = QPushButton("Measure counters", self)
        self.counters.setToolTip(
            "Read the GPU's hardware counters for the kernels of this picture: achieved occupancy, throughput of the\n"
            "multiprocessors and of the memory, sectors per request. They are further columns of the table."
        )
        self.counters.clicked.connect(self.counters_requested)
        self.counters.hide()
        head = QHBoxLayout()
        head.addWidget(self.tabs)
        head.addStretch(1)
        head.addWidget(self.counters)
        layout.addLayout(head)
        layout.addWidget(self.overview)
        layout.addWidget(self.fast_path)
        layout.addWidget(self.kernels)
        layout.addWidget(self.table, 3)
        layout.addWidget(self.empty, 3)
        layout.addWidget(self.measure, 0, Qt.AlignmentFlag.AlignRight)
        self.fast_path.options_changed.connect(self.options_changed)
        self.fast_path.compare_requested.connect(self.compare_requested)
        self.table.columns_chosen.connect(self.columns_chosen)
        self.tabs.chosen.connect(lambda _: self._switch_tab())
        self._is_on_show = True
        self._beat = QTimer(self)
        self._beat.setSingleShot(True)
        self._beat.setInterval(_BEAT_MS)
        self._beat.timeout.connect(self._show_all)
        self.fast_path.show_graph(False)
        self._show_steps()

    @cached_property
    def roofline(self) -> RooflinePlot:
        """The roofline, created when it is first shown: importing pyqtgraph takes 0.3 s."""
        from explorer_app.window.performance.roofline_plot import RooflinePlot

        roofline = RooflinePlot(self)
        layout = self.layout()
        assert isinstance(layout, QVBoxLayout)
        roofline.setMinimumHeight(theme.px(160))
        layout.insertWidget(layout.indexOf(self.kernels), roofline, 4)
        self.table.step_chosen.connect(roofline.show_chosen)
        roofline.step_chosen.connect(self.table.choose)
        return roofline

    @cached_property
    def ladder(self) -> LadderView:
        """The tab Ladder, created when it is first shown."""
        from explorer_app.window.performance.ladder_view import LadderView

        ladder = LadderView(self)
        layout = self.layout()
        assert isinstance(layout, QVBoxLayout)
        layout.addWidget(ladder, 10)
        ladder.start_requested.connect(self.ladder_requested)
        ladder.stop_requested.connect(self.ladder_stop_requested)
        return ladder

    # -- content ----------------------------------------------------------------------------------------------------

    def set_compact(self, compact: bool) -> None:
        """Switch between the compact form and the form with the roofline."""
        self._is_compact = compact
        self._switch_tab()

    def show_statistics(self, statistics: FrameStatistics) -> None:
        """Schedule an update of the statistics, at most twice per second."""
        self._statistics = statistics
        if self._is_on_show and self.isVisible() and not self._beat.isActive():
            self._beat.start()

    def set_on_show(self, on: bool) -> None:
        """Record whether the panel is visible; `isVisible` is also True for a panel behind another tab."""
        self._is_on_show = on
        if on:
            self._beat.start()

    def show_device(self, *, has_graph: bool, roofline: Roofline | None) -> None:
        """Set whether the device uses a CUDA graph, and its roofline, if known."""
        if (has_graph, roofline) == (self._has_graph, self._roofline):
            return
        self._has_graph, self._roofline = has_graph, roofline
        self._keeps_steps = False
        self.overview.show_graph(has_graph)
        self.fast_path.show_graph(has_graph)
        self._show_counters()
        self._show_times()
        self._show_steps()

    def set_has_model(self, has_model: bool) -> None:
        """Set whether a model is open, which enables the comparison and the ladder."""
        self._has_model = has_model
        self.fast_path.set_has_model(has_model)
        self.empty.setText("No steps measured yet: move the picture" if has_model else _NO_MODEL)
        self._show_counters()
        self._show_ladder()

    def show_ladder(self, state: LadderState) -> None:
        """Show the measurement of what each optimisation gains."""
        self._ladder_state = state
        self._show_ladder()

    def show_options(self, options: RenderOptions) -> None:
        """Show the render options."""
        self._keeps_steps = options != self._options
        self._options = options
        self.fast_path.show_options(options)

    def show_comparison(self, comparison: Comparison | None, *, is_running: bool = False) -> None:
        """Show the comparison of the render options; None if nothing was compared."""
        self.fast_path.show_comparison(comparison, is_running=is_running)

    def show_counting(self, is_running: bool) -> None:
        """Show whether hardware counters are being measured."""
        self._is_counting = is_running
        self._show_counters()

    def show_memory(self, memory: MemoryLike | None, device: str) -> None:
        """Show the renderer's memory on a device, and the process's memory there."""
        self.kernels.show_memory(memory, device)

    def show_compiling(self, compiling: Compiling | None, meanwhile: str = "the CPU") -> None:
        """Show how many kernels are compiled or checked, and the device that renders meanwhile; None hides it."""
        self.kernels.show_compiling(compiling, meanwhile)

    def show_columns(self, keys: str) -> None:
        """Restore chosen columns."""
        self.table.show_columns(keys)

    def csv(self) -> str:
        """Return the table with all columns as CSV; empty if no steps are known."""
        steps = self.table.steps.steps
        return step_csv(steps, self._roofline) if steps else ""

    # -- events -----------------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Apply the updates that arrived while hidden."""
        super().showEvent(event)
        self._beat.start()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Hide the plot in a low panel in favour of the table and the roofline."""
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        low = _LOW_PX if self._is_compact else _FULL_PLOT_PX
        self.overview.plot.setVisible(self.height() >= theme.px(low))
        self.measure.setVisible(self._is_compact and self.height() >= theme.px(_LOW_PX))

    @property
    def _shows_ladder(self) -> bool:
        return not self._is_compact and self.tabs.segments[_LADDER].isChecked()

    def _switch_tab(self) -> None:
        """Show the figures of the kernels, or the ladder in their place."""
        self.tabs.setVisible(not self._is_compact)
        for widget in (self.overview, self.fast_path, self.kernels):
            widget.setVisible(not self._shows_ladder)
        if self._shows_ladder:
            self.ladder.show()
        elif "ladder" in self.__dict__:
            self.ladder.hide()
        self._make_room()
        self._show_counters()
        self._show_steps()
        self._show_ladder()

    def _show_counters(self) -> None:
        """Show the button of the counters beside the kernels of a GPU."""
        self.counters.setVisible(self._has_graph and not self._is_compact and not self._shows_ladder)
        self.counters.setEnabled(self._has_model and not self._is_counting)
        self.counters.setText("Measuring counters…" if self._is_counting else "Measure counters")

    def _show_ladder(self) -> None:
        if self._shows_ladder and self._ladder_state is not None:
            self.ladder.show_state(self._ladder_state, can_start=self._has_model)

    @Slot()
    def _show_all(self) -> None:
        self._show_times()
        if self._statistics is not None:
            self.overview.show_plot(self._statistics)
        self._show_steps()

    def _show_times(self) -> None:
        self.overview.show_times(self._statistics)

    def _show_steps(self) -> None:
        statistics = self._statistics
        steps = statistics.steps if statistics is not None else ()
        if steps:
            self._keeps_steps = False
        elif self._keeps_steps:
            steps = self.table.steps.steps
        self.table.show_steps(steps, self._roofline)
        self.kernels.show_steps(steps, statistics.timing_source if statistics is not None else "cpu")
        shows_ladder = self._shows_ladder
        if not self._is_compact and not shows_ladder and self.height() >= theme.px(_ROOFLINE_PX):
            self.roofline.setVisible(bool(steps))
            self.roofline.show_steps(steps, self._roofline)
            self.roofline.show_chosen(self.table.chosen)
        elif "roofline" in self.__dict__:
            self.roofline.hide()
        self.table.setVisible(bool(steps) and not shows_ladder)
        self.empty.setVisible(not steps and not shows_ladder)
