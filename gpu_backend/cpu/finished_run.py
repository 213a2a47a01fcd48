"""A run on the CPU, which is over when it was submitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from gpu_backend.frame import StepTime, TimingSource
from gpu_backend.plan.plan import Plan


class FinishedRun:
    """Implements `gpu_backend.plan.executor.PendingRun`."""

    def __init__(self, outputs: Mapping[str, NDArray[Any]], steps: tuple[StepTime, ...]) -> None:
        self._outputs = outputs
        self._steps = steps

    def wait(self) -> Mapping[str, NDArray[Any]]:
        """Return the outputs that were asked for."""
        return self._outputs

    @property
    def steps(self) -> tuple[StepTime, ...]:
        """Times of a measured run; else empty."""
        return self._steps

    @property
    def timing_source(self) -> TimingSource:
        """The processor's own clock."""
        return "cpu"

    @property
    def waited_ms(self) -> float:
        """Nothing was waited for."""
        return 0.0

    @property
    def device_ms(self) -> float | None:
        """There is no device beside the processor."""
        return None


def step_times(plan: Plan, times_us: Iterable[float]) -> tuple[StepTime, ...]:
    """Name the steps of a plan beside the times that they took."""
    return tuple(
        StepTime(layer=step.layer, kernel=step.op, time_us=time_us, flops=step.flops, nbytes=step.nbytes)
        for step, time_us in zip(plan.steps, times_us, strict=True)
    )
