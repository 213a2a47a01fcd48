"""Help > Shortcuts: the actions with their shortcuts, and the mouse gestures."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QBoxLayout,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from explorer_app.window.actions.action_table import ACTIONS, MENUS
from explorer_app.window.controls.column_scroll import ColumnScroll
from explorer_app.window.look import fonts, theme

GESTURES: dict[str, tuple[tuple[str, str], ...]] = {
    "By hand": (
        ("Drag, arrow keys", "Walk the seed plane"),
        ("Shift", "Ten times finer"),
        ("Wheel", "Zoom at the pointer"),
        ("Space and drag, middle drag", "Pan"),
        ("Escape", "Cancel the drag and restore the picture"),
        ("Escape on the picture", "Show the picture, not a layer"),
        ("Double-click on a value", "Back to its neutral value"),
        ("Ctrl on a slider or a handle", "Snap"),
        ("Enter on a button", "Press it"),
        ("Menu key, Shift+F10", "Open the menu of what has the focus"),
    ),
    "In the grid of variations": (
        ("Arrow keys", "Choose a cell"),
        ("Enter", "Continue from the cell"),
        ("K or S", "Keep the cell"),
        ("L", "Lock the cell"),
        ("Space", "Pick the cell as a parent"),
        ("R", "Roll again"),
        ("B", "Breed"),
        ("Escape or V", "Show the picture"),
    ),
    "In the timeline": (
        ("Space", "Play or pause"),
        ("Left, Right", "Move keys, or the playhead, by a frame"),
        ("Up, Down", "Raise or lower keys, or go to a track"),
        ("Ctrl+Up, Ctrl+Down", "Go from track to track"),
        ("Ctrl+Left, Ctrl+Right", "Select the next key, with Shift one more"),
        ("Enter", "Go to the selected key, or make one"),
        ("Shift and an arrow key", "Ten times as far"),
        ("Home, End", "To the start or end of what plays"),
        ("Ctrl+A", "Select all keys"),
        ("Ctrl+C, Ctrl+X, Ctrl+V", "Copy, cut, paste keys"),
        ("Delete", "Delete keys"),
    ),
    "In the sounds": (
        ("Up, Down", "Choose a sound"),
        ("Left, Right", "Move it by a frame, with Shift by ten"),
        ("Enter", "Open its menu"),
    ),
}
"""Gestures and keys that belong to no action, by section."""


_AROUND_PX = 72
"""Width of what is beside the columns: margins, the scroll bar, the frame of the window."""


class ShortcutsDialog(QDialog):
    """Sections as in the menu bar, in two columns where the screen is wide enough, with a filter field.

    Parameters
    ----------
    docks
        (text, shortcut) of the docks, which are not in the action table.
    hidden
        Keys of the actions that do not apply to the open model.
    """

    def __init__(
        self, docks: Sequence[tuple[str, str]], parent: QWidget | None = None, *, hidden: Collection[str] = ()
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Shortcuts")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.filter = QLineEdit(self)
        self.filter.setPlaceholderText("Find an action or a key")
        self.filter.setAccessibleName("Find a shortcut")
        self.filter.setClearButtonEnabled(True)
        self.filter.textChanged.connect(self._narrow)
        self._sections: list[tuple[QWidget, list[tuple[QWidget, QWidget, str]]]] = []
        sections = {
            str(menu): [
                (
                    spec.plain_text,
                    " or ".join(
                        QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText) for keys in spec.shortcuts
                    ),
                )
                for spec in ACTIONS
                if spec.menu == menu and spec.key not in hidden
            ]
            for menu in MENUS
        }
        sections["View"] += list(docks)
        sections |= {title: [(what, how) for how, what in lines] for title, lines in GESTURES.items()}
        columns = QWidget(self)
        sides = QHBoxLayout(columns)
        sides.setContentsMargins(0, 0, theme.px(8), 0)
        sides.setSpacing(theme.px(32))
        for names in (("File", "Edit", "Model", "Play", "Help"), ("View", *GESTURES)):
            side = QVBoxLayout()
            side.setSpacing(theme.px(16))
            for name in names:
                side.addWidget(self._section(name, sections[name]))
            side.addStretch(1)
            sides.addLayout(side, 1)
        if columns.minimumSizeHint().width() > self.screen().availableGeometry().width() - theme.px(_AROUND_PX):
            sides.setDirection(QBoxLayout.Direction.TopToBottom)
        area = ColumnScroll(columns, self)
        layout = QVBoxLayout(self)
        edge = theme.px(16)
        layout.setContentsMargins(edge, edge, edge, edge)
        layout.setSpacing(theme.px(12))
        layout.addWidget(self.filter)
        layout.addWidget(area, 1)
        self.resize(theme.px(760), theme.px(690))
        self.filter.setFocus()

    @property
    def shown(self) -> list[str]:
        """Names of the actions that match the filter."""
        return [text for _, rows in self._sections for label, _, text in rows if not label.isHidden()]

    def _section(self, title: str, lines: Sequence[tuple[str, str]]) -> QWidget:
        section = QWidget(self)
        grid = QGridLayout(section)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(theme.px(4))
        grid.setColumnStretch(0, 1)
        head = QLabel(title, section)
        head.setFont(fonts.strong())
        theme.set_role(head, "strong")
        grid.addWidget(head, 0, 0, 1, 2)
        rows: list[tuple[QWidget, QWidget, str]] = []
        for row, (text, keys) in enumerate(lines, start=1):
            label = QLabel(text, section)
            key = QLabel(keys, section)
            key.setFont(fonts.table())
            key.setAccessibleName(f"{text}: {keys}")
            theme.set_role(key, "dim")
            grid.addWidget(label, row, 0)
            grid.addWidget(key, row, 1, Qt.AlignmentFlag.AlignRight)
            rows.append((label, key, text))
        self._sections.append((section, rows))
        return section

    def _narrow(self, wanted: str) -> None:
        wanted = wanted.strip().lower()
        for section, rows in self._sections:
            left = 0
            for label, key, text in rows:
                keys = key.text() if isinstance(key, QLabel) else ""
                fits = wanted in text.lower() or wanted in keys.lower()
                label.setVisible(fits)
                key.setVisible(fits)
                left += fits
            section.setVisible(left > 0)
