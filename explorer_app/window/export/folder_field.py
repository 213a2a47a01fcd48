"""A field for the folder of an export's files."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QWidget

from explorer_app.window.controls.folder_chooser import choose_folder
from explorer_app.window.look import theme


class FolderField(QWidget):
    """A line with a path, and a button that chooses it.

    Parameters
    ----------
    text
        The path at first.
    tip
        Tooltip of the line.
    title
        Title of the dialog that the button opens.
    """

    changed = Signal()

    def __init__(self, text: str, tip: str, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._title = title
        self.line = QLineEdit(text, self)
        self.line.setAccessibleName("Folder")
        self.line.setToolTip(tip)
        self.browse = QPushButton("Choose…", self)
        self.browse.setToolTip("Choose the folder.")
        self.browse.clicked.connect(self._choose)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.px(6))
        row.addWidget(self.line, 1)
        row.addWidget(self.browse)
        self.setFocusProxy(self.line)
        self.line.textChanged.connect(self.changed)

    @property
    def is_empty(self) -> bool:
        """Whether no folder is entered."""
        return not self.line.text().strip()

    @property
    def path(self) -> Path:
        """The folder as entered, with ~ expanded."""
        folder = Path(self.line.text().strip())
        try:
            return folder.expanduser()
        except RuntimeError:  # no user has the name after ~
            return folder

    def _choose(self) -> None:
        choose_folder(self._title, self.line)
