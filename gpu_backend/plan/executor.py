"""The interface that executors keep: the CPU's, and any other device's, run the same plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_backend.plan.plan import Plan, Precision


class BoundPlan(Protocol):
    """A plan bound to memory: constants packed, buffers allocated, ready to run any number of times."""

    @property
    def plan(self) -> Plan:
        """The plan that runs."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory that this binding holds."""
        ...

    def run(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        measure: bool = False,
        abandoned: Callable[[], bool] | None = None,
    ) -> Mapping[str, NDArray[Any]]:
        """Copy inputs into their fixed buffers, run every step, return the outputs.

        Inputs that are left out keep what they held after the last run. Outputs are views of fixed buffers: copy what
        must outlive the next run. With `measure`, `step_times_us` holds this run's time of each step afterwards.
        `abandoned` is asked between steps; once it says yes, CancelledError is raised: the inputs were taken, the
        outputs mean nothing until the next run.
        """
        ...

    @property
    def step_times_us(self) -> tuple[float, ...]:
        """Time of each step of the last measured run, in execution order; empty before the first."""
        ...

    def observe(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[np.float32]]:
        """Run once and return a copy of what each layer gave.

        Layer name -> (batch, channels, height, width) float32.
        """
        ...

    def close(self) -> None:
        """Free the memory. May be called twice."""
        ...


class Executor(Protocol):
    """Runs plans on one device."""

    @property
    def device_name(self) -> str:
        """For people: "CPU"."""
        ...

    @property
    def precision(self) -> Precision:
        """Precision of the activations."""
        ...

    def bind(self, plan: Plan) -> BoundPlan:
        """Bind a plan to memory and to the model's weights."""
        ...

    def close(self) -> None:
        """Close every bound plan. May be called twice."""
        ...
