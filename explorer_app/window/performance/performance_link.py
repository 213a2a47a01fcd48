"""Connects the performance panel to the engine and the preferences."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from explorer_app.controller import Engine, Ladder
from explorer_app.rendering.renderer_like import PROCESSOR_ID
from explorer_app.settings import Settings
from explorer_app.window.docks.dock import Dock
from explorer_app.window.docks.workspace import Workspace
from explorer_app.window.performance.performance_panel import PerformancePanel

COLUMNS_CHOICE = "performance_columns"
"""Settings key of the chosen columns."""


class PerformanceLink(QObject):
    """Shows the engine's figures in the panel, and passes the panel's requests to the engine.

    Steps are measured while the dock is visible. The panel is compact unless the workspace is Measure.
    """

    def __init__(
        self,
        panel: PerformancePanel,
        dock: Dock,
        workspace: Workspace,
        engine: Engine,
        ladder: Ladder,
        settings: Settings,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._panel = panel
        self._dock = dock
        self._engine = engine
        self._ladder = ladder
        self._is_stopped = False
        self._settings = settings
        engine.model_changed.connect(self._show_device)
        engine.devices.changed.connect(self._show_device)
        engine.options_changed.connect(self._show_options)
        engine.comparison_changed.connect(self._show_comparison)
        panel.options_changed.connect(engine.set_options)
        panel.compare_requested.connect(engine.compare)
        panel.counters_requested.connect(engine.measure_counters)
        engine.counting_changed.connect(self._show_counting)
        panel.ladder_requested.connect(ladder.start)
        panel.ladder_stop_requested.connect(ladder.stop)
        ladder.changed.connect(self._show_ladder)
        panel.columns_chosen.connect(self._remember_columns)
        panel.show_columns(settings.values.choices.get(COLUMNS_CHOICE, ""))
        self._show_device()
        self._show_options()
        self._show_comparison()
        self._show_ladder()
        workspace.switched.connect(self._show_workspace)
        self._show_workspace(workspace.name)
        engine.preview.statistics_changed.connect(self._show_statistics)
        dock.visibilityChanged.connect(self._set_on_show)
        if dock.is_seen:
            self._set_on_show(True)

    def stop(self) -> None:
        """Ignore the dock from now on: a window that closes hides it. May be called twice."""
        if not self._is_stopped:
            self._is_stopped = True
            self._dock.visibilityChanged.disconnect(self._set_on_show)

    @Slot(bool)
    def _set_on_show(self, on: bool) -> None:
        """Measure and show steps while the panel is visible."""
        self._panel.set_on_show(on)
        self._engine.set_measuring(on)

    @Slot(str)
    def _show_workspace(self, name: str) -> None:
        self._panel.set_compact(name != "measure")

    @Slot()
    def _show_statistics(self) -> None:
        self._panel.show_statistics(self._engine.preview.statistics)

    @Slot()
    def _show_device(self) -> None:
        state = self._engine.devices.state
        roofline = state.device.roofline if state.device is not None else None
        self._panel.set_has_model(self._engine.model.facts is not None)
        self._panel.show_device(has_graph=state.is_on_gpu, roofline=roofline)
        if state.device is None:
            self._panel.show_memory(None, PROCESSOR_ID)
        else:
            self._panel.show_memory(state.memory, state.device.id)
        compiling = state.compiling
        self._panel.show_compiling(compiling, state.renders_meanwhile)
        self._show_statistics()

    @Slot()
    def _show_options(self) -> None:
        self._panel.show_options(self._engine.options)

    @Slot()
    def _show_comparison(self) -> None:
        self._panel.show_comparison(self._engine.comparison, is_running=self._engine.is_comparing)

    @Slot()
    def _show_counting(self) -> None:
        self._panel.show_counting(self._engine.is_counting)

    @Slot()
    def _show_ladder(self) -> None:
        self._panel.show_ladder(self._ladder.state)

    @Slot(str)
    def _remember_columns(self, keys: str) -> None:
        self._settings.change(choices={**self._settings.values.choices, COLUMNS_CHOICE: keys})
