"""Ctrl-C and a polite kill end a training after the step at hand, so that it can save."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_AT_ONCE_S = 1.0


class StopRequest:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.is_asked = False
        self._asked_at = 0.0

    def ask(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Note it; a person who presses Ctrl-C again does not want to wait.

        What comes at once again is no person: torchrun passes a Ctrl-C on that the terminal gave to all processes.
        """
        now = time.monotonic()
        if self.is_asked and number == signal.SIGINT and now - self._asked_at > _AT_ONCE_S:
            raise KeyboardInterrupt
        if not self.is_asked:
            self.is_asked, self._asked_at = True, now


@contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """Turn SIGINT and SIGTERM into a request while this lasts."""
    asked = StopRequest()
    with _handled_by(asked.ask, signal.SIGINT, signal.SIGTERM):
        yield asked


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let the system end the process at SIGINT while this lasts.

    Python's own handler is not called before a wait for another process is over, and it may never be.
    """
    with _handled_by(signal.SIG_DFL, signal.SIGINT):
        yield


@contextmanager
def _handled_by(
    handler: Callable[[int, FrameType | None], None] | signal.Handlers, *numbers: signal.Signals
) -> Iterator[None]:
    """Handle signals otherwise while this lasts; threads other than the main one hear none."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, handled in before.items():
            signal.signal(number, handled)
