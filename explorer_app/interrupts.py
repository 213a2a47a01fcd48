"""Ctrl-C while modules are imported, when nothing has begun that would have to be ended.

Raising KeyboardInterrupt there does not do: an import may swallow it, and Qt's bindings abort the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

EXIT_STOPPED = 130


def leave(number: int, frame: FrameType | None) -> None:
    """Say that the program was stopped and end the process; a handler of SIGINT."""
    try:
        os.write(2, b"Stopped.\n")
    finally:
        os._exit(EXIT_STOPPED)


@contextlib.contextmanager
def leaving_at_once() -> Iterator[None]:
    """End the process on a Ctrl-C within this block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
