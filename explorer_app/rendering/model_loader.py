"""Reads model files on its own thread; the open model still renders meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Signal

from explorer_app import start_times
from explorer_app.rendering.mailbox import Mailbox
from gpu_backend import CancelledError, dataclass

if TYPE_CHECKING:
    from gpu_backend import Model


class ReadModel(Protocol):
    """Reads a model file: `gpu_backend.read_model`, or a test's fake."""

    def __call__(self, path: Path, *, progress: Progressed, cancelled: Cancelled) -> Model:
        """Return the model; report progress and check for cancellation."""
        ...


class Progressed(Protocol):
    """Gets the number of bytes read and the total."""

    def __call__(self, done: int, total: int, /) -> None:
        """Report progress."""
        ...


class Cancelled(Protocol):
    """Returns whether to stop."""

    def __call__(self) -> bool:
        """Return whether to stop."""
        ...


@dataclass(frozen=True, slots=True)
class ReadingProgress:
    """Progress in bytes."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ReadingEnded:
    """A file was read, or was not. A cancelled reading reports nothing."""

    path: Path
    model: Model | None
    error: BaseException | None


class _Reading:
    """One file being read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cancelled = threading.Event()


class ModelLoader(QObject):
    """Reads one file at a time; starting another cancels the one before.

    `ready` carries nothing and is emitted only if `take` had no event before: connect it queued.
    """

    ready = Signal()

    def __init__(self, read: ReadModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._read = read
        self._events: Mailbox[ReadingProgress | ReadingEnded] = Mailbox()
        self._lock = threading.Lock()
        self._reading: _Reading | None = None
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def start(self, path: Path) -> None:
        """Begin to read a file."""
        self.cancel()
        if self._is_closed:
            return
        reading = _Reading(path)
        with self._lock:
            self._reading = reading
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(target=self._run, args=(reading,), name="reading a model")
        self._threads.append(thread)
        thread.start()

    def cancel(self) -> None:
        """Stop reading, without an event. Does nothing if nothing is being read."""
        with self._lock:
            if self._reading is not None:
                self._reading.cancelled.set()
                self._reading = None
            self._events.clear()

    def take(self) -> ReadingProgress | ReadingEnded | None:
        """Take the newest event: progress or the end."""
        return self._events.take()

    def close(self) -> None:
        """Stop reading and wait until every thread has ended. May be called twice."""
        self._is_closed = True
        self.cancel()
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _run(self, reading: _Reading) -> None:
        try:
            model = self._read(
                reading.path,
                progress=lambda done, total: self._report(reading, ReadingProgress(done, total)),
                cancelled=reading.cancelled.is_set,
            )
        except CancelledError:
            return
        except Exception as error:
            self._report(reading, ReadingEnded(reading.path, None, error))
        else:
            start_times.mark(start_times.MODEL_READ)
            self._report(reading, ReadingEnded(reading.path, model, None))

    def _report(self, reading: _Reading, event: ReadingProgress | ReadingEnded) -> None:
        with self._lock:
            is_new = reading is self._reading and self._events.put(event)
        if is_new:
            self.ready.emit()
