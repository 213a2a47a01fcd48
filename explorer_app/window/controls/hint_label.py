"""A hint at the end of a line, in the longest wording that fits."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from explorer_app.window.look import theme


class HintLabel(QLabel):
    """A right-aligned text that takes the remaining width and shows the longest wording that fits.

    It paints the text itself: `QLabel.setText` would trigger a layout of the whole window each time.
    """

    def __init__(self, words: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._wordings: tuple[str, ...] = ()
        self._shown = ""
        self._may_cut = False
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        theme.set_role(self, "dim")
        self.show_text(words)

    @property
    def full_text(self) -> str:
        """The longest wording."""
        return self._wordings[0]

    def text(self) -> str:
        """Return the wording that is painted."""
        return self._shown

    def show_text(self, *wordings: str) -> None:
        """Show the first wording that fits, in the given order (longest first); nothing if none fits."""
        if wordings != self._wordings or self._may_cut:  # measuring text is slow
            self._wordings, self._may_cut = wordings, False
            self._fit()

    def show_name(self, name: str) -> None:
        """Show a name of any length, elided if needed."""
        self._wordings, self._may_cut = (name,), True
        self._fit()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size of the longest wording."""
        return QSize(self.fontMetrics().horizontalAdvance(self.full_text) + 2, theme.px(theme.ROW))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return a width of 0: the hint may be hidden."""
        return QSize(0, theme.px(theme.ROW) - 4)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Choose the wording for the new width."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        metrics, room = self.fontMetrics(), self.width()
        fitting = [words for words in self._wordings if metrics.horizontalAdvance(words) <= room]
        shown = fitting[0] if fitting else ""
        if not fitting and self._may_cut:
            shown = metrics.elidedText(self.full_text, Qt.TextElideMode.ElideRight, room)
        if shown != self._shown:
            self._shown = shown
            self.setAccessibleName(shown)
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the text as QLabel does."""
        painter, area = QPainter(self), self.contentsRect()
        flags, role = self.alignment().value, self.foregroundRole()
        self.style().drawItemText(painter, area, flags, self.palette(), self.isEnabled(), self._shown, role)
