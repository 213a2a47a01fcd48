"""SIGINT and SIGTERM end a training after the current step, so that it can save."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_AT_ONCE_S = 1.0


class StopRequest:
    """Flag for a stop signal, and its number."""

    def __init__(self) -> None:
        self.is_set = False
        self.number = 0
        self._requested_at = 0.0

    def set(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Record a signal; a second Ctrl-C raises KeyboardInterrupt.

        Repetitions within `_AT_ONCE_S` seconds do not count: torchrun forwards a Ctrl-C that all processes received.
        """
        now = time.monotonic()
        if self.is_set and number == signal.SIGINT and now - self._requested_at > _AT_ONCE_S:
            raise KeyboardInterrupt
        if not self.is_set:
            self.is_set, self.number, self._requested_at = True, number, now


@contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """Convert SIGINT and SIGTERM to a stop request within this context."""
    stop = StopRequest()
    with _handled_by(stop.set, signal.SIGINT, signal.SIGTERM):
        yield stop


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Restore the default action of SIGINT within this context, so that the system ends the process.

    Python's handler runs only after a wait for another process returns, which may never happen.
    """
    with _handled_by(signal.SIG_DFL, signal.SIGINT):
        yield


@contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None] | signal.Handlers, *numbers: signal.Signals
) -> Iterator[None]:
    """Install a signal handler within this context; does nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, handled in before.items():
            signal.signal(number, handled)
