"""Messages for the user: one sentence each, details on demand.

Every part of the app posts to a `MessageLog`. It keeps the messages from before there was a window, and the window
subscribes. Log records of WARNING and above, which include uncaught exceptions (`explorer_app.logs`), become messages
through a `MessageBridge`; messages become log records through `write_to_log`.
"""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path

from gpu_backend import LoomError, dataclass, printable_lines, printable_sentence

_log = logging.getLogger(__name__)


class Level(IntEnum):
    """Severity of a message. Notes are stored for reports and never shown on their own."""

    NOTE = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


@dataclass(frozen=True, slots=True)
class Action:
    """An action offered by a message; called on the GUI thread.

    Attributes
    ----------
    words
        Text of its button.
    call
        What it does.
    is_needed
        Whether the action is still needed; once it is not, the message closes.
    """

    words: str
    call: Callable[[], object]
    is_needed: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Message:
    """One sentence for the user, details on demand, and an optional action.

    Attributes
    ----------
    sentence, details
        Without control characters, which a file name or a model may hold; the sentence has no line breaks.
    number
        Counts up from 1.
    is_logged
        Whether the log had it first.
    file
        The file or folder that was written, which the window can show, copy and let a user drag.
    picture
        A picture among what was written, which the window can copy; None where `file` is the picture, or none is.
    about
        The file that could not be read or written; of a note, the file with which that has succeeded since.
    """

    level: Level
    sentence: str
    details: str = ""
    number: int = 0
    action: Action | None = None
    is_logged: bool = False
    file: Path | None = None
    picture: Path | None = None
    about: Path | None = None


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
        """Stored messages, oldest first."""
        with self._lock:
            return tuple(self._messages)

    def post(
        self,
        level: Level,
        sentence: str,
        details: str = "",
        action: Action | None = None,
        *,
        is_logged: bool = False,
        file: Path | None = None,
        picture: Path | None = None,
        about: Path | None = None,
    ) -> Message:
        """Store a message and pass it to every subscriber, on the calling thread."""
        sentence, details = printable_sentence(sentence), printable_lines(details)
        with self._lock:
            self._count += 1
            message = Message(level, sentence, details, self._count, action, is_logged, file, picture, about)
            self._messages.append(message)
            subscribers = tuple(self._subscribers)
        for subscriber in subscribers:
            subscriber(message)
        return message

    def note(self, sentence: str, details: str = "") -> Message:
        """Store a note for reports without showing it."""
        return self.post(Level.NOTE, sentence, details)

    def info(
        self, sentence: str, details: str = "", *, file: Path | None = None, picture: Path | None = None
    ) -> Message:
        """Post an information: something succeeded."""
        return self.post(Level.INFO, sentence, details, file=file, picture=picture)

    def warning(self, sentence: str, details: str = "", action: Action | None = None) -> Message:
        """Post a warning: something is not quite as requested."""
        return self.post(Level.WARNING, sentence, details, action)

    def error(self, sentence: str, details: str = "", *, about: Path | None = None) -> Message:
        """Post an error: something failed."""
        return self.post(Level.ERROR, sentence, details, about=about)

    def exception(self, error: BaseException, level: Level = Level.ERROR, *, about: Path | None = None) -> Message:
        """Post an exception: its own sentence if it has one, otherwise a general one with the traceback as details."""
        sentence, details = describe(error)
        return self.post(level, sentence, details, about=about)

    def note_success(self, path: Path) -> None:
        """Note that what failed with a file has succeeded now: errors about it are out of date."""
        with self._lock:
            newest = next((item for item in reversed(self._messages) if item.about == path), None)
        if newest is not None and newest.level is Level.ERROR:
            self.post(Level.NOTE, f"What failed with {path.name} has succeeded now.", about=path)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with every stored message, then with every new one.

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
    if isinstance(error, MemoryError) or _is_out_of_memory(error):
        return "There was not enough memory for this; a smaller model or picture needs less.", trace
    if isinstance(error, OSError):
        return _system_sentence(error), trace
    return f"Something went wrong inside Latent Loom ({type(error).__name__}); the details show where.", trace


def is_from_outside(error: BaseException) -> bool:
    """Return whether the system is the cause (a file, a disk, memory), so that one sentence explains the error."""
    return isinstance(error, LoomError | OSError | MemoryError) or _is_out_of_memory(error)


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether a RuntimeError means that memory ran out: torch and threading have no type for it."""
    words = ("can't allocate memory", "not enough memory", "bad_alloc", "can't start new thread")
    return isinstance(error, RuntimeError) and any(word in str(error) for word in words)


def working_folder_problem() -> str:
    """Return a sentence if the working folder was deleted, else an empty one."""
    try:
        Path.cwd()
    except OSError:
        return "The working folder is gone: it was deleted or moved; change to another folder first."
    return ""


def _system_sentence(error: OSError) -> str:
    if problem := working_folder_problem():
        return problem
    name = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else str(error.filename or "")
    return f"The system refused: {name}{': ' if name else ''}{error.strerror or error}."


def without_cpu_advice(sentence: str) -> str:
    """Return a sentence about a GPU without its full stop, and without advice to use the CPU: that is being done."""
    cause, _, advice = sentence.rstrip(".").partition("; ")
    return f"{cause}; {advice}" if advice and "the CPU" not in advice else cause


class MessageBridge(logging.Handler):
    """Posts log records of WARNING and above.

    `install` puts it in place, `remove` takes it away; both may be called twice.
    """

    def __init__(self, messages: MessageLog) -> None:
        super().__init__(logging.WARNING)
        self._messages = messages

    def install(self) -> None:
        """Listen to the root logger."""
        if self not in logging.getLogger().handlers:
            logging.getLogger().addHandler(self)

    def remove(self) -> None:
        """Stop listening."""
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Post a log record, unless it was a message itself."""
        if record.name == _log.name:
            return
        level = Level.ERROR if record.levelno >= logging.ERROR else Level.WARNING
        error = record.exc_info[1] if record.exc_info else None
        sentence, details = record.getMessage(), f"From {record.name}."
        if error is not None:
            sentence, details = describe(error)
        self._messages.post(level, sentence, details, is_logged=True)


_LOG_LEVELS = {
    Level.NOTE: logging.DEBUG,
    Level.INFO: logging.INFO,
    Level.WARNING: logging.WARNING,
    Level.ERROR: logging.ERROR,
}


def write_to_log(message: Message) -> None:
    """Subscribe this to a `MessageLog`: its messages become log records, so that the log file has them too."""
    if not message.is_logged:
        _log.log(_LOG_LEVELS[message.level], "%s", message.sentence, extra={"details": message.details})
