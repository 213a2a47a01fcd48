"""The newest value of every live source: written by input threads, read once a frame."""

from __future__ import annotations

import math
import threading

MAX_SOURCES = 1024
"""Sources that a board holds; a new source replaces the one with the oldest value."""


class ValueBoard:
    """Holds the newest value of each source, normalised to 0..1. Thread-safe; memory is bounded.

    Writers replace: whatever arrives between two frames, a frame sees one value a source.
    """

    def __init__(self, limit: int = MAX_SOURCES) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._values: dict[str, float] = {}
        """In the order of their last message, the newest last."""
        self._count = 0

    @property
    def count(self) -> int:
        """How many values have arrived; it changes with every message, also of an equal value."""
        return self._count

    def put(self, source: str, value: float) -> None:
        """Replace a source's value, clamped to 0..1; one that is not finite is ignored."""
        if not math.isfinite(value):
            return
        with self._lock:
            self._put(source, value)

    def put_all(self, values: dict[str, float]) -> None:
        """Replace the values of several sources at once: no frame sees one without the other."""
        with self._lock:
            for source, value in values.items():
                if math.isfinite(value):
                    self._put(source, value)

    def newest(self) -> dict[str, float]:
        """Return a copy of all values, source -> 0..1."""
        with self._lock:
            return dict(self._values)

    def forget(self, prefix: str) -> None:
        """Drop the sources whose names begin with a prefix: their input was closed."""
        with self._lock:
            self._values = {name: value for name, value in self._values.items() if not name.startswith(prefix)}

    def _put(self, source: str, value: float) -> None:
        values = self._values
        values.pop(source, None)
        if len(values) >= self._limit:
            del values[next(iter(values))]
        values[source] = min(max(value, 0.0), 1.0)
        self._count += 1
