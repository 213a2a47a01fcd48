"""The interface that executors keep: the CPU's, and any other device's, run the same plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_backend.frame import StepTime, TimingSource
from gpu_backend.plan.plan import Plan, Precision

FRAME_OUTPUTS = ("pixels", "flags")
"""What a frame needs of a synthesis plan."""

TAP_OUTPUTS = ("statistics",)
"""What a frame needs besides, of a plan with a tap."""

TAP_VALUES = "values"
"""The output of such a plan that has the numbers of a channel."""

FLAG_NOT_FINITE = 1
"""Bit of ``flags``: the picture holds a number that is not finite."""


class PendingRun(Protocol):
    """A run that was handed to the device."""

    def wait(self) -> Mapping[str, NDArray[Any]]:
        """Wait for this run, and for none that came later, and return the outputs that were asked for.

        ``pixels`` is the caller's own to keep, and so is every view of it, and the outputs of a tap; other outputs are
        overwritten by the next run. May be called again, as long as no other run came.

        Raises
        ------
        CancelledError
            If the run was given up.
        DeviceMemoryError, DeviceLostError
            If the device failed.
        """
        ...

    @property
    def steps(self) -> tuple[StepTime, ...]:
        """After `wait`, the times of a measured run in execution order; else empty."""
        ...

    @property
    def timing_source(self) -> TimingSource:
        """Where the times of `steps` come from."""
        ...

    @property
    def waited_ms(self) -> float:
        """How long `submit` and `wait` were blocked so far, waiting for the device; 0 on the CPU."""
        ...

    @property
    def device_ms(self) -> float | None:
        """After `wait`, the time of the device's own work; None on the CPU."""
        ...


class BoundPlan(Protocol):
    """A plan bound to memory: constants packed, buffers allocated, ready to run any number of times."""

    @property
    def plan(self) -> Plan:
        """The plan that runs."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory of the device that this binding holds, besides what the executor shares between bindings."""
        ...

    def submit(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        outputs: tuple[str, ...] = FRAME_OUTPUTS,
        measure: bool = False,
        use_graph: bool = True,
        should_cancel: Callable[[], bool] | None = None,
    ) -> PendingRun:
        """Copy inputs into their fixed buffers and start every step.

        Parameters
        ----------
        inputs
            Name -> array, copied before this returns. Inputs that are left out keep what they held after the last run;
            a missing batch axis is repeated.
        outputs
            What `PendingRun.wait` is to return.
        measure
            Time each step.
        use_graph
            Where the device can replay a captured run: whether it does. An executor without graphs has no difference.
        should_cancel
            Asked now and then whether nobody waits for the run any more; once it says yes, CancelledError is raised
            here or by `wait`: the inputs were taken, the outputs mean nothing until the next run.

        At most two runs are in flight: a third waits here for the first.
        """
        ...

    def run(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        outputs: tuple[str, ...] = FRAME_OUTPUTS,
        measure: bool = False,
        use_graph: bool = True,
        should_cancel: Callable[[], bool] | None = None,
    ) -> Mapping[str, NDArray[Any]]:
        """Submit and wait."""
        ...

    def observe(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[np.float32]]:
        """Run once and return a copy of what each layer gave.

        Layer name -> (batch, channels, height, width) float32.
        """
        ...

    def close(self) -> None:
        """Free the memory. May be called twice, and after the device was lost."""
        ...


class Executor(Protocol):
    """Runs plans on one device."""

    @property
    def device_name(self) -> str:
        """For people: "CPU", "NVIDIA H200"."""
        ...

    @property
    def precision(self) -> Precision:
        """Precision of the activations."""
        ...

    @property
    def nbytes(self) -> int:
        """Memory of the device that bindings share: weights and other constants."""
        ...

    @property
    def pinned_nbytes(self) -> int:
        """Memory of the host that the device copies from and to; 0 on the CPU."""
        ...

    def bind(self, plan: Plan, *, use_fused: bool = True) -> BoundPlan:
        """Bind a plan to memory and to the model's weights.

        Parameters
        ----------
        plan
            For this executor's precision.
        use_fused
            False binds the slow and simple way to the same picture, which the fast one is checked against.

        Raises
        ------
        DeviceMemoryError
            If the device has no room; nothing of the binding is left then.
        DeviceLostError
            If the device was lost.
        """
        ...

    def close(self) -> None:
        """Close every bound plan. May be called twice, and after the device was lost."""
        ...
