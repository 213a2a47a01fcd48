"""A word-wrapped label that accepts any width."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from gpu_backend import printable_lines


class WrappedLabel(QLabel):
    """A wrapped plain text with height-for-width and no minimum width.

    A wrapped QLabel reports the height for its narrowest width, which makes a panel of labels seem too tall for its
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
        """Set the text; line breaks are kept, other control characters are escaped."""
        super().setText(printable_lines(text))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the height of one line."""
        return QSize(0, self.fontMetrics().height())

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the height of one line; layouts use the height for a width instead."""
        return self.minimumSizeHint()
