"""A hint at the end of a line: said as fully as there is room for, and never cut in the middle."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from explorer_app.window.look import theme


class HintLabel(QLabel):
    """Words at the right that take the room that is left; what does not fit gives way to something shorter.

    They are painted here and not set as the label's text, which would lay out the whole window each time.
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
        self.show_words(words)

    @property
    def full_text(self) -> str:
        """The longest wording."""
        return self._wordings[0]

    def text(self) -> str:
        """Return the words that are to be seen."""
        return self._shown

    def show_words(self, *wordings: str) -> None:
        """Show the first of these that fits, the longest first; nothing where none does."""
        if wordings != self._wordings or self._may_cut:  # measuring text is slow
            self._wordings, self._may_cut = wordings, False
            self._fit()

    def show_name(self, name: str) -> None:
        """Show a name of any length, which may be cut."""
        self._wordings, self._may_cut = (name,), True
        self._fit()

    def sizeHint(self) -> QSize:  # noqa: N802
        """As wide as the longest wording would like."""
        return QSize(self.fontMetrics().horizontalAdvance(self.full_text) + 2, theme.px(theme.ROW))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """It may be left out."""
        return QSize(0, theme.px(theme.ROW) - 4)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Choose anew."""
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
        """Paint the words as a label does."""
        painter, area = QPainter(self), self.contentsRect()
        flags, role = self.alignment().value, self.foregroundRole()
        self.style().drawItemText(painter, area, flags, self.palette(), self.isEnabled(), self._shown, role)
