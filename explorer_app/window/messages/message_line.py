"""One message on the screen: a sentence, details on demand, and a copy button."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QEnterEvent, QGuiApplication, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from explorer_app.messages import Level, Message
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.short_words import short_words
from explorer_app.window.look import fonts, theme
from explorer_app.window.look.icons import icon
from explorer_app.window.messages.file_actions import FileActions
from explorer_app.window.messages.line_panel import paint_panel

LINE_PX = 34
"""Height of a one-line message in px; equal to the canvas's caption, which the first message replaces."""

_FILE_TIMES = 5
"""Factor on the display time of a message with a file to copy or drag."""

_LOOKS = {
    Level.INFO: ("info", "good", "Message"),
    Level.WARNING: ("warning", "warn", "Warning"),
    Level.ERROR: ("error", "bad", "Error"),
}
"""Level -> icon, colour token, accessible prefix."""

_SHORT_PX = 150
"""Width in px up to which a sentence stays on one line, followed by the folder of its file."""


class MessageLine(QFrame):
    """A message below the canvas, wrapped to as many lines as it needs.

    It closes after a timeout that pauses while the pointer or the keyboard focus is on it. Errors and messages with an
    action stay until they are closed.
    """

    closed = Signal()

    def __init__(self, message: Message, shown_ms: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.message = message
        self._count = 1
        look, self._token, word = _LOOKS[message.level]
        self.setAccessibleName(f"{word}: {message.sentence}")
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.setAttribute(Qt.WidgetAttribute.WA_NoMousePropagation)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(shown_ms if message.file is None else _FILE_TIMES * shown_ms)
        self._timer.timeout.connect(self.closed)

        mark = QLabel(self)
        mark.setPixmap(icon(look, self._token).pixmap(theme.px(18), theme.px(18)))
        sentence = short_words(message.sentence)
        self.sentence = QLabel(sentence, self)
        self.sentence.setToolTip("" if sentence == message.sentence else plain_tip(message.sentence))
        self.sentence.setWordWrap(True)
        self.sentence.setContentsMargins(0, theme.px(3), 0, theme.px(4))  # padding for several lines
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.close_button = QToolButton(self)
        self.close_button.setIcon(icon("close", "dim"))
        self.close_button.setToolTip("Close this message (Escape).")
        self.close_button.setAccessibleName("Close this message")
        self.close_button.clicked.connect(self.closed)
        theme.set_role(self.close_button, "flat")

        self.details_button = QPushButton("Details", self)
        self.details_button.setCheckable(True)
        self.details_button.setVisible(bool(message.details))
        self.details_button.setToolTip("Show the details of this message.")
        self.details_button.toggled.connect(self._show_details)
        self.copy_button = QPushButton("Copy", self)
        self.copy_button.setToolTip("Copy the message and its details to the clipboard.")
        self.copy_button.clicked.connect(self._copy)
        self.action_button = QPushButton(message.action.words if message.action else "", self)
        self.action_button.setVisible(message.action is not None)
        self.action_button.clicked.connect(self._act)
        for button in (self.action_button, self.details_button, self.copy_button):
            theme.set_role(button, "flat")
        self.details = QPlainTextEdit(message.details, self)
        self.details.setReadOnly(True)
        self.details.setFont(fonts.caption())
        self.details.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.details.setFixedHeight(theme.px(120))
        self.details.setAccessibleName("Details")
        self.details.hide()

        top = QHBoxLayout()
        top.setSpacing(theme.px(6))
        top.addWidget(mark)
        self.file_actions: FileActions | None = None
        is_said = message.file is None or str(message.file.parent) in message.sentence
        line_px = self.sentence.fontMetrics().horizontalAdvance(sentence) + 1
        is_short = not is_said and line_px <= theme.px(_SHORT_PX)
        if is_short:  # a wrapping label's hint is narrower than its text, which would break it
            self.sentence.setMinimumWidth(line_px)
        top.addWidget(self.sentence, 0 if is_short else 1)
        if message.file is not None:
            self.file_actions = FileActions(message.file, self, picture=message.picture, shows_path=not is_said)
            top.addWidget(self.file_actions, 0 if is_said else 2)
        for widget in (self.action_button, self.details_button, self.copy_button, self.close_button):
            top.addWidget(widget)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.px(14), theme.px(5), theme.px(4), theme.px(1))
        layout.setSpacing(theme.px(2))
        layout.addLayout(top)
        layout.addWidget(self.details)
        self.setMinimumHeight(theme.px(LINE_PX))
        self.copy_button.setVisible(message.level > Level.INFO or bool(message.details))
        self._let_go()

    def says(self, message: Message) -> bool:
        """Return whether a message equals the shown one, and offers the same."""
        shown = self.message
        offered, offers = (item.action and item.action.call for item in (shown, message))
        return (shown.level, shown.sentence) == (message.level, message.sentence) and offered == offers

    def repeat(self) -> None:
        """Increase the repeat count and restart the timeout."""
        self._count += 1
        self.sentence.setText(f"{short_words(self.message.sentence)}  (×{self._count})")
        self._let_go()

    def _let_go(self) -> None:
        stays = self.message.level >= Level.ERROR or self.message.action is not None
        if not stays and not self.details_button.isChecked():
            self._timer.start()

    def _act(self) -> None:
        if self.message.action is not None:
            self.message.action.call()
        self.closed.emit()

    def _show_details(self, shown: bool) -> None:
        self.details.setVisible(shown)
        self._timer.stop()

    def _copy(self) -> None:
        text = self.message.sentence
        QGuiApplication.clipboard().setText(f"{text}\n\n{self.message.details}" if self.message.details else text)

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Stop the timer while the pointer is on the line."""
        self._timer.stop()
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Continue the timer."""
        self._let_go()
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Escape closes."""
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint a panel and, at its left, the colour of its level."""
        tokens = theme.current()
        painter, area = paint_panel(self)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(getattr(tokens, self._token)))
        painter.drawRoundedRect(QRectF(area.left() + 4, area.top() + 6, 3, area.height() - 12), 1.5, 1.5)
