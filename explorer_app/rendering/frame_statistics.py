"""What frames cost and how promptly they follow the hand: figures for the performance panel, no Qt and no clock."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend import Frame

FRAME_BUDGET_MS = 33.0
"""A frame that takes longer than this is no longer felt as following the hand."""

RING_SIZE = 240
"""Frames that the plot and the percentiles look back on."""

_REST_S = 0.5
"""Frames further apart than this were not part of one movement."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """One row of the table of steps. `share` is the part in 0..1 of the time of all steps."""

    layer: str
    kernel: str
    time_us: float
    share: float
    flops: int
    nbytes: int


class FrameStatistics:
    """Figures over the newest frames. The clock is the caller's: times are in seconds from anywhere."""

    def __init__(self) -> None:
        self._frame_ms: deque[float] = deque(maxlen=RING_SIZE)
        self._gaps_s: deque[float] = deque(maxlen=30)
        self._latency_ms: deque[float] = deque(maxlen=60)
        self._last_shown_s: float | None = None
        self._steps: tuple[StepCost, ...] = ()
        self.dropped = 0
        """Frames that were rendered but replaced by a newer one before they could be shown."""

    def frame_arrived(self, frame: Frame, now_s: float) -> None:
        """Take in a frame that is about to be shown.

        Frames that were measured step by step give the table; measuring slows them, so they are left out of the times.
        """
        if frame.timings.steps:
            total_us = sum(step.time_us for step in frame.timings.steps) or 1.0
            self._steps = tuple(
                StepCost(step.layer, step.kernel, step.time_us, step.time_us / total_us, step.flops, step.nbytes)
                for step in frame.timings.steps
            )
        else:
            self._frame_ms.append(frame.timings.total_ms)
        if self._last_shown_s is not None and now_s - self._last_shown_s < _REST_S:
            self._gaps_s.append(now_s - self._last_shown_s)
        self._last_shown_s = now_s

    def frame_painted(self, asked_s: float, now_s: float) -> None:
        """Take in that the picture asked for at `asked_s` is on the screen at `now_s`."""
        self._latency_ms.append((now_s - asked_s) * 1000.0)

    def clear(self) -> None:
        """Forget everything: another model has other costs."""
        for ring in (self._frame_ms, self._gaps_s, self._latency_ms):
            ring.clear()
        self._last_shown_s = None
        self._steps = ()
        self.dropped = 0

    @property
    def frame_times_ms(self) -> NDArray[np.float64]:
        """Times of the newest frames, (n,) float64 with n <= RING_SIZE, oldest first."""
        return np.array(self._frame_ms, dtype=np.float64)

    @property
    def newest_ms(self) -> float:
        """Time of the newest frame; 0 before the first."""
        return self._frame_ms[-1] if self._frame_ms else 0.0

    @property
    def fps(self) -> float:
        """Frames a second while the picture last moved; 0 before it ever did."""
        total = sum(self._gaps_s)
        return len(self._gaps_s) / total if total > 0 else 0.0

    @property
    def p50_ms(self) -> float:
        """Median frame time; 0 before the first frame."""
        return self.percentile_ms(50)

    @property
    def p95_ms(self) -> float:
        """Nineteen frames of twenty take at most this long."""
        return self.percentile_ms(95)

    @property
    def p99_ms(self) -> float:
        """Ninety-nine frames of a hundred take at most this long."""
        return self.percentile_ms(99)

    def percentile_ms(self, percent: float) -> float:
        """Return a percentile of the frame times, interpolated; 0 before the first frame."""
        return float(np.percentile(self.frame_times_ms, percent)) if self._frame_ms else 0.0

    @property
    def gesture_to_screen_ms(self) -> float:
        """Median time from a gesture to its picture being painted, over the newest 60; 0 before the first."""
        return float(np.median(self._latency_ms)) if self._latency_ms else 0.0

    @property
    def steps(self) -> tuple[StepCost, ...]:
        """Steps of the frame that was measured last, in execution order."""
        return self._steps
