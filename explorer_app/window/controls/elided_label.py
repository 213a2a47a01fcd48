"""One line of plain text, elided if it does not fit."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QWidget

from gpu_backend import printable


class ElidedLabel(QLabel):
    """A label that may be narrower than its text; `text` returns the full text.

    Parameters
    ----------
    text
        The full text.
    mode
        Position of the ellipsis.
    """

    def __init__(
        self, text: str = "", parent: QWidget | None = None, *, mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight
    ) -> None:
        super().__init__(parent)
        self._mode = mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)

    def setText(self, text: str) -> None:  # noqa: N802 - Qt's name
        """Set the text; control characters are escaped so that it stays on one line."""
        super().setText(printable(text))

    @property
    def shown_text(self) -> str:
        """The text as it is painted, elided to the width."""
        return self.fontMetrics().elidedText(self.text(), self._mode, self.contentsRect().width())

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the size of the ellipsis alone."""
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance("…"), metrics.height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the text as QLabel does, elided to the width."""
        self.style().drawItemText(
            QPainter(self),
            self.contentsRect(),
            self.alignment().value,
            self.palette(),
            self.isEnabled(),
            self.shown_text,
            self.foregroundRole(),
        )
