"""A CPU run, which is finished when `submit` returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from gpu_backend.frame import StepTime, TimingSource
from gpu_backend.plan.plan import Step


class FinishedRun:
    """Implements `gpu_backend.plan.executor.PendingRun`."""

    def __init__(self, outputs: Mapping[str, NDArray[Any]], steps: tuple[StepTime, ...]) -> None:
        self._outputs = outputs
        self._steps = steps

    def wait(self) -> Mapping[str, NDArray[Any]]:
        return self._outputs

    @property
    def steps(self) -> tuple[StepTime, ...]:
        return self._steps

    @property
    def timing_source(self) -> TimingSource:
        return "cpu"

    @property
    def waited_ms(self) -> float:
        return 0.0

    @property
    def device_ms(self) -> float | None:
        return None


def step_times(steps: Iterable[Step], times_us: Iterable[float]) -> tuple[StepTime, ...]:
    """Return the times of steps with their names."""
    return tuple(
        StepTime(layer=step.layer, kernel=step.op, time_us=time_us, flops=step.flops, nbytes=step.nbytes)
        for step, time_us in zip(steps, times_us, strict=True)
    )
