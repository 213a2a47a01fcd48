"""Ctrl-C and a polite kill end a training after the step at hand, so that it can save."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.is_asked = False

    def ask(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Note it; who asks twice does not want to wait."""
        if self.is_asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.is_asked = True


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
