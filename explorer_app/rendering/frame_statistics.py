"""Frame times and latencies for the performance panel. No Qt and no clock."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from explorer_app.exporting.chrome_trace import TracedFrame
from gpu_backend import Frame, KernelFacts, LazyModule, dataclass

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

FRAME_BUDGET_MS = 33.0
"""Frames that take longer, in ms, noticeably lag behind the mouse."""

RING_SIZE = 240
"""Number of frames in the plot and the percentiles."""

TRACE_S = 10.0
"""Length of a trace, in seconds."""

_TRACE_SIZE = 20_000
"""Frames that a trace holds at most."""

_REST_S = 0.5
"""Frames further apart than this were not part of one movement."""

_MOVES_S = 1.0
"""A picture whose newest frame is older rests."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """One row of the table of steps.

    Attributes
    ----------
    share
        The part in 0..1 of the time of all steps.
    facts
        Facts of the kernel; None on the CPU.
    """

    layer: str
    kernel: str
    time_us: float
    share: float
    flops: int
    nbytes: int
    facts: KernelFacts | None = None

    @property
    def flop_per_s(self) -> float:
        """Operations per second; 0 where none are counted."""
        return self.flops / self.time_us * 1e6 if self.time_us > 0 else 0.0

    @property
    def bytes_per_s(self) -> float:
        """Bytes moved a second."""
        return self.nbytes / self.time_us * 1e6 if self.time_us > 0 else 0.0


class FrameStatistics:
    """Statistics of the newest frames. Times are in seconds from any origin."""

    def __init__(self) -> None:
        self._frame_ms: deque[float] = deque(maxlen=RING_SIZE)
        self._device_ms: deque[float] = deque(maxlen=RING_SIZE)
        self._host_ms: deque[float] = deque(maxlen=RING_SIZE)
        self._gaps_s: deque[float] = deque(maxlen=30)
        self._latency_ms: deque[float] = deque(maxlen=60)
        self._traced: deque[TracedFrame] = deque(maxlen=_TRACE_SIZE)
        self._last_shown_s: float | None = None
        self._steps: tuple[StepCost, ...] = ()
        self._idle_ms: float | None = None
        self._timing_source = "cpu"
        self.dropped = 0
        """Frames that were rendered but replaced by a newer one before they could be shown."""

    def frame_arrived(self, frame: Frame, now_s: float) -> None:
        """Record a frame that is about to be shown.

        Frames that were measured step by step give the table; measuring slows them, so they are left out of the times.
        """
        timings = frame.timings
        if timings.steps:
            self._take_steps(frame)
        else:
            self._frame_ms.append(timings.total_ms)
            if timings.device_ms is not None:
                self._device_ms.append(timings.device_ms)
            if timings.host_ms is not None:
                self._host_ms.append(timings.host_ms)
        if self._last_shown_s is not None and now_s - self._last_shown_s < _REST_S:
            self._gaps_s.append(now_s - self._last_shown_s)
        self._last_shown_s = now_s
        self._traced.append(TracedFrame(now_s, frame.width, frame.height, frame.is_draft, timings))
        while self._traced[0].arrived_s < now_s - TRACE_S:
            self._traced.popleft()

    def _take_steps(self, frame: Frame) -> None:
        timings = frame.timings
        sum_us = sum(step.time_us for step in timings.steps)
        total_us = sum_us or 1.0
        self._steps = tuple(
            StepCost(
                step.layer, step.kernel, step.time_us, step.time_us / total_us, step.flops, step.nbytes, step.facts
            )
            for step in timings.steps
        )
        self._timing_source = timings.timing_source
        # Times from events are scaled to fill the device's time, gaps included: the two cannot be distinguished.
        self._idle_ms = None
        if timings.device_ms is not None and timings.timing_source == "cupti":
            self._idle_ms = max(0.0, timings.device_ms - sum_us / 1000.0)

    def frame_painted(self, requested_s: float, now_s: float) -> None:
        """Record that the picture requested at `requested_s` is on the screen at `now_s`."""
        self._latency_ms.append((now_s - requested_s) * 1000.0)

    def clear(self) -> None:
        """Drop everything: costs depend on model and device."""
        for ring in (self._frame_ms, self._device_ms, self._host_ms, self._gaps_s, self._latency_ms, self._traced):
            ring.clear()
        self._last_shown_s = None
        self._steps = ()
        self._idle_ms = None
        self.dropped = 0

    @property
    def frame_times_ms(self) -> tuple[float, ...]:
        """Times of the newest frames, RING_SIZE at most, oldest first."""
        return tuple(self._frame_ms)

    @property
    def newest_ms(self) -> float:
        """Time of the newest frame; 0 before the first."""
        return self._frame_ms[-1] if self._frame_ms else 0.0

    @property
    def fps(self) -> float:
        """Frames per second while the picture last moved; 0 before it ever did."""
        total = sum(self._gaps_s)
        return len(self._gaps_s) / total if total > 0 else 0.0

    def moving_fps(self, now_s: float) -> float | None:
        """Return `fps` while the picture moves; None while it rests."""
        is_moving = self._last_shown_s is not None and now_s - self._last_shown_s < _MOVES_S
        return (self.fps or None) if is_moving else None

    def percentiles_ms(self, *percents: float) -> tuple[float, ...]:
        """Return percentiles of the frame times, interpolated; 0 before the first frame."""
        if not self._frame_ms:
            return (0.0,) * len(percents)
        return tuple(float(value) for value in np.percentile(self.frame_times_ms, percents))

    @property
    def device_ms(self) -> float | None:
        """Median time of the frame on the device, from its first kernel to its last; None on the CPU."""
        return float(np.median(self._device_ms)) if self._device_ms else None

    @property
    def host_ms(self) -> float | None:
        """Median host time of a frame, waiting excluded; None where it is not measured."""
        return float(np.median(self._host_ms)) if self._host_ms else None

    @property
    def idle_ms(self) -> float | None:
        """The device's time between the kernels of the frame that was measured last; None if unknown."""
        return self._idle_ms

    @property
    def timing_source(self) -> str:
        """How the steps were timed: "cpu", "events" or "cupti"."""
        return self._timing_source

    @property
    def gesture_to_screen_ms(self) -> float:
        """Median time from a gesture to its picture being painted, over the newest 60; 0 before the first."""
        return float(np.median(self._latency_ms)) if self._latency_ms else 0.0

    @property
    def newest_latency_ms(self) -> float | None:
        """Time from a gesture to its picture being painted, of the newest; None before the first."""
        return self._latency_ms[-1] if self._latency_ms else None

    @property
    def steps(self) -> tuple[StepCost, ...]:
        """Steps of the frame that was measured last, in execution order."""
        return self._steps

    @property
    def traced(self) -> tuple[TracedFrame, ...]:
        """Frames of the last `TRACE_S` seconds, oldest first."""
        return tuple(self._traced)
