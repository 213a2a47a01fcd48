"""The menu bar, filled from the table of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QMenuBar

from explorer_app.window.actions.action_table import ACTIONS, MENUS


def fill_menu_bar(
    bar: QMenuBar, actions: Mapping[str, QAction], docks: Sequence[QAction], recent: QMenu, devices: QMenu
) -> dict[str, QMenu]:
    """Fill a menu bar and return its menus by name.

    Parameters
    ----------
    actions
        The actions of the table, by key.
    docks
        What shows and hides each dock; they stand in View, before the themes.
    recent
        The menu of recent models; it stands below "Open model".
    devices
        The menu of devices; it stands in Model, before "Inspect".
    """
    menus: dict[str, QMenu] = {}
    for name in MENUS:
        menu = menus[name] = bar.addMenu(f"&{name}")
        menu.setToolTipsVisible(True)
        for spec in ACTIONS:
            if name not in (spec.menu, spec.also):
                continue
            if spec.key == "inspect" and name == "Model":
                menu.addMenu(devices)
            if spec.starts_section and not menu.isEmpty():
                menu.addSeparator()
            if spec.key == "theme-system":
                menu.addActions(list(docks))
                menu.addSeparator()
            menu.addAction(actions[spec.key])
            if spec.key == "open-model" and name == "File":
                menu.addMenu(recent)
    return menus
