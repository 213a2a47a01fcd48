"""A CPU run, which is finished when `submit` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from gpu_backend.frame import StepTime, TimingSource, with_second
from gpu_backend.plan.plan import Plan


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


def step_times(plan: Plan, times_us: Sequence[float]) -> tuple[StepTime, ...]:
    """Return the times of a plan's last steps with their names; one time for each step that ran."""
    first = len(plan.steps) - len(times_us)
    steps = tuple(
        StepTime(layer=step.layer, kernel=step.op, time_us=time_us, flops=step.flops, nbytes=step.nbytes)
        for step, time_us in zip(plan.steps[first:], times_us, strict=True)
    )
    return with_second(steps, max(0, plan.kept_steps - first))
