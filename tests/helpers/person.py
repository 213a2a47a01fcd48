"""A user of the real program, driven by real events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QWidget

from explorer_app.app import App, Places
from explorer_app.messages import Level, MessageLog
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from explorer_app.window.export.export_dialog import ExportDialog
from gpu_backend import Frame
from tests.helpers.patience import PATIENCE_MS
from tests.helpers.windows import dialog_of


class Person:
    """Uses the program, which keeps its settings and its last session in `folder`.

    Keywords go to `App`: how models are read and rendered. Without any everything is real, on the bundled model.
    """

    def __init__(self, qapp: QApplication, folder: Path, qtbot: Any, **parts: Any) -> None:
        self._qtbot = qtbot
        self._has_left = False
        self.messages = MessageLog()
        self.app = App(qapp, self.messages, Places(folder / "settings.json", folder / "state"), **parts)
        self.window = self.app.window
        self.canvas = self.window.canvas
        self.controller = self.app.controller

    # -- beginning, waiting, ending ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the program and look at its first picture."""
        self.app.start()
        self.look()

    def until(self, is_so: Callable[[], object]) -> None:
        self._qtbot.waitUntil(lambda: bool(is_so()), timeout=PATIENCE_MS)

    def look(self) -> Frame:
        """Wait until the picture of the session is on the canvas in full, and return it."""

        def answers() -> bool:
            frame = self.canvas.frame
            wanted = resolve(self.session)
            return frame is not None and replace(frame.request, measure_steps=False) == wanted and not frame.is_draft

        self.until(answers)
        assert self.canvas.frame is not None
        return self.canvas.frame

    def close(self) -> None:
        """Close the window, then let the program end. May be called twice."""
        if self._has_left:
            return
        self._has_left = True
        self.window.close()
        self.app.close()
        self.window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

    # -- what they see ----------------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        return self.controller.editing.session

    @property
    def labels(self) -> list[str]:
        """Labels of the history up to the current step."""
        history = self.controller.editing.history
        return [entry.label for entry in history.entries[: history.position + 1]]

    def said(self, level: Level = Level.INFO) -> list[str]:
        """Sentences at a level or above."""
        return [message.sentence for message in self.messages.messages if message.level >= level]

    # -- what they do -----------------------------------------------------------------------------------------------

    def press_keys(self, keys: str) -> None:
        """Press a shortcut with the keyboard at the canvas; without a window manager a popup leaves it nowhere."""
        self.window.activateWindow()
        self.until(self.window.isActiveWindow)
        QTest.keySequence(self.canvas, keys)

    def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        """Click a widget, in its middle."""
        assert widget.isVisible()
        assert widget.isEnabled()
        QTest.mouseClick(
            widget, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, at or widget.rect().center()
        )

    def type_into(self, field: QWidget, text: str) -> None:
        """Replace what is in a field."""
        field.setFocus()
        QTest.keySequence(field, "Ctrl+A")
        QTest.keyClicks(field, text)

    def answer_file_dialog(self, path: Path) -> None:
        """Paste a path into the file dialog that is open and press Enter; typing would open a list of suggestions."""
        self.until(lambda: any(dialog.isVisible() for dialog in self.window.findChildren(QFileDialog)))
        dialog = dialog_of(self.window, QFileDialog)
        field = dialog.findChild(QLineEdit, "fileNameEdit")
        assert field is not None
        field.selectAll()
        field.insert(str(path))
        QTest.keyClick(field, Qt.Key.Key_Return)
        self.until(lambda: not self.window.findChildren(QFileDialog))

    def ask_for_export(self, folder: Path, name: str, seeds: str, frames_per_step: int) -> None:
        """Have a path exported that begins with the picture as it is now and goes on through seeds."""
        self.press_keys("Ctrl+E")
        dialog = dialog_of(self.window, ExportDialog)
        dialog.path.keys.selectAll()  # it may offer the path of the last export
        QTest.keyClick(dialog.path.keys, Qt.Key.Key_Delete)
        self.click(dialog.path.add_current)
        self.type_into(dialog.path.seeds, seeds)
        QTest.keyClick(dialog.path.seeds, Qt.Key.Key_Return)
        self.type_into(dialog.interpolation.frames, str(frames_per_step))
        self.type_into(dialog.names.folder.line, str(folder))
        self.type_into(dialog.names.name, name)
        self.click(dialog.export)
        self.until(lambda: not self.window.findChildren(ExportDialog))
