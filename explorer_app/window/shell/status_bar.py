"""The status bar: running operations and the state of the engine."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QStatusBar, QToolButton, QWidget

from explorer_app.controller import DeviceState
from explorer_app.controller.progress import ExportProgress, Loading
from explorer_app.exporting.progress import time_text
from explorer_app.window.controls.elided_label import ElidedLabel
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.look import fonts, theme
from explorer_app.window.look.icons import icon
from explorer_app.window.model import device_text
from gpu_backend import printable

_EXPORTS = "Show all exports."
_SLOWED = f"{_EXPORTS} While the picture moves, they get a twentieth of the time; pause it, and they get all."


class StatusBar(QStatusBar):
    """Shows the current operation, the engine's state and the export's progress.

    Signals
    -------
    export_cancel_requested()
        The export's Cancel button was pressed.
    exports_requested()
        The text of the export was clicked.
    work_requested()
        The text of other work was clicked.
    """

    export_cancel_requested = Signal()
    exports_requested = Signal()
    work_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizeGripEnabled(False)
        self.setAccessibleName("Status")
        self.message = ElidedLabel("", self)
        self.message.setAccessibleName("In progress")
        self.work = QToolButton(self)
        self.work.setToolTip("Show what runs in the background.")
        self.work.clicked.connect(self.work_requested)
        self.work.setFont(fonts.table())
        theme.set_role(self.work, "flat")
        self.export = QWidget(self)
        self.export_text = QToolButton(self.export)
        self.export_text.setToolTip(_EXPORTS)
        self.export_text.clicked.connect(self.exports_requested)
        theme.set_role(self.export_text, "flat")
        self.export_bar = QProgressBar(self.export)
        self.export_bar.setTextVisible(False)
        self.export_bar.setFixedWidth(theme.px(120))
        self.export_bar.setAccessibleName("Export")
        self.export_cancel = QToolButton(self.export)
        self.export_cancel.setIcon(icon("cancel", "dim"))
        self.export_cancel.setToolTip("Stop the export; finished frames stay, and it can be resumed later.")
        self.export_cancel.setAccessibleName("Cancel export")
        self.export_cancel.clicked.connect(self.export_cancel_requested)
        theme.set_role(self.export_cancel, "flat")
        row = QHBoxLayout(self.export)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.px(8))
        row.addWidget(self.export_text)
        row.addWidget(self.export_bar)
        row.addWidget(self.export_cancel)
        self.engine = QLabel(self)
        self.engine.setAccessibleName("Engine")
        self.export_text.setFont(fonts.table())
        for label in (self.message, self.engine):
            label.setFont(fonts.table())
            theme.set_role(label, "dim")
        self.setContentsMargins(theme.px(12), 0, theme.px(12), 0)
        self.addWidget(self.message, 1)
        self.addPermanentWidget(self.work)
        self.addPermanentWidget(self.export)
        self.addPermanentWidget(self.engine)
        self.setMinimumHeight(theme.px(26))
        self.show_work("")
        self.show_export(None)

    def show_now(self, text: str, tip: str = "") -> None:
        """Show the current operation; an empty text clears it."""
        self.message.setText(text)
        self.message.setToolTip(plain_tip(tip))

    def show_work(self, text: str) -> None:
        """Show what runs in the background besides exports; an empty text hides it."""
        if text != self.work.text() or not text:
            self.work.setText(text)
            self.work.setVisible(bool(text))

    def show_engine(self, text: str, tip: str = "") -> None:
        """Show the engine's state, such as "CPU ready"."""
        self.engine.setText(text)
        self.engine.setToolTip(tip)

    def show_loading(self, loading: Loading | None, devices: DeviceState) -> None:
        """Show the progress of reading a model, and the engine's state."""
        self.show_engine(device_text.engine_text(devices), devices.reason)
        if loading is None:
            self.show_now("")
        else:
            share = f" {100 * loading.share:.0f} %" if loading.total > 0 else "…"
            self.show_now(f"{printable(Path(loading.path).name)}: {loading.stage.lower()}{share}", loading.path)

    def show_export(self, progress: ExportProgress | None) -> None:
        """Show an export's progress with the time left and a cancel button; None hides it."""
        self.export.setVisible(progress is not None)
        if progress is None:
            return
        left = ""
        if progress.is_stopping:
            left = " · stopping"
        elif progress.is_joining:
            left = " · joining"
        elif progress.seconds_left is not None and progress.done < progress.total:
            left = f" · {time_text(progress.seconds_left)} left"
        waiting = f" · {progress.waiting:,} more" if progress.waiting else ""
        name = printable(progress.name).replace("&", "&&")
        self.export_text.setText(f"Export “{name}” {progress.done:,} / {progress.total:,}{left}{waiting}")
        self.export_text.setToolTip(_EXPORTS if progress.picture_rate is None else _SLOWED)
        self.export_bar.setRange(0, max(1, progress.total))
        self.export_bar.setValue(progress.done)
        self.export_cancel.setEnabled(not progress.is_stopping)
