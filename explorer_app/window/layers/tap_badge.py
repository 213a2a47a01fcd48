"""The badge below the picture while a layer is shown, which returns to the picture."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from explorer_app.window.layers.layer_text import channels_text
from explorer_app.window.look import fonts, theme
from explorer_app.window.look.icons import icon
from gpu_backend import Tap


class TapBadge(QToolButton):
    """Names the shown layer; a click requests the picture. Hidden while the picture is shown."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setIcon(icon("layers", "accent_text"))
        self.setIconSize(QSize(theme.px(14), theme.px(14)))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFont(fonts.table())
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        theme.set_role(self, "badge")
        self.show_tap(None)

    def show_tap(self, tap: Tap | None) -> None:
        """Name a layer; None hides the badge."""
        self.setVisible(tap is not None)
        if tap is None:
            return
        words = f"{tap.layer}, {channels_text(tap)}"
        self.setText(f"{words}  ×")
        self.setAccessibleName(f"{words}; show the picture")
        self.setToolTip(f"The layer {words} is shown; a click shows the picture again (Escape, or L to switch).")
        self.adjustSize()
