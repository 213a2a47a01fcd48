"""One row of the table of actions."""

from __future__ import annotations

from typing import Literal

from gpu_backend import dataclass

Menu = Literal["File", "Edit", "View", "Model", "Play", "Help"]
Need = Literal["", "model", "picture", "undo", "redo", "exporting", "transform", "gpu"]

MENUS: tuple[Menu, ...] = ("File", "Edit", "View", "Model", "Play", "Help")


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One row of the table.

    Attributes
    ----------
    key
        Name of the action.
    text
        Menu text; an ampersand marks the mnemonic.
    icon
        Name from `explorer_app.window.look.icons`, empty for none.
    shortcuts
        Key sequences; menus show the first.
    command
        Group and method of `Commands` that it calls: "files.open_model".
    tip
        One sentence; ``{log_path}`` is replaced by the path of the log file.
    menu
        Menu of the action; `also` names a second one, as for Inspect.
    submenu
        Title of the menu inside that one which holds the action, with its mnemonic; empty for none.
    needs
        Condition that enables the action; transform actions are hidden if the network has no transform.
    checkable
        Whether the action is checkable; its method gets the state.
    group
        Group of exclusive actions; empty for none.
    starts_section
        Whether a separator precedes it in the menu.
    button
        Text of its buttons; empty for the menu text.
    """

    key: str
    text: str
    icon: str
    shortcuts: tuple[str, ...]
    command: str
    menu: Menu
    tip: str
    needs: Need = ""
    checkable: bool = False
    group: str = ""
    starts_section: bool = False
    also: Menu | None = None
    submenu: str = ""
    button: str = ""

    @property
    def plain_text(self) -> str:
        """The menu text without ampersand and ellipsis."""
        return self.text.replace("&", "").rstrip("…")
