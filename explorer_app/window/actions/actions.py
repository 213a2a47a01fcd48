"""Builds the QActions of the table, and the menu bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar

from explorer_app.logs import log_path
from explorer_app.window.actions.action_table import ACTIONS, MENUS
from explorer_app.window.look.icons import icon

_PANELS = "Pane&ls"


def make_actions(owner: QObject, commands: object) -> dict[str, QAction]:
    """Return key -> QAction for each row of the table, connected to its command, an attribute path of `commands`."""
    made: dict[str, QAction] = {}
    for spec in ACTIONS:
        action = QAction(spec.text, owner)
        action.setObjectName(spec.key)
        action.setIconText(spec.button or spec.text.replace("&", ""))
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
        command = attrgetter(spec.command)(commands)
        if spec.checkable:
            action.triggered.connect(command)
        else:
            action.triggered.connect(lambda _=False, command=command: command())
        made[spec.key] = action
    return made


def enable(actions: Mapping[str, QAction], there: set[str]) -> None:
    """Enable each action whose condition is in `there`; hide the actions of features that the network lacks."""
    for spec in ACTIONS:
        actions[spec.key].setVisible(spec.needs != "transform" or spec.needs in there)
        actions[spec.key].setEnabled(not spec.needs or spec.needs in there)


def fill_menu_bar(
    bar: QMenuBar, actions: Mapping[str, QAction], docks: Sequence[QAction], recent: QMenu, devices: QMenu
) -> dict[str, QMenu]:
    """Fill a menu bar and return its menus by name.

    Parameters
    ----------
    actions
        The actions of the table, by key.
    docks
        Actions that show and hide the docks; placed in View > Panels, before the themes.
    recent
        The menu of recent models; placed below "Open model".
    devices
        The menu of devices; placed in Model, before "Inspect".
    """
    menus: dict[str, QMenu] = {}
    for name in MENUS:
        menu = menus[name] = bar.addMenu(f"&{name}")
        menu.setToolTipsVisible(True)
        submenus: dict[str, QMenu] = {}
        for spec in ACTIONS:
            if name not in (spec.menu, spec.also):
                continue
            if spec.key == "inspect" and name == "Model":
                menu.addMenu(devices)
            if spec.starts_section and not menu.isEmpty():
                menu.addSeparator()
            if spec.key == "theme-system":
                menu.addMenu(_PANELS).addActions(list(docks))
            if spec.submenu and spec.submenu not in submenus:
                submenus[spec.submenu] = menu.addMenu(spec.submenu)
                submenus[spec.submenu].setToolTipsVisible(True)
            submenus.get(spec.submenu, menu).addAction(actions[spec.key])
            if spec.key == "open-model" and name == "File":
                menu.addMenu(recent)
    return menus
