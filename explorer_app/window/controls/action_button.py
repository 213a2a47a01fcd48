"""A button bound to a QAction: it shows the action's text and state, and triggers it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QAction, QIcon
from PySide6.QtWidgets import QPushButton, QWidget

from explorer_app.window.look import theme


class ActionButton(QPushButton):
    """Shows its action's text, or only the icon when compact."""

    def __init__(self, action: QAction, parent: QWidget | None = None, *, role: str = "") -> None:
        super().__init__(parent)
        self._action = action
        self._is_compact = False
        self.setCheckable(action.isCheckable())
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        if role:
            theme.set_role(self, role)
        action.changed.connect(self._obey)
        self.clicked.connect(action.trigger)
        self._obey()

    def set_compact(self, compact: bool) -> None:
        """Show only the icon, or only the text."""
        if compact != self._is_compact:
            self._is_compact = compact
            self._obey()

    def full_width(self) -> int:
        """Return the width in px with text."""
        words = self.fontMetrics().horizontalAdvance(self._action.iconText())
        return words + theme.px(24)

    @Slot()
    def _obey(self) -> None:
        text = self._action.iconText().replace("&", "")
        self.setText("" if self._is_compact else text)
        self.setIcon(self._action.icon() if self._is_compact else QIcon())
        self.setEnabled(self._action.isEnabled())
        self.setChecked(self._action.isChecked())
        self.setToolTip(self._action.toolTip())
        self.setAccessibleName(text.rstrip("…"))
