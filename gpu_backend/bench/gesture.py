"""Latency of a drag: changing requests one after the other, each awaited on the host."""

from __future__ import annotations

import math
import statistics
import time

import numpy as np

from gpu_backend.bench.report import Gesture
from gpu_backend.latent.plane import plane_point
from gpu_backend.process_memory import process_nbytes
from gpu_backend.recipe import DirectionAmount, Latent, Recipe, Truncation
from gpu_backend.renderer import Renderer
from gpu_backend.request import RenderRequest

_LEAST = 20
_WARM_UP = 30


def measure_gesture(renderer: Renderer, *, frames: int, limit_s: float) -> Gesture:
    """Render `frames` pictures of a drag, fewer (but at least 20) if they take longer than `limit_s` in all."""
    drag = _Drag(renderer)
    end = time.perf_counter() + limit_s / 4
    for _ in range(_WARM_UP):
        renderer.render(drag.next_request())
        if time.perf_counter() > end:
            break
    times_ms: list[float] = []
    host_ms: list[float] = []
    device_ms: list[float] = []
    cpu_start, start = time.process_time(), time.perf_counter()
    while len(times_ms) < frames and (len(times_ms) < _LEAST or time.perf_counter() - start < limit_s):
        request = drag.next_request()
        before = time.perf_counter()
        timings = renderer.render(request).timings
        times_ms.append((time.perf_counter() - before) * 1e3)
        if timings.host_ms is not None:
            host_ms.append(timings.host_ms)
        if timings.device_ms is not None:
            device_ms.append(timings.device_ms)
    cpu_ms = (time.process_time() - cpu_start) * 1e3 / len(times_ms)
    p50_ms, p99_ms = (float(value) for value in np.percentile(times_ms, (50, 99)))
    return Gesture(
        precision=renderer.device.precision,
        frames=len(times_ms),
        p50_ms=p50_ms,
        p99_ms=p99_ms,
        device_ms=statistics.median(device_ms) if device_ms else None,
        host_ms=statistics.median(host_ms) if host_ms else None,
        cpu_ms=cpu_ms,
        nbytes=renderer.memory.total,
        process_nbytes=process_nbytes(),
    )


class _Drag:
    """A slow circle over the seed plane while a direction swings: every request is another, now and then a new seed."""

    def __init__(self, renderer: Renderer) -> None:
        self._model_id = renderer.facts.model_id
        names = list(renderer.directions.names)
        self._direction = names[0] if names else "axis/0"
        self._step = 0

    def next_request(self) -> RenderRequest:
        angle = self._step / 100
        self._step += 1
        point = plane_point(10 + 2 * math.cos(angle), 10 + 2 * math.sin(angle))
        amount = DirectionAmount(self._direction, math.sin(7 * angle))
        recipe = Recipe(Latent(point, directions=(amount,)), Truncation(psi=0.7))
        return RenderRequest(model_id=self._model_id, blend=((recipe, 1.0),))
