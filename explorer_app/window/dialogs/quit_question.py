"""Quitting while an export runs or the session cannot be saved: finish first, quit all the same, or stay."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QMessageBox, QWidget

from explorer_app.controller import Editing, ExportQueueController
from explorer_app.messages import MessageLog


class QuitQuestion(QObject):
    """Asks for confirmation before the window closes during an export, or while changes cannot be saved.

    Parameters
    ----------
    window
        The window; it is closed again when the answer allows it.
    """

    def __init__(self, window: QWidget, export: ExportQueueController, editing: Editing, messages: MessageLog) -> None:
        super().__init__(window)
        self._window = window
        self._export = export
        self._editing = editing
        self._messages = messages
        self._may_close = False
        self._closes_after_export = False
        self._keeps_export = False
        """Whether the answer about the export was to keep it for later."""
        self._asks_about_export = False
        self._box: QMessageBox | None = None
        export.changed.connect(self._export_changed)

    @property
    def box(self) -> QMessageBox | None:
        """The message box while it is open."""
        return self._box

    def may_close(self) -> bool:
        """Return whether the window may close now; if not, ask, and close it when the answer allows it."""
        asks_about_export = self._export.progress is not None and not self._keeps_export
        if self._may_close or not (asks_about_export or self._editing.unsaved):
            return True
        if self._box is not None:
            self._box.raise_()
            self._box.activateWindow()
        elif asks_about_export:
            self._ask_about_export()
        else:
            self._ask_about_session()
        return False

    def allow(self) -> None:
        """Let the window close without a question."""
        self._may_close = True

    def _ask_about_export(self) -> None:
        progress = self._export.progress
        assert progress is not None
        box = self._new_box(about_export=True)
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
        box.open()

    def _ask_about_session(self) -> None:
        self._keeps_export = False  # another answer than to quit asks about it again
        box = self._new_box(about_export=False)
        box.setText("The newest changes are not saved, and are lost if you quit now.")
        box.setInformativeText(f"{self._editing.unsaved}\nOr save the session elsewhere first (File > Save session).")
        again = box.addButton("Try again", QMessageBox.ButtonRole.ActionRole)
        leave = box.addButton("Quit without saving", QMessageBox.ButtonRole.DestructiveRole)
        cancel = box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(cancel)
        box.setEscapeButton(cancel)
        again.clicked.connect(self._editing.save_now)
        leave.clicked.connect(self._close_window)
        box.open()

    def _new_box(self, *, about_export: bool) -> QMessageBox:
        self._asks_about_export = about_export
        self._box = box = QMessageBox(self._window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setWindowTitle("Quit Latent Loom")
        box.finished.connect(self._answered)
        return box

    @Slot()
    def _finish(self) -> None:
        self._closes_after_export = True
        if self._export.progress is None:
            self._window.close()
        else:
            self._messages.info("The window closes when the exports are done.")

    @Slot()
    def _keep(self) -> None:
        if self._editing.unsaved:  # a question of its own, once this one is closed
            self._keeps_export = True
            QTimer.singleShot(0, self._window, self._window.close)
        else:
            self._close_window()

    @Slot()
    def _close_window(self) -> None:
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
        if self._box is not None and self._asks_about_export:
            self._box.close()
        if self._closes_after_export:
            self._closes_after_export = False
            if self._export.has_succeeded:
                self._window.close()
