"""The table of actions comes alive: one QAction a line, connected to what it asks for."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence

from explorer_app.logs import log_path
from explorer_app.window.actions.action_table import ACTIONS
from explorer_app.window.look.icons import icon


def make_actions(owner: QObject, commands: QObject) -> dict[str, QAction]:
    """Return the actions of the table, by key, connected to the commands they ask for."""
    made: dict[str, QAction] = {}
    for spec in ACTIONS:
        action = QAction(spec.text, owner)
        action.setObjectName(spec.key)
        action.setIconText(spec.text.replace("&", ""))
        if spec.icon:
            action.setIcon(icon(spec.icon))
        sequences = [QKeySequence(text) for text in spec.shortcuts]
        action.setShortcuts(sequences)
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        shown = sequences[0].toString(QKeySequence.SequenceFormat.NativeText)
        tip = spec.tip.replace("{log_path}", str(log_path()))
        action.setToolTip(f"{tip.rstrip('.')} ({shown}).")
        action.setStatusTip("")
        action.setCheckable(spec.checkable)
        ask = getattr(commands, spec.asks)
        if spec.checkable:
            action.triggered.connect(ask)
        else:
            action.triggered.connect(lambda _=False, ask=ask: ask())
        made[spec.key] = action
    return made


def enable(actions: Mapping[str, QAction], there: set[str]) -> None:
    """Enable each action whose need is among what is there; what few networks have is hidden for the others."""
    for spec in ACTIONS:
        actions[spec.key].setVisible(spec.needs != "transform" or spec.needs in there)
        actions[spec.key].setEnabled(not spec.needs or spec.needs in there)
