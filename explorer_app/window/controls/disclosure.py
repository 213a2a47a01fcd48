"""A collapsible section: a summary that is always visible, and details on demand."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy, QToolButton, QVBoxLayout, QWidget

from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import fonts, theme
from explorer_app.window.look.icons import icon

_LEAST_PX = 80
"""Smallest width of the summary, in px at the usual font size."""


class Disclosure(QWidget):
    """A button with a chevron, and a text below it that is initially hidden."""

    def __init__(self, summary: str, tip: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.button = QToolButton(self)
        self.button.setCheckable(True)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setIcon(icon("chevron-right", "dim"))
        self.button.setToolTip(tip)
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        # In a narrow panel the style elides the summary, which would otherwise push what is beside it out of sight.
        self.button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.button.setMinimumWidth(theme.px(_LEAST_PX))
        self.button.toggled.connect(self._toggled)
        theme.set_role(self.button, "flat")
        self.text = WrappedLabel("", self)
        self.text.setFont(fonts.table())
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        theme.set_role(self.text, "dim")
        self.text.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(2))
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self.text)
        self.show_text(summary, "")

    def show_text(self, summary: str, particulars: str) -> None:
        """Set the summary and the details; an open section stays open."""
        self.button.setText(summary)
        self.button.setAccessibleName(summary)
        self.text.setText(particulars)
        self.button.setEnabled(bool(particulars))

    def _toggled(self, opened: bool) -> None:
        self.button.setIcon(icon("chevron-down" if opened else "chevron-right", "dim"))
        self.text.setVisible(opened)
