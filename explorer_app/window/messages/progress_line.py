"""Progress of reading a model, below a picture that is still shown, with a cancel button."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QWidget

from explorer_app.window.controls.elided_label import ElidedLabel
from explorer_app.window.controls.share_bar import ShareBar
from explorer_app.window.look import theme
from explorer_app.window.messages.line_panel import paint_panel
from explorer_app.window.messages.message_line import LINE_PX


class ProgressLine(QFrame):
    """A file name, the current operation, and its progress.

    Signals
    -------
    cancel_requested()
        The Cancel button was pressed.
    """

    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = ElidedLabel("", self, mode=Qt.TextElideMode.ElideMiddle)
        self.bar = ShareBar("Loading", self)
        self.bar.setFixedWidth(theme.px(160))
        self.cancel = QPushButton("Cancel", self)
        self.cancel.setToolTip("Stop reading this file and keep what is open.")
        self.cancel.clicked.connect(self.cancel_requested)
        theme.set_role(self.cancel, "flat")
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(14), theme.px(3), theme.px(4), 0)
        row.setSpacing(theme.px(8))
        row.addWidget(self.text, 1)
        row.addWidget(self.bar)
        row.addWidget(self.cancel)
        self.setFixedHeight(theme.px(LINE_PX))
        self.hide()

    def show_progress(self, name: str, sentence: str, share: float) -> None:
        """Show an operation on a file and its progress in 0..1; 0 means unknown."""
        text = f"{name}: {sentence[:1].lower()}{sentence[1:]}"
        self.text.setText(text)
        self.setAccessibleName(text)
        self.bar.show_share(share if share > 0 else None)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint a panel."""
        paint_panel(self)
