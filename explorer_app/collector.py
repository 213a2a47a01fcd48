"""Python's cyclic garbage, collected on the window's thread alone.

Python collects on whatever thread happens to make one object too many. Where that finds Qt objects, they are destroyed
there and then: Qt takes a lock of its own, and the binding asks for the interpreter's; the window's thread may hold
that one and wait for Qt's, and neither ever goes on (PySide6 6.11: actions of a menu, and a thread that reads a file).
"""

from __future__ import annotations

import gc

_BEAT_MS = 500


class Collector:
    """Takes over from Python's own collections while it runs."""

    def __init__(self) -> None:
        from PySide6.QtCore import QTimer

        self._timer = QTimer()
        self._timer.setInterval(_BEAT_MS)
        self._timer.timeout.connect(collect_due)
        self._was_on = False

    def start(self) -> None:
        """Collect from now on, on the thread that calls this, as often as its events are looked at."""
        self._was_on = gc.isenabled()
        gc.disable()
        self._timer.start()

    def close(self) -> None:
        """Leave it to Python again, if it was. May be called twice."""
        self._timer.stop()
        if self._was_on:
            self._was_on = False
            gc.enable()


def collect_due() -> None:
    """Collect the oldest generation that has as much as Python waits for, or nothing."""
    due = [count > most for count, most in zip(gc.get_count(), gc.get_threshold(), strict=True)]
    if due[0]:
        gc.collect(max(generation for generation, is_due in enumerate(due) if is_due))


def freeze_startup_objects() -> None:
    """Keep all that a start made out of later collections: it stays.

    Looking through its 270,000 objects takes tenths of a second in which no picture comes, whatever thread does it.
    """
    gc.freeze()
