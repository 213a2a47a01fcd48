"""Keeps the top bar, the status bar and the title of the window in step with model, device, speed and export."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtWidgets import QWidget

from explorer_app.controller import Engine, ExportQueueController, Files
from explorer_app.window.messages.message_strip import MessageStrip
from explorer_app.window.shell.status_bar import StatusBar
from explorer_app.window.shell.top_bar import TopBar
from gpu_backend import printable

_SPEED_MS = 250
"""Shortest interval between updates of the top bar's figures, so that they stay readable."""


class Bars(QObject):
    """Shows model, device and speed in the top bar, loading and export in the status bar.

    The title names project and model. The message strip closes messages that a change of device or export made
    needless.
    """

    def __init__(
        self,
        window: QWidget,
        top: TopBar,
        status: StatusBar,
        strip: MessageStrip,
        engine: Engine,
        export: ExportQueueController,
        files: Files,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._top = top
        self._status = status
        self._strip = strip
        self._engine = engine
        self._export = export
        self._files = files
        self._speed_timer = QTimer(self, singleShot=True, interval=_SPEED_MS)
        self._speed_timer.timeout.connect(self._show_speed)
        engine.model_changed.connect(self._show_model)
        engine.devices.changed.connect(self._show_device)
        engine.model.loading_changed.connect(self._show_loading)
        engine.preview.statistics_changed.connect(self._statistics_changed)
        export.changed.connect(self._show_export)
        files.project_changed.connect(self._show_title)
        self._show_model()
        self._show_export()
        self._show_speed()

    def stop(self) -> None:
        """Update the speed no more."""
        self._speed_timer.stop()

    @Slot()
    def _show_model(self) -> None:
        facts = self._engine.model.facts
        self._top.show_model(facts.name if facts else "", facts.path if facts else "")
        self._show_title()
        self._show_device()

    @Slot()
    def _show_title(self) -> None:
        """Show the project's file, with a star if it lacks changes, the model and the program."""
        facts, project = self._engine.model.facts, self._files.project
        star = "*" if self._files.is_changed else ""
        names = [printable(project.name) + star] if project is not None else []
        names += [printable(facts.name)] if facts is not None else []
        self._window.setWindowTitle(" – ".join([*names, "Latent Loom"]))

    @Slot()
    def _show_device(self) -> None:
        self._top.show_devices(self._engine.devices.state)
        self._strip.close_needless()
        self._show_loading()

    @Slot()
    def _show_loading(self) -> None:
        self._status.show_loading(self._engine.model.loading, self._engine.devices.state)

    @Slot()
    def _show_export(self) -> None:
        self._status.show_export(self._export.progress)
        self._strip.close_needless()

    @Slot()
    def _statistics_changed(self) -> None:
        if not self._speed_timer.isActive():
            self._speed_timer.start()

    @Slot()
    def _show_speed(self) -> None:
        statistics = self._engine.preview.statistics
        self._top.show_speed(statistics.fps, statistics.newest_ms)
