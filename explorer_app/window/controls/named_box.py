"""A combo box that has a name for screen readers without a label beside it."""

from __future__ import annotations

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QComboBox, QLabel, QWidget


class NamedBox(QComboBox):
    """A combo box with an accessible name.

    On Linux Qt gives screen readers the chosen text for the name of a combo box, and what it is for only by a label
    beside it whose buddy it is: a hidden one does.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self._label = QLabel(name, parent)
        self._label.setBuddy(self)
        self._label.hide()

    def event(self, event: QEvent) -> bool:
        """Keep the label beside the box."""
        if event.type() == QEvent.Type.ParentChange:
            self._label.setParent(self.parentWidget())
        return super().event(event)
