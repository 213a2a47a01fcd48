"""Commands of the Help menu."""

from __future__ import annotations

from typing import Protocol

from PySide6.QtCore import QUrl
from PySide6.QtGui import QAction, QDesktopServices, QGuiApplication

from explorer_app.controller import Engine
from explorer_app.logs import log_path
from explorer_app.messages import MessageLog
from explorer_app.window.docks.workspace import Workspace
from explorer_app.window.shell.dialogs import Dialogs
from explorer_app.window.shell.hints import Hints


class HelpParts(Protocol):
    """The parts of the main window that these commands use; they exist once the window is built."""

    actions_by_key: dict[str, QAction]
    hints: Hints
    workspace: Workspace


class HelpCommands:
    """Tour, shortcuts, report, log, About."""

    def __init__(self, dialogs: Dialogs, parts: HelpParts, engine: Engine, messages: MessageLog) -> None:
        self._dialogs = dialogs
        self._parts = parts
        self._engine = engine
        self._messages = messages

    def show_tour(self) -> None:
        """Show the hints of the first start again, in the workspace that has their panels."""
        self._parts.workspace.set_panels_shown(True)
        self._parts.workspace.switch_to("explore")
        self._parts.hints.show_all()

    def show_shortcuts(self) -> None:
        """List every shortcut."""
        from explorer_app.window.dialogs.shortcuts_dialog import ShortcutsDialog

        docks = [
            (f"{dock.windowTitle()} panel", dock.toggleViewAction().shortcut().toString())
            for dock in self._parts.workspace.docks
        ]
        hidden = [key for key, action in self._parts.actions_by_key.items() if not action.isVisible()]
        self._dialogs.open(ShortcutsDialog(docks, self._dialogs.window, hidden=hidden))

    def show_about(self) -> None:
        """Open the About dialog."""
        from explorer_app.window.dialogs.about import AboutDialog

        self._dialogs.open(AboutDialog(self._dialogs.window))

    def copy_report(self) -> None:
        """Copy a bug report to the clipboard."""
        from explorer_app.window.dialogs.about import report

        text = report(self._engine.model.facts, self._engine.devices.state.device, self._messages.messages)
        QGuiApplication.clipboard().setText(text)
        self._messages.info("The report is on the clipboard.")

    def show_log_folder(self) -> None:
        """Open the folder of the log file; if the system has no file manager, show its path."""
        path = log_path()
        folder = path.parent
        if not folder.is_dir() or not QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder))):
            self._messages.info(f"The log file is {path}.")
