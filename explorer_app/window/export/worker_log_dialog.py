"""What the workers of a farm logged last."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from explorer_app.controller import ExportQueueController
from explorer_app.window.controls.named_box import NamedBox
from explorer_app.window.look import fonts, theme


class WorkerLogDialog(QDialog):
    """Shows the log of one worker of the farm that renders the current export; another one can be chosen.

    Parameters
    ----------
    export
        Fetches logs.
    workers
        Names of the workers.
    """

    def __init__(self, export: ExportQueueController, workers: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Logs of workers")
        self._export = export
        self.worker = NamedBox("Worker", self)
        self.worker.setToolTip("The worker whose log is shown.")
        self.worker.addItems(list(workers))
        self.refresh = QPushButton("Refresh", self)
        self.refresh.setToolTip("Fetch the worker's newest log lines.")
        self.refresh.setAutoDefault(False)
        self.close_button = QPushButton("Close", self)
        self.close_button.setDefault(True)
        self.text = QPlainTextEdit(self)
        self.text.setReadOnly(True)
        self.text.setFont(fonts.caption())
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setAccessibleName("Log")
        self.state = QLabel(self)
        theme.set_role(self.state, "dim")
        top = QHBoxLayout()
        top.setSpacing(theme.px(8))
        top.addWidget(QLabel("Worker", self))
        top.addWidget(self.worker, 1)
        top.addWidget(self.refresh)
        bottom = QHBoxLayout()
        bottom.addWidget(self.state, 1)
        bottom.addWidget(self.close_button)
        whole = QVBoxLayout(self)
        edge = theme.px(16)
        whole.setContentsMargins(edge, edge, edge, edge)
        whole.setSpacing(theme.px(12))
        whole.addLayout(top)
        whole.addWidget(self.text, 1)
        whole.addLayout(bottom)
        self.resize(theme.px(760), theme.px(420))
        self.worker.currentIndexChanged.connect(self._choose)
        self.refresh.clicked.connect(self._fetch)
        self.close_button.clicked.connect(self.accept)
        export.log_arrived.connect(self._show_log)
        self._fetch()

    @Slot()
    def _choose(self) -> None:
        self.text.clear()
        self._fetch()

    @Slot()
    def _fetch(self) -> None:
        self.state.setText(f"Fetching the log of {self.worker.currentText()}…")
        self._export.request_log(self.worker.currentText())

    @Slot(str, object)
    def _show_log(self, worker: str, lines: Sequence[str] | None) -> None:
        if worker != self.worker.currentText():
            return
        if lines is None:  # what was fetched before stays
            progress = self._export.progress
            if progress is None or worker not in progress.worker_names:
                self.state.setText(f"The export has ended; `latentloom farm log {worker}` prints this log.")
            else:
                self.state.setText(f"{worker} has left the farm or does not answer.")
            return
        self.text.setPlainText("\n".join(lines))
        bar = self.text.verticalScrollBar()
        bar.setValue(bar.maximum())  # the newest lines are the last
        if lines:
            self.state.setText(f"The last {len(lines):,} line{'' if len(lines) == 1 else 's'}")
        else:
            self.state.setText(f"{worker} has logged nothing.")
