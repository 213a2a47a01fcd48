"""The strip of messages below the canvas: at most three lines, six seconds each; errors stay until closed."""

from __future__ import annotations

from collections import deque
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from explorer_app.messages import Level, Message, MessageLog
from explorer_app.window.controls.announce import announce
from explorer_app.window.messages.earlier_errors import EarlierErrors
from explorer_app.window.messages.message_line import MessageLine
from explorer_app.window.messages.progress_line import ProgressLine

MAX_LINES = 3
SHOWN_MS = 6000


class MessageStrip(QWidget):
    """Shows the messages of a log; hidden while there are none.

    Messages may be posted on any thread; the strip handles them on the GUI thread. Of errors, only the newest has a
    line of its own: what was done last is answered first. Those before it are gathered in one line, which counts and
    lists them. When three lines are shown, a new message replaces the oldest one that is not an error.

    Signals
    -------
    filled()
        The strip got its first line, or is empty again.
    """

    filled = Signal()

    _arrived = Signal()

    def __init__(self, messages: MessageLog, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Messages")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._incoming: deque[Message] = deque()
        self._lines: list[MessageLine] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self.progress = ProgressLine(self)
        self._layout.addWidget(self.progress)
        self.earlier = EarlierErrors(self)
        self.earlier.close_requested.connect(self._close_errors)
        self._layout.addWidget(self.earlier)
        self.hide()
        self._arrived.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._unsubscribe = messages.subscribe(self._post)

    @property
    def lines(self) -> tuple[MessageLine, ...]:
        """The lines that are shown on their own, oldest first."""
        return tuple(self._lines)

    @property
    def is_filled(self) -> bool:
        """Whether there is a message or progress to show."""
        return bool(self._lines or self.earlier.lines) or not self.progress.isHidden()

    def stop(self) -> None:
        """Disconnect from the log and remove all lines. Idempotent."""
        self._unsubscribe()
        self._incoming.clear()
        for line in (*self.earlier.lines, *self.lines):
            self._remove(line)

    def show_progress(self, name: str, sentence: str, share: float) -> None:
        """Show the progress of reading a file above the messages; `share` is in 0..1."""
        self.progress.show_progress(name, sentence, share)
        self.progress.show()
        self._update_visibility()

    def hide_progress(self) -> None:
        """Hide the progress line."""
        self.progress.hide()
        self._update_visibility()

    @Slot()
    def close_needless(self) -> None:
        """Close messages whose action is no longer needed."""
        for line in (*self.earlier.lines, *self._lines):
            if _is_needless(line.message):
                self._remove(line)

    def _post(self, message: Message) -> None:
        """Queue a message on the posting thread, and forward it to the GUI thread."""
        if message.level > Level.NOTE or message.about is not None:
            self._incoming.append(message)
            self._arrived.emit()

    @Slot()
    def _take(self) -> None:
        while self._incoming:
            message = self._incoming.popleft()
            if message.level is Level.NOTE:
                self._close_about(message.about)
                continue
            same = next((line for line in (*self._lines, *self.earlier.lines) if line.says(message)), None)
            if same is not None:
                same.repeat()
            if same is None and not _is_needless(message):
                same = MessageLine(message, SHOWN_MS, self)
                same.closed.connect(partial(self._remove, same))
            if same is not None and same not in self._lines:
                self._show_line(same)
            if same is not None:
                announce(self, message.sentence)

    def _close_about(self, path: Path | None) -> None:
        """Close the errors about a file: what failed has succeeded."""
        for line in (*self.earlier.lines, *self._lines):
            if line.message.about == path:
                self._remove(line)

    @Slot()
    def _close_errors(self) -> None:
        for line in (*self.earlier.lines, *self._lines):
            if line.message.level is Level.ERROR:
                self._remove(line)

    def _show_line(self, line: MessageLine) -> None:
        """Show a line below the others, in place of an earlier error, or of a quiet line if there are three."""
        if line in self.earlier.lines:
            self.earlier.remove(line)
        former = next((other for other in self._lines if other.message.level is Level.ERROR), None)
        if line.message.level is Level.ERROR and former is not None:
            self._lines.remove(former)
            self._layout.removeWidget(former)
            self.earlier.add(former)
        elif len(self._lines) == MAX_LINES:
            self._remove(next(other for other in self._lines if other is not former))
        self._lines.append(line)
        self._layout.addWidget(line)
        line.show()
        self._update_visibility()

    def _remove(self, line: MessageLine) -> None:
        if line in self.earlier.lines:
            self.earlier.remove(line)
        elif line in self._lines:
            self._lines.remove(line)
            self._layout.removeWidget(line)
            line.hide()
        else:
            return
        line.deleteLater()
        self._update_visibility()

    def _update_visibility(self) -> None:
        if self.is_filled == self.isHidden():
            self.filled.emit()  # first, so that the caption's change joins the same layout
            self.setVisible(self.is_filled)


def _is_needless(message: Message) -> bool:
    return message.action is not None and not message.action.is_needed()
