"""How much of a work fits into a given time, by the pace of what is done."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class TimeLimit:
    """Measures pieces of work; what their thread does between them does not count.

    Parameters
    ----------
    limit_s
        Seconds for all pieces; infinite for no limit.
    clock
        Seconds from any start, never going back.
    """

    def __init__(self, limit_s: float = math.inf, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = limit_s
        self._clock = clock
        self._spent_s = 0.0
        self._done = 0

    @property
    def done(self) -> int:
        """Pieces that are done."""
        return self._done

    @property
    def is_set(self) -> bool:
        """Whether there is a limit."""
        return math.isfinite(self._limit_s)

    @property
    def pace_s(self) -> float:
        """Seconds a piece, the mean; 0 before the first one."""
        return self._spent_s / self._done if self._done else 0.0

    @contextmanager
    def pieces(self, count: int = 1) -> Iterator[None]:
        """Measure so many pieces, done in the context."""
        began_s = self._clock()
        yield
        self._spent_s += self._clock() - began_s
        self._done += count

    def fitting(self, wanted: int, least: int = 1) -> int:
        """Return how many pieces fit into the time, those done included: `least` to `wanted`, or all that are done."""
        if not self.is_set or self._spent_s <= 0.0:
            return wanted
        fitting = int(min(wanted, self._limit_s / self.pace_s))
        return min(wanted, max(fitting, least, self._done))
