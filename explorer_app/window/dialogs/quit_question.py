"""Quitting while an export runs: finish it first, resume it later, or keep the window open."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtWidgets import QMessageBox, QWidget

from explorer_app.controller import ExportQueueController
from explorer_app.messages import MessageLog


class QuitQuestion(QObject):
    """Asks for confirmation before the window closes during an export.

    Parameters
    ----------
    window
        The window; it is closed again when the answer allows it.
    """

    def __init__(self, window: QWidget, export: ExportQueueController, messages: MessageLog) -> None:
        super().__init__(window)
        self._window = window
        self._export = export
        self._messages = messages
        self._may_close = False
        self._closes_after_export = False
        self._box: QMessageBox | None = None
        export.changed.connect(self._export_changed)

    @property
    def box(self) -> QMessageBox | None:
        """The message box while it is open."""
        return self._box

    def may_close(self) -> bool:
        """Return whether the window may close now; if not, ask, and close it when the answer allows it."""
        if self._may_close or self._export.progress is None:
            return True
        if self._box is None:
            self._ask()
        else:
            self._box.raise_()
            self._box.activateWindow()
        return False

    def allow(self) -> None:
        """Let the window close without a question."""
        self._may_close = True

    def _ask(self) -> None:
        progress = self._export.progress
        assert progress is not None
        box = QMessageBox(self._window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle("Quit Latent Loom")
        more = f" and {progress.waiting:,} more wait" if progress.waiting > 1 else " and one more waits"
        box.setText(
            f"The export “{progress.name}” is running: {progress.done:,} of {progress.total:,} frames are done"
            f"{more if progress.waiting else ''}."
        )
        box.setInformativeText(
            "Exports that you keep for later continue where they stopped; the next start offers to resume them."
        )
        finish = box.addButton("Finish, then quit", QMessageBox.ButtonRole.YesRole)
        keep = box.addButton("Stop and keep for later", QMessageBox.ButtonRole.AcceptRole)
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(keep)
        box.setEscapeButton(cancel)
        finish.clicked.connect(self._finish)
        keep.clicked.connect(self._keep)
        box.finished.connect(self._answered)
        self._box = box
        box.open()

    @Slot()
    def _finish(self) -> None:
        self._closes_after_export = True
        if self._export.progress is None:
            self._window.close()
        else:
            self._messages.info("The window closes when the exports are done.")

    @Slot()
    def _keep(self) -> None:
        self.allow()
        self._window.close()

    @Slot()
    def _answered(self) -> None:
        self._box = None

    @Slot()
    def _export_changed(self) -> None:
        """Close when the export is done; after a failure or a cancel keep the window, which shows the reason."""
        progress = self._export.progress
        if progress is not None:
            self._closes_after_export = self._closes_after_export and not progress.is_stopping
            return
        if self._box is not None:
            self._box.close()
        if self._closes_after_export:
            self._closes_after_export = False
            if self._export.has_succeeded:
                self._window.close()
