"""Logging of the process: standard error, a rotating file, uncaught exceptions and fatal signals.

`ProgramLog` is made first and closed last. While it is open, every uncaught exception, on any thread and in any Qt
slot, becomes a log record; records reach standard error (WARNING and above, or the level of ``--log``) and the log
file (INFO and above). Modules log to ``logging.getLogger(__name__)``.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import queue
import stat
import sys
import threading
from collections.abc import Callable
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import platformdirs

from gpu_backend import printable, printable_lines

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
"""What ``--log`` takes."""

PACKAGES = ("explorer_app", "gpu_backend")
"""Loggers whose level ``--log`` sets; other libraries log from WARNING on."""

_FILE_NBYTES = 1 << 20
_FILE_COUNT = 3
_CRASH_NBYTES = 1 << 16

_log = logging.getLogger(__name__)


def log_path() -> Path:
    """Return the log file of this system's user; nothing is created."""
    return platformdirs.user_log_path("latentloom", appauthor=False) / "latentloom.log"


class ProgramLog:
    """Logging of one run of the program, a context manager.

    Parameters
    ----------
    write
        Writes one record to the terminal.
    path
        The log file; None for `log_path`.
    """

    def __init__(self, write: Callable[[str], None], path: Path | None = None) -> None:
        self.path = log_path() if path is None else path
        self.uncaught = 0
        """Number of uncaught exceptions so far."""
        self._terminal = _TerminalHandler(write)
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._queued = _FileQueueHandler(self._queue)
        self._file = _LogFile(self.path)
        self._listener: QueueListener | None = None
        self._restore: list[Callable[[], None]] = []

    def __enter__(self) -> ProgramLog:
        """Open the log and replace the hooks of uncaught exceptions."""
        root = logging.getLogger()
        self._listener = QueueListener(self._queue, self._file)
        self._listener.start()
        for handler in (self._terminal, self._queued):
            root.addHandler(handler)
        for name in PACKAGES:
            logger = logging.getLogger(name)
            self._restore.append(_setter(logger.setLevel, logger.level))
        former = (sys.excepthook, threading.excepthook, sys.unraisablehook)
        sys.excepthook, threading.excepthook, sys.unraisablehook = (
            self._uncaught,
            self._uncaught_in_thread,
            self._unraisable,
        )

        def give_back() -> None:
            sys.excepthook, threading.excepthook, sys.unraisablehook = former

        self._restore.append(give_back)
        self.set_level(logging.WARNING)
        _open.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        """Restore the hooks and write what is queued. May be called twice."""
        if self in _open:
            _open.remove(self)
        for handler in (self._terminal, self._queued):
            logging.getLogger().removeHandler(handler)
        while self._restore:
            self._restore.pop()()
        if self._listener is not None:
            self._listener.stop()
            self._listener = None
            self._file.close()

    def set_level(self, level: int) -> None:
        """Show records from this level on; the log file keeps at least INFO."""
        self._terminal.setLevel(level)
        self._queued.setLevel(min(level, logging.INFO))
        for name in PACKAGES:
            logging.getLogger(name).setLevel(min(level, logging.INFO))

    def watch_fatal_signals(self) -> None:
        """Write the stack of every thread when a fatal signal ends the process.

        Into standard error if it is kept, else (a start from a desktop) into a file that `take_crash` reads.
        """
        if faulthandler.is_enabled():  # enabled by PYTHONFAULTHANDLER or by a test runner
            return
        stream = _kept_stream(sys.stderr)
        if stream is None:
            with contextlib.suppress(OSError):
                self._crash_path.parent.mkdir(parents=True, exist_ok=True)
                stream = self._crash_path.open("ab")
        if stream is not None:
            faulthandler.enable(stream)

    def take_crash(self) -> str:
        """Return the stacks that an earlier run left when a fatal signal ended it, and delete them; empty if none."""
        path = self._crash_path
        try:
            if not path.is_file() or path.stat().st_size == 0:
                return ""
            with path.open("rb") as file:
                text = file.read(_CRASH_NBYTES).decode(errors="replace")
            path.write_bytes(b"")
        except OSError:
            return ""
        return text

    @property
    def _crash_path(self) -> Path:
        return self.path.with_name("latentloom.crash")

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        self.uncaught += 1
        _log.error("Uncaught exception.", exc_info=(kind, error, trace))

    def _uncaught_in_thread(self, caught: threading.ExceptHookArgs) -> None:
        if caught.exc_value is None or issubclass(caught.exc_type, SystemExit):
            return
        self.uncaught += 1
        name = caught.thread.name if caught.thread is not None else "that has ended"
        _log.error("Uncaught exception in thread %s.", name, exc_info=caught.exc_value)

    def _unraisable(self, caught: Any) -> None:
        # The record must not hold the object itself: that would resurrect it.
        _log.error("%s %r.", caught.err_msg or "Exception ignored in", caught.object, exc_info=caught.exc_value)


_open: list[ProgramLog] = []


def current() -> ProgramLog | None:
    """Return the log of this run; None where the program is a library of another one."""
    return _open[-1] if _open else None


class _TerminalHandler(logging.Handler):
    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write
        self.setFormatter(_SafeFormatter("%(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(self.format(record))
        except OSError:
            return  # the terminal is gone; the file has the record


class _SafeFormatter(logging.Formatter):
    """Formats one record per line; tracebacks and `details` are indented, so that no text can forge a record."""

    def format(self, record: logging.LogRecord) -> str:
        record.message = printable(record.getMessage())
        if self.usesTime():
            record.asctime = self.formatTime(record, self.datefmt)
        text = self.formatMessage(record)
        details = [getattr(record, "details", "")]
        if record.exc_info:
            details.append(self.formatException(record.exc_info))
        for part in filter(None, details):
            text += "\n    " + printable_lines(part).replace("\n", "\n    ")
        return text


class _FileQueueHandler(QueueHandler):
    """Formats a record where it was logged and leaves the disk to a thread: the render thread logs too."""

    def __init__(self, records: queue.SimpleQueue[Any]) -> None:
        super().__init__(records)
        self.setFormatter(
            _SafeFormatter("%(asctime)s %(levelname)s [%(process)d %(threadName)s] %(name)s: %(message)s")
        )


class _LogFile(RotatingFileHandler):
    """A rotating file that never stops the program: without a disk or a folder, records are dropped."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path,
            maxBytes=_FILE_NBYTES,
            backupCount=_FILE_COUNT,
            encoding="utf-8",
            errors="backslashreplace",
            delay=True,
        )

    def _open(self) -> Any:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()

    def rotate(self, source: str, dest: str) -> None:
        # On Windows another window may have the file open; then this one continues in the same file.
        with contextlib.suppress(OSError):
            super().rotate(source, dest)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        stream, self.stream = self.stream, None  # opened again by the next record
        if stream is not None:
            # Otherwise Python would report, when it frees the file, that the rest cannot be written: one more record.
            with contextlib.suppress(OSError):
                stream.close()


def _setter(call: Callable[[int], None], value: int) -> Callable[[], None]:
    return lambda: call(value)


def _kept_stream(stream: IO[str] | None) -> Any:
    """Return a stream if its text is kept (a terminal, a file, a pipe); None otherwise."""
    if stream is None:
        return None
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return None
    is_nowhere = stat.S_ISSOCK(status.st_mode) or (stat.S_ISCHR(status.st_mode) and not stream.isatty())
    return None if is_nowhere else stream
