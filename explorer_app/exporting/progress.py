"""How far a sequence is, and how long the rest will take."""

from __future__ import annotations

from collections import deque

from gpu_backend import dataclass

_WINDOW = 32
"""Frames that the estimate looks back on: long enough to be calm, short enough to follow a changing load."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an export. `seconds_left` and `per_second` are None until two frames have been rendered."""

    done: int
    total: int
    seconds_left: float | None = None
    per_second: float | None = None

    @property
    def sentence(self) -> str:
        """For people: "12 of 48 frames, 35 s left"."""
        frames = f"{self.done} of {self.total} frame{'' if self.total == 1 else 's'}"
        if self.seconds_left is None or self.done == self.total:
            return frames
        return f"{frames}, {time_text(self.seconds_left)} left"


class ProgressMeter:
    """Estimates the time left from the pace of the last frames. Pure: the caller passes the time."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._past: deque[tuple[float, int]] = deque(maxlen=_WINDOW)

    @property
    def has_started(self) -> bool:
        """`update` has been called."""
        return bool(self._past)

    def update(self, done: int, found: int, now_s: float) -> Progress:
        """Update the progress.

        Parameters
        ----------
        done
            Frames that are there.
        found
            Frames among them that an earlier run had rendered.
        now_s
            Time of any clock that does not jump.
        """
        rendered = done - found
        if rendered == 0:  # until the first frame, nothing is known of the pace
            self._past.clear()
        if not self._past or rendered > self._past[-1][1]:
            self._past.append((now_s, rendered))
        first_s, first = self._past[0]
        last_s, last = self._past[-1]
        if last == first or last_s <= first_s:
            return Progress(done, self._total)
        pace_s = (last_s - first_s) / (last - first)
        return Progress(done, self._total, max(0.0, pace_s * (self._total - done) - (now_s - last_s)), 1.0 / pace_s)


def time_text(seconds: float) -> str:
    """Return a duration as people say it: "35 s", "2 min 10 s", "1 h 05 min"."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
