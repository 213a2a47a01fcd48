"""Costs of kernels from a fake timer, without a GPU."""

from __future__ import annotations

from typing import Literal

import numpy as np

from explorer_app.rendering.frame_statistics import FrameStatistics, StepCost
from gpu_backend import Frame, FrameTimings, KernelCounters, KernelFacts, RenderRequest, Roofline, StepTime

TimingSource = Literal["cpu", "events", "cupti"]

ROOFLINE = Roofline(copy_bytes_per_s=4e12, matrix_flop_per_s=800e12, is_measured=True)

COUNTERS = KernelCounters(0.46, 0.72, 0.083, 4.0, 15.96)

REASON = "its self-check was off by 3.2, more than 0.02"


def facts(*, state: str = "fused", registers: int = 96, grid: tuple[int, int, int] = (64, 8, 1)) -> KernelFacts:
    """Return the facts of a kernel; one that fell back has a reason."""
    return KernelFacts(
        grid=grid,
        block=(128, 1, 1),
        registers=registers,
        shared_nbytes=98_304,
        spill_nbytes=0,
        occupancy=0.5,
        waves=1.94,
        state=state,  # type: ignore[arg-type]
        reason=REASON if state == "fallback" else "",
        digest="ab" * 32,
        limits=("registers",),
        counters=COUNTERS,
    )


def gpu_step(
    layer: str, time_us: float, *, kernel: str = "modulated_conv", flops: int = 8_000_000_000, state: str = "fused"
) -> StepTime:
    """Return a step of a GPU: 4 MB moved, eight thousand million operations unless told otherwise."""
    return StepTime(layer, kernel, time_us, flops, 4_000_000, facts(state=state))


def gpu_steps(count: int = 6, scale: float = 1.0, fallback: int = -1) -> tuple[StepTime, ...]:
    """Return steps whose times rise from the first to the last; the one numbered `fallback` fell back."""
    return tuple(
        gpu_step(f"synthesis.b{4 << number}.conv1", (number + 1) * 20.0 * scale, state=state)
        for number in range(count)
        for state in ("fallback" if number == fallback else "fused",)
    )


def timed_frame(
    total_ms: float = 1.0,
    steps: tuple[StepTime, ...] = (),
    *,
    device_ms: float | None = None,
    host_ms: float | None = None,
    source: TimingSource = "cupti",
) -> Frame:
    """Return a frame with this time; its kernels were timed by `source`."""
    pixels = np.full((4, 4, 4), 255, np.uint8)
    is_gpu = bool(steps) and steps[0].facts is not None
    timings = FrameTimings(total_ms, 0.1, total_ms - 0.1, steps, device_ms, host_ms, source if is_gpu else "cpu")
    return Frame(RenderRequest("model"), pixels, timings)


def gpu_statistics(*, fallback: int = -1, frames: int = 40) -> FrameStatistics:
    """Return statistics of a GPU: frames of a millisecond, and one that was measured."""
    statistics = FrameStatistics()
    for number in range(frames):
        at_s = number / 60
        statistics.frame_arrived(timed_frame(1.0 + number / 1000, device_ms=0.45, host_ms=0.1), at_s)
        statistics.frame_painted(at_s - 0.004, at_s)
    statistics.frame_arrived(timed_frame(1.5, gpu_steps(fallback=fallback), device_ms=0.44), frames / 60)
    return statistics


def costs(fallback: int = -1) -> tuple[StepCost, ...]:
    """Return the rows that those steps make."""
    return gpu_statistics(fallback=fallback, frames=1).steps
