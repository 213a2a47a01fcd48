"""Joins the performance panel to the controller: what is shown, what is asked for, what is remembered."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from explorer_app.controller import Controller
from explorer_app.settings import Settings
from explorer_app.window.performance.input_age import InputAge
from explorer_app.window.performance.performance_panel import PerformancePanel

COLUMNS_CHOICE = "performance_columns"
"""Under which name the chosen columns are kept."""


class PerformanceLink(QObject):
    """Shows the panel what the controller knows, and takes its wishes there."""

    def __init__(self, panel: PerformancePanel, controller: Controller, settings: Settings, parent: QObject) -> None:
        super().__init__(parent)
        self._panel = panel
        self._controller = controller
        self._settings = settings
        self.input_age = InputAge(self)
        self.input_age.input_came.connect(controller.input_came)
        controller.model_changed.connect(self._show_device)
        controller.device_changed.connect(self._show_device)
        controller.render_options_changed.connect(self._show_options)
        controller.comparison_changed.connect(self._show_comparison)
        panel.options_changed.connect(controller.set_render_options)
        panel.compare_requested.connect(controller.compare)
        panel.columns_chosen.connect(self._remember_columns)
        panel.show_columns(settings.values.choices.get(COLUMNS_CHOICE, ""))
        self._show_device()
        self._show_options()
        self._show_comparison()

    @Slot(bool)
    def set_on_show(self, on: bool) -> None:
        """Measure steps and show them while somebody sees the panel."""
        self._panel.set_on_show(on)
        self._controller.set_measuring(on)

    @Slot()
    def _show_device(self) -> None:
        state = self._controller.devices
        roofline = state.device.roofline if state.device is not None else None
        self._panel.show_device(has_graph=state.is_on_gpu, roofline=roofline)
        self._panel.show_memory(state.memory if state.device is not None else None)
        compiling = state.compiling
        if compiling is None:
            self._panel.show_compiling(0, 0)
        else:
            self._panel.show_compiling(compiling.done, compiling.total, state.renders_meanwhile)
        self._panel.show_statistics(self._controller.statistics)

    @Slot()
    def _show_options(self) -> None:
        self._panel.show_options(self._controller.render_options)

    @Slot()
    def _show_comparison(self) -> None:
        self._panel.show_comparison(self._controller.comparison, is_running=self._controller.is_comparing)

    @Slot(str)
    def _remember_columns(self, keys: str) -> None:
        self._settings.change(choices={**self._settings.values.choices, COLUMNS_CHOICE: keys})
