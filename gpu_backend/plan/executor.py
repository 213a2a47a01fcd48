"""The interface of executors. The CPU and every other device run the same plans."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gpu_backend.frame import StepTime, TimingSource
from gpu_backend.plan.plan import Plan, Precision

FRAME_OUTPUTS = ("pixels", "flags")
"""Outputs of a synthesis plan that a frame needs."""

IMAGE_OUTPUT = "image"
"""Output of a synthesis plan: the picture as floats, before it is clamped and rounded."""

TAP_OUTPUTS = ("statistics",)
"""Further outputs that a frame needs from a plan with a tap."""

TAP_VALUES = "values"
"""Output of a plan with a tap: the values of the first channel that is shown."""

FLAG_NOT_FINITE = 1
"""Bit of the output ``flags``: the picture contains a value that is not finite."""


class PendingRun(Protocol):
    """A run that was submitted to the device."""

    def wait(self) -> Mapping[str, NDArray[Any]]:
        """Wait for this run, but not for later ones, and return the requested outputs.

        The caller owns every output of a run that gives ``pixels``. The next run overwrites the outputs of other runs.
        `wait` may be called again until another run is submitted.

        Raises
        ------
        CancelledError
            If the run was cancelled.
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
        """Clock that measured `steps`."""
        ...

    @property
    def waited_ms(self) -> float:
        """Milliseconds that `submit` and `wait` have blocked on the device; 0 on the CPU."""
        ...

    @property
    def device_ms(self) -> float | None:
        """After `wait`, milliseconds that the device was busy with the run; None on the CPU."""
        ...


class BoundPlan(Protocol):
    """A plan bound to memory: constants packed, buffers allocated, ready to run any number of times."""

    @property
    def plan(self) -> Plan:
        """The plan that runs."""
        ...

    @property
    def nbytes(self) -> int:
        """Device memory of this binding in bytes, without what the executor shares between bindings."""
        ...

    def submit(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        outputs: tuple[str, ...] = FRAME_OUTPUTS,
        measure: bool = False,
        use_graph: bool = True,
        uses_kept: bool = False,
        should_cancel: Callable[[], bool] | None = None,
    ) -> PendingRun:
        """Copy inputs into their fixed buffers and start every step.

        Parameters
        ----------
        inputs
            Name -> array, copied before this returns. Inputs that are left out keep their previous values. An array
            without a batch axis is broadcast.
        outputs
            Names of the outputs that `PendingRun.wait` returns.
        measure
            Time each step.
        use_graph
            Replay a captured graph, or recorded calls on the CPU. Ignored by executors without either.
        uses_kept
            Leave out the steps whose results are kept (`Plan.kept_steps`): an earlier run left them, and none of
            `Plan.kept_inputs` has changed since.
        should_cancel
            Called now and then. Once it returns true, this method or `wait` raises CancelledError: the inputs were
            copied, and the outputs are undefined until the next run.

        At most two runs are in flight; a third call waits for the first run.
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
        """Run once and return a copy of each layer's output: name -> (batch, channels, height, width) float32."""
        ...

    def close(self) -> None:
        """Free the memory. May be called twice, and after the device was lost."""
        ...


@runtime_checkable
class RecordsRuns(Protocol):
    """A bound plan whose runs become faster by and by, since they record what later ones replay."""

    def record_next_run(self) -> None:
        """Let the next run record all of it."""
        ...


@runtime_checkable
class CountsKernels(Protocol):
    """A bound plan on a GPU with hardware counters."""

    def counter_steps(self) -> Generator[None, None, None]:
        """Measure the hardware counters of every kernel for the last inputs, in bounded steps.

        Measured runs report them from then on, in `gpu_backend.frame.KernelFacts`. Other runs may come between two
        steps.

        Raises
        ------
        DeviceError
            If there are none, or this process may not read them.
        CancelledError
            If the plan was closed meanwhile.
        """
        ...


class Executor(Protocol):
    """Runs plans on one device."""

    @property
    def device_name(self) -> str:
        """Display name: "CPU", "NVIDIA H200"."""
        ...

    @property
    def precision(self) -> Precision:
        """Precision of the activations."""
        ...

    @property
    def nbytes(self) -> int:
        """Device memory that bindings share, in bytes: weights and other constants."""
        ...

    @property
    def pinned_nbytes(self) -> int:
        """Page-locked host memory in bytes; 0 on the CPU."""
        ...

    def bind(self, plan: Plan, *, use_fused: bool = True) -> BoundPlan:
        """Bind a plan to memory and to the model's weights. Checks what `check_steps` did not.

        Parameters
        ----------
        plan
            A plan for this executor's precision.
        use_fused
            False binds the plain kernels that the fused ones are checked against.

        Raises
        ------
        DeviceMemoryError
            If device memory is exhausted. The partial binding is freed.
        DeviceLostError
            If the device was lost.
        """
        ...

    def check_steps(self, plan: Plan) -> Generator[object, None, None]:
        """Check the kernels of a plan ahead of `bind`, in bounded steps; empty if there is nothing to check.

        Other plans may run between two steps.

        Raises
        ------
        DeviceMemoryError, DeviceLostError
            As `bind`.
        """
        ...

    def close(self) -> None:
        """Close every bound plan. May be called twice, and after the device was lost."""
        ...
