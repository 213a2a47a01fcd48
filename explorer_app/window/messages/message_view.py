"""Messages over the canvas: at most three toasts at the bottom right, six seconds each; errors stay until seen."""

from __future__ import annotations

from collections import deque
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from explorer_app.messages import Level, Message, MessageLog
from explorer_app.window import theme
from explorer_app.window.messages.toast import Toast

MAX_TOASTS = 3
SHOWN_MS = 6000


class MessageView(QObject):
    """Shows what a message log is told.

    Messages may be posted on any thread; the view takes them on its own. When the three places are taken, a fourth
    message pushes the oldest one out that is no error; errors wait for a place.

    Parameters
    ----------
    messages
        The log.
    host
        The widget over whose bottom right corner the toasts lie.
    below_px
        Height of what stands at its bottom and stays legible.
    """

    message_shown = Signal(object)
    """A Message; the status bar repeats it quietly."""

    _arrived = Signal()

    def __init__(self, messages: MessageLog, host: QWidget, below_px: int = 0) -> None:
        super().__init__(host)
        self._below_px = below_px
        self._host = host
        self._incoming: deque[Message] = deque()
        self._waiting: deque[Message] = deque()
        self._toasts: list[Toast] = []
        self._arrived.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._unsubscribe = messages.subscribe(self._post)

    @property
    def toasts(self) -> tuple[Toast, ...]:
        """What is on the screen, oldest first."""
        return tuple(self._toasts)

    def close(self) -> None:
        """Stop listening and take the toasts away. May be called twice."""
        self._unsubscribe()
        self._incoming.clear()
        self._waiting.clear()
        for toast in self.toasts:
            self._remove(toast)

    def close_needless(self) -> None:
        """Take away what asks for something that is done meanwhile."""
        for toast in self.toasts:
            action = toast.message.action
            if action is not None and not action.is_needed():
                self._close_toast(toast)

    def _post(self, message: Message) -> None:
        """Take a message in on the thread that posts it, and hop."""
        if message.level > Level.NOTE:
            self._incoming.append(message)
            self._arrived.emit()

    @Slot()
    def _take(self) -> None:
        while self._incoming:
            message = self._incoming.popleft()
            self.message_shown.emit(message)
            same = next((toast for toast in self._toasts if toast.says(message)), None)
            if same is not None:
                same.repeat()
            else:
                self._waiting.append(message)
                self._fill()

    def _fill(self) -> None:
        while self._waiting:
            if len(self._toasts) == MAX_TOASTS:
                quiet = next((toast for toast in self._toasts if toast.message.level < Level.ERROR), None)
                if quiet is None:
                    break
                self._remove(quiet)
            toast = Toast(self._waiting.popleft(), SHOWN_MS, self._host)
            toast.closed.connect(partial(self._close_toast, toast))
            toast.resized.connect(self.place)
            self._toasts.append(toast)
            self.place()  # first: shown elsewhere it would meet the pointer there
            toast.show()
        self.place()

    def _close_toast(self, toast: Toast) -> None:
        self._remove(toast)
        self._fill()

    def _remove(self, toast: Toast) -> None:
        if toast in self._toasts:
            self._toasts.remove(toast)
            toast.hide()
            toast.deleteLater()

    @Slot()
    def place(self) -> None:
        """Stack the toasts upwards from the corner; also whenever the host gets another size."""
        edge = theme.px(12)
        width = min(theme.px(360), self._host.width() - 2 * edge)
        bottom = self._host.height() - max(edge, self._below_px)
        for toast in reversed(self._toasts):
            toast.setFixedWidth(max(theme.px(160), width))
            toast.resize(toast.width(), toast.heightForWidth(toast.width()))
            toast.move(self._host.width() - edge - toast.width(), bottom - toast.height())
            toast.raise_()
            bottom -= toast.height() + theme.GAP
