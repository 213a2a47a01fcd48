"""Ctrl-C and a polite kill end a training after the step at hand, so that it can save."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
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
    """Turn SIGINT and SIGTERM into a request while this lasts; threads other than the main one hear no signals."""
    asked = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, asked.ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
