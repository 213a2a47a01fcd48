"""A scroll area that scrolls vertically only."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget


class ColumnScroll(QScrollArea):
    """Scrolls a widget vertically, and is never narrower than that widget and the scroll bar beside it."""

    def __init__(self, content: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._content = content
        self.setWidget(content)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Pass a changed size of the content on to the layout around, which a scroll area does not do."""
        if watched is self._content and event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the least width of the content with the scroll bar, and a height of a few rows."""
        content = self._content.minimumSizeHint().width()
        return QSize(content + self.verticalScrollBar().sizeHint().width(), super().minimumSizeHint().height())
