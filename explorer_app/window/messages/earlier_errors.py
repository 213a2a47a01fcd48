"""Errors that a newer one took the place of: a line with their count, which opens to a list of them."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer_app.window.controls.column_scroll import ColumnScroll
from explorer_app.window.look import theme
from explorer_app.window.look.icons import icon
from explorer_app.window.messages.line_panel import paint_panel
from explorer_app.window.messages.message_line import LINE_PX, MessageLine

_LIST_PX = 140
"""Height of the open list in px, at most, and at most a quarter of the window's; beyond it the list scrolls."""


class EarlierErrors(QFrame):
    """Holds the lines of earlier errors; hidden without any.

    Signals
    -------
    close_requested()
        All errors are to be closed.
    """

    close_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._lines: list[MessageLine] = []
        mark = QLabel(self)
        mark.setPixmap(icon("error", "bad").pixmap(theme.px(18), theme.px(18)))
        self.count = QLabel(self)
        self.show_button = QPushButton("Show", self)
        self.show_button.setCheckable(True)
        self.show_button.toggled.connect(self._open)
        self.close_button = QPushButton("Close all", self)
        self.close_button.setToolTip("Close all errors (Escape).")
        self.close_button.clicked.connect(self.close_requested)
        for button in (self.show_button, self.close_button):
            theme.set_role(button, "flat")
        top = QHBoxLayout()
        top.setSpacing(theme.px(6))
        top.addWidget(mark)
        top.addWidget(self.count, 1)
        top.addWidget(self.show_button)
        top.addWidget(self.close_button)
        column = QWidget(self)
        self._column = QVBoxLayout(column)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.list = ColumnScroll(column, self)
        self.list.setAccessibleName("Earlier errors")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.px(14), theme.px(5), theme.px(4), theme.px(1))
        layout.setSpacing(theme.px(2))
        layout.addLayout(top)
        layout.addWidget(self.list)
        self.setMinimumHeight(theme.px(LINE_PX))
        self._open(False)
        self.hide()

    @property
    def lines(self) -> tuple[MessageLine, ...]:
        """The lines, oldest first."""
        return tuple(self._lines)

    def add(self, line: MessageLine) -> None:
        """Take a line behind the others."""
        self._lines.append(line)
        self._column.addWidget(line)
        line.show()
        self._update()

    def remove(self, line: MessageLine) -> None:
        """Let go of a line, which the caller shows elsewhere or deletes."""
        self._lines.remove(line)
        self._column.removeWidget(line)
        line.hide()
        self._update()

    def _open(self, on: bool) -> None:
        self.list.setVisible(on)
        self.show_button.setText("Hide" if on else "Show")
        self.show_button.setToolTip("Hide the earlier errors." if on else "List the earlier errors.")
        self._update()

    def _update(self) -> None:
        count = len(self._lines)
        text = f"{count} earlier error{'' if count == 1 else 's'}"
        self.count.setText(text)
        self.setAccessibleName(text)
        height = sum(max(line.minimumHeight(), line.sizeHint().height()) for line in self._lines)
        self.list.setFixedHeight(min(height, theme.px(_LIST_PX), self.window().height() // 4))
        self.setVisible(count > 0)
        if not count:
            self.show_button.setChecked(False)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Escape hides the list, or closes all errors."""
        if event.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(event)
        elif self.show_button.isChecked():
            self.show_button.setChecked(False)
        else:
            self.close_requested.emit()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint a panel."""
        paint_panel(self)
