"""A text of several lines that takes the width it gets."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from gpu_backend import printable_lines


class WrappedLabel(QLabel):
    """A plain text, wrapped; it asks for the height that its lines need at its width, and for no width at all.

    A QLabel asks for the height that it would need at its narrowest, so that a panel of them seems too tall for its
    dock.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setText(text)

    def setText(self, text: str) -> None:  # noqa: N802 - Qt's name
        """Show a text; its line breaks count, other control characters become escapes."""
        super().setText(printable_lines(text))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the height of one line."""
        return QSize(0, self.fontMetrics().height())

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the height of one line; layouts ask for the height at a width instead."""
        return self.minimumSizeHint()
