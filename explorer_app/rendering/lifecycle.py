"""Where a thread is in its life."""

from __future__ import annotations

from enum import Enum, auto


# NEW ──start()──► RUNNING ──close()──► CLOSING ──the thread has ended──► CLOSED
#  └───────────────────────────────close()──────────────────────────────────▲
class Lifecycle(Enum):
    """Where a thread is in its life; it goes one way only."""

    NEW = auto()
    RUNNING = auto()
    CLOSING = auto()
    CLOSED = auto()
