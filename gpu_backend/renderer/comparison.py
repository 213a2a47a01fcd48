"""Comparison of execution variants (CUDA graph, launches, plain kernels): time and pixel differences."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model_runner import ModelRunner
from gpu_backend.plan.executor import PendingRun
from gpu_backend.plan.plan import PlanKey
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.request import RenderRequest

_RUNS = 7
_SLOW_MS = 100.0
_SLOW_RUNS = 2
"""Variants slower than this get fewer runs, because a user waits for the result."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Median times of the variants, and differences between the fused and the reference picture.

    Attributes
    ----------
    graph_ms, no_graph_ms
        A replayed graph, and the same kernels launched one by one; None on the CPU.
    fused_ms, reference_ms
        The fused kernels, and the plain ones that they are checked against.
    largest_difference, mean_difference
        Over all pixels and channels, in byte steps (0..255).
    """

    graph_ms: float | None
    no_graph_ms: float | None
    fused_ms: float
    reference_ms: float
    largest_difference: int
    mean_difference: float


def compare_ways(
    runner: ModelRunner,
    key: PlanKey,
    ws: NDArray[np.float32],
    request: RenderRequest,
    *,
    has_graphs: bool,
    has_alpha: bool,
    should_cancel: Callable[[], bool] | None = None,
) -> Comparison:
    """Run a request's plan on ws (1, num_ws, w_dim) with fused kernels, without a graph, and with plain kernels.

    Raises
    ------
    DeviceError
        If the device failed, or its memory is too small for both plans.
    CancelledError
        If `should_cancel`, called now and then, returned true.
    """

    def start(*, use_fused: bool = True, use_graph: bool = True) -> PendingRun:
        return runner.submit(
            key,
            ws,
            request.noise,
            request.transform,
            request.tap,
            request.edits,
            use_fused=use_fused,
            use_graph=use_graph,
            should_cancel=should_cancel,
        )

    fused_ms, fused = _measure(runner, start)
    no_graph_ms = _measure(runner, lambda: start(use_graph=False))[0] if has_graphs else None
    reference_ms, reference = _measure(runner, lambda: start(use_fused=False))
    channels = 4 if has_alpha else 3
    difference = np.abs(fused[..., :channels].astype(np.int16) - reference[..., :channels])
    return Comparison(
        graph_ms=fused_ms if has_graphs else None,
        no_graph_ms=no_graph_ms,
        fused_ms=fused_ms,
        reference_ms=reference_ms,
        largest_difference=int(difference.max()),
        mean_difference=float(difference.mean()),
    )


def _measure(runner: ModelRunner, start: Callable[[], PendingRun]) -> tuple[float, NDArray[np.uint8]]:
    """Return median milliseconds and the pixels. Uses device time if available; the first run is a warm-up."""
    times_ms: list[float] = []
    pixels: NDArray[np.uint8] = runner.finish(start())["pixels"]
    runs = _RUNS
    while len(times_ms) < runs:
        begin_s = time.perf_counter()
        run = start()
        pixels = runner.finish(run)["pixels"]
        elapsed_ms = (time.perf_counter() - begin_s) * 1e3
        if elapsed_ms > _SLOW_MS:
            runs = _SLOW_RUNS
        times_ms.append(elapsed_ms if run.device_ms is None else run.device_ms)
    return statistics.median(times_ms), pixels
