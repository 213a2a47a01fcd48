"""The one road from log and exception to the user.

Whatever anyone wants to tell the person goes into a `MessageLog`; it remembers what was said before there was a window,
and the window subscribes. Warnings of `logging` and exceptions that nobody caught arrive here as well.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType

from gpu_backend import LoomError


class Level(IntEnum):
    """How loud a message is. Notes are kept for a report and never shown by themselves."""

    NOTE = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


@dataclass(frozen=True, slots=True)
class Action:
    """What a person may do about a message, on the window's thread.

    Attributes
    ----------
    words
        What stands on its button.
    call
        What it does.
    is_needed
        Whether there is still something to do; once there is not, the message goes.
    """

    words: str
    call: Callable[[], object]
    is_needed: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Message:
    """One sentence for the person, particulars on demand, and what can be done. `number` counts up from 1."""

    level: Level
    sentence: str
    details: str = ""
    number: int = 0
    action: Action | None = None


Subscriber = Callable[[Message], None]


class MessageLog:
    """Messages, newest last. Safe to use from every thread.

    Parameters
    ----------
    capacity
        How many messages are remembered.
    """

    def __init__(self, capacity: int = 500) -> None:
        self._lock = threading.Lock()
        self._messages: deque[Message] = deque(maxlen=capacity)
        self._subscribers: list[Subscriber] = []
        self._count = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """What is remembered, oldest first."""
        with self._lock:
            return tuple(self._messages)

    def post(self, level: Level, sentence: str, details: str = "", action: Action | None = None) -> Message:
        """Remember a message and hand it to every subscriber, on the calling thread."""
        with self._lock:
            self._count += 1
            message = Message(level, sentence, details, self._count, action)
            self._messages.append(message)
            subscribers = tuple(self._subscribers)
        for subscriber in subscribers:
            subscriber(message)
        return message

    def note(self, sentence: str, details: str = "") -> Message:
        """Remember something for a report without showing it."""
        return self.post(Level.NOTE, sentence, details)

    def info(self, sentence: str, details: str = "") -> Message:
        """Tell that something went as asked."""
        return self.post(Level.INFO, sentence, details)

    def warning(self, sentence: str, details: str = "", action: Action | None = None) -> Message:
        """Tell that something is not quite as asked."""
        return self.post(Level.WARNING, sentence, details, action)

    def error(self, sentence: str, details: str = "") -> Message:
        """Tell that something did not work."""
        return self.post(Level.ERROR, sentence, details)

    def exception(self, error: BaseException, level: Level = Level.ERROR) -> Message:
        """Tell an exception: in its own sentence if it has one, with the traceback as details if it has none."""
        sentence, details = describe(error)
        return self.post(level, sentence, details)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with what is remembered already, then with every message to come.

        It is called on the thread that posts: a widget must hop to its own thread with a queued signal.

        Returns
        -------
        A function that ends the subscription; it may be called twice.
        """
        with self._lock:
            earlier = tuple(self._messages)
            self._subscribers.append(subscriber)
        for message in earlier:
            subscriber(message)

        def unsubscribe() -> None:
            with self._lock:
                if subscriber in self._subscribers:
                    self._subscribers.remove(subscriber)

        return unsubscribe


def describe(error: BaseException) -> tuple[str, str]:
    """Return one sentence and the details for any exception."""
    trace = "".join(traceback.format_exception(error)).rstrip()
    if isinstance(error, LoomError):
        return error.sentence, error.details
    if isinstance(error, MemoryError):
        return "There was not enough memory for this; a smaller model or picture needs less.", trace
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename else ""
        return f"The system refused: {name}{error.strerror}.", trace
    return f"Something went wrong inside Latent Loom ({type(error).__name__}); the details say where.", trace


def without_cpu_advice(sentence: str) -> str:
    """Return a sentence about a GPU without its full stop, and without advice to use the CPU: that is being done."""
    cause, _, advice = sentence.rstrip(".").partition("; ")
    return f"{cause}; {advice}" if advice and "the CPU" not in advice else cause


class MessageBridge(logging.Handler):
    """Carries log records of WARNING and above, and exceptions that nobody caught, into a MessageLog.

    `install` puts it in place, `remove` restores what was there before; both may be called twice.
    """

    def __init__(self, messages: MessageLog) -> None:
        super().__init__(logging.WARNING)
        self._messages = messages
        self._former: tuple[Callable[..., object], Callable[..., object]] | None = None

    def install(self) -> None:
        """Take over the root logger's warnings, `sys.excepthook` and `threading.excepthook`."""
        if self._former is None:
            self._former = (sys.excepthook, threading.excepthook)
            sys.excepthook = self._uncaught
            threading.excepthook = self._uncaught_in_thread
            logging.getLogger().addHandler(self)

    def remove(self) -> None:
        """Give back what `install` took."""
        if self._former is not None:
            sys.excepthook, threading.excepthook = self._former
            self._former = None
            logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Post a log record."""
        level = Level.ERROR if record.levelno >= logging.ERROR else Level.WARNING
        error = record.exc_info[1] if record.exc_info else None
        details = "".join(traceback.format_exception(error)).rstrip() if error else f"From {record.name}."
        self._messages.post(level, record.getMessage(), details)

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            self._messages.exception(error.with_traceback(trace))

    def _uncaught_in_thread(self, caught: threading.ExceptHookArgs) -> None:
        if caught.exc_value is not None and not issubclass(caught.exc_type, SystemExit):
            self._messages.exception(caught.exc_value)
