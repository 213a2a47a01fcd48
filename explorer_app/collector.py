"""Python's cyclic garbage, collected on the window's thread alone, and not during a start.

Python collects on whichever thread makes one object too many. If it finds Qt objects, it destroys them on that thread:
Qt takes its own lock, and the binding takes the interpreter's; the window's thread may hold the second and wait for
the first: a deadlock (PySide6 6.11: actions of a menu, and a thread that reads a file).

A start makes hundreds of thousands of objects that stay: modules, classes, widgets. Collections while they are made
take a fifth of the start's CPU time and free next to nothing.
"""

from __future__ import annotations

import gc

_BEAT_MS = 500

_LONGEST_START_BEATS = 30
"""A start without a picture, because there is no model or device, counts as over after this many beats."""


class Collector:
    """Takes over from Python's own collections while it runs."""

    def __init__(self) -> None:
        from PySide6.QtCore import QTimer

        self._timer = QTimer()
        self._timer.setInterval(_BEAT_MS)
        self._timer.timeout.connect(self._beat)
        self._was_on = False
        self._held_beats = 0

    def start(self) -> None:
        """Collect from now on, on the thread that calls this, as often as its events are looked at."""
        self._was_on = gc.isenabled()
        gc.disable()
        self._timer.start()

    def hold(self) -> None:
        """Collect nothing until `release`, or until a start has taken `_LONGEST_START_BEATS`."""
        self._held_beats = _LONGEST_START_BEATS

    def release(self) -> None:
        """Freeze all objects made so far, so that later collections skip them.

        Does nothing unless collections are held.
        Looking through the 270,000 objects that a start makes takes tenths of a second in which no picture comes,
        whatever thread does it.
        """
        if self._held_beats:
            self._held_beats = 0
            gc.freeze()

    def close(self) -> None:
        """Re-enable Python's own collection if it was enabled. May be called twice."""
        self._timer.stop()
        if self._was_on:
            self._was_on = False
            gc.enable()

    def _beat(self) -> None:
        if self._held_beats > 1:
            self._held_beats -= 1
            return
        self.release()
        collect_due()


def collect_due() -> None:
    """Collect the oldest generation that has as much as Python waits for, or nothing."""
    due = [count > most for count, most in zip(gc.get_count(), gc.get_threshold(), strict=True)]
    if due[0]:
        gc.collect(max(generation for generation, is_due in enumerate(due) if is_due))
