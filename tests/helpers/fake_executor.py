"""An executor that implements the protocol without computing: no torch, no driver.

Each picture is one colour, made of its first number of ws and of the noise, so that equal inputs give equal bytes. It
remembers what was bound and submitted, and fails, delays or counts memory as a test wants.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import CancelledError, DeviceError, DeviceLostError, DeviceMemoryError
from gpu_backend.frame import StepTime, TimingSource
from gpu_backend.plan.arena import buffer_nbytes
from gpu_backend.plan.executor import FRAME_OUTPUTS
from gpu_backend.plan.plan import Plan, PlanKey, Precision

MOST_IN_FLIGHT = 2


@dataclass(frozen=True)
class Submitted:
    """A requested run: names of its inputs and its options."""

    key: PlanKey
    inputs: frozenset[str]
    outputs: tuple[str, ...]
    measure: bool
    use_graph: bool
    use_fused: bool
    uses_kept: bool


@dataclass
class FakeExecutor:
    """Implements `gpu_backend.plan.executor.Executor`.

    Attributes
    ----------
    memory_nbytes
        What all bound plans may take together; more than that is a DeviceMemoryError.
    delay_s
        How long a run takes once it was submitted.
    failing
        Raised by the next `submit`, `wait` or `bind`, and then forgotten unless the device is lost with it.
    """

    device_name: str = "FAKE GPU"
    precision: Precision = "fp16"
    memory_nbytes: int = 1 << 40
    delay_s: float = 0.0
    failing: dict[str, DeviceError] = field(default_factory=dict)
    nbytes: int = 1000
    pinned_nbytes: int = 30
    bound: list[FakePlan] = field(default_factory=list)
    submitted: list[Submitted] = field(default_factory=list)
    in_flight: list[FakeRun] = field(default_factory=list)
    unchecked: dict[PlanKey, int] = field(default_factory=dict)
    """Steps that the checks of a plan take."""
    checks_ended: list[PlanKey] = field(default_factory=list)
    counts: list[tuple[PlanKey, bool]] = field(default_factory=list)
    """Passes that counted, by plan and whether its kernels are fused."""
    closed: int = 0
    is_lost: bool = False

    def bind(self, plan: Plan, *, use_fused: bool = True) -> FakePlan:
        self.fail("bind")
        assert plan.key.precision == self.precision
        made = FakePlan(self, plan, use_fused)
        if made.nbytes + sum(other.nbytes for other in self.bound) > self.memory_nbytes:
            raise DeviceMemoryError("The fake GPU has too little memory.")
        self.bound.append(made)
        return made

    def check_steps(self, plan: Plan) -> Generator[object, None, None]:
        key = plan.key
        try:
            while self.unchecked.get(key, 0):
                self.fail("check")
                self.unchecked[key] -= 1
                yield key
        finally:
            self.checks_ended.append(key)

    def close(self) -> None:
        self.closed += 1
        for plan in list(self.bound):
            plan.close()

    def fail(self, where: str) -> None:
        """Raise the error that a test placed here."""
        if self.is_lost:
            raise DeviceLostError("The fake GPU was lost.", "asked again after it was lost")
        error = self.failing.pop(where, None)
        if isinstance(error, DeviceLostError):
            self.is_lost = True
        if error is not None:
            raise error

    def runs(self, part: str) -> list[Submitted]:
        return [run for run in self.submitted if run.key.part == part]

    def standing(self, *, use_fused: bool = True) -> list[PlanKey]:
        """Keys of the plans that are bound and open."""
        return [plan.plan.key for plan in self.bound if plan.use_fused == use_fused]


class FakePlan:
    """Implements `gpu_backend.plan.executor.BoundPlan`."""

    def __init__(self, executor: FakeExecutor, plan: Plan, use_fused: bool) -> None:
        self.executor, self.plan, self.use_fused = executor, plan, use_fused
        self.closed = 0
        self.held: dict[str, NDArray[Any]] = {}
        self._shapes = {buffer.name: (buffer.shape, buffer.dtype, buffer.role) for buffer in plan.buffers}
        self._made = {
            name: np.zeros(shape, dtype) for name, (shape, dtype, role) in self._shapes.items() if role == "output"
        }

    @property
    def nbytes(self) -> int:
        return self.plan.arena_nbytes + sum(buffer_nbytes(b) for b in self.plan.buffers if b.role != "intermediate")

    def counter_steps(self) -> Generator[None, None, None]:
        """Two passes."""
        for _ in range(2):
            self.executor.fail("count")
            self.executor.counts.append((self.plan.key, self.use_fused))
            yield

    def submit(
        self,
        inputs: Mapping[str, NDArray[Any]],
        *,
        outputs: tuple[str, ...] = FRAME_OUTPUTS,
        measure: bool = False,
        use_graph: bool = True,
        uses_kept: bool = False,
        should_cancel: Callable[[], bool] | None = None,
    ) -> FakeRun:
        executor = self.executor
        executor.fail("submit")
        assert not self.closed
        for name, array in inputs.items():
            shape, dtype, role = self._shapes[name]
            assert role == "input"
            assert array.shape in (shape, shape[1:])
            assert array.dtype == dtype
            self.held[name] = array.copy()
        executor.submitted.append(
            Submitted(self.plan.key, frozenset(inputs), outputs, measure, use_graph, self.use_fused, uses_kept)
        )
        if should_cancel is not None and should_cancel():
            raise CancelledError("Given up.")
        waited_ms = 0.0
        if len(executor.in_flight) >= MOST_IN_FLIGHT:
            waited_ms = executor.in_flight[0].finish()
        run = FakeRun(self, outputs, measure, waited_ms)
        executor.in_flight.append(run)
        return run

    def run(self, inputs: Mapping[str, NDArray[Any]], **options: Any) -> Mapping[str, NDArray[Any]]:
        return self.submit(inputs, **options).wait()

    def observe(self, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[np.float32]]:
        self.run(inputs)
        return {
            step.layer: np.zeros((1, 2, 4, 4), np.float32) for step in self.plan.steps if step.op == "modulated_conv"
        }

    def close(self) -> None:
        self.closed += 1
        if self in self.executor.bound:
            self.executor.bound.remove(self)

    def answers(self, outputs: tuple[str, ...]) -> dict[str, NDArray[Any]]:
        """Outputs of a run: a copy of the pixels, views of everything else."""
        found = {name: self._made[name] for name in outputs if name != "pixels"}
        if "w" in found:
            found["w"][...] = self.held["z"].sum(1, keepdims=True)
        if "pixels" in outputs:
            shape, dtype, _ = self._shapes["pixels"]
            found["pixels"] = np.empty(shape, dtype)
            # After the rows of the pictures may come those of second latents.
            for picture, rows in zip(found["pixels"], self.held["ws"], strict=False):
                colour = float(rows.flat[0]) + float(self.held.get("noise_source", np.zeros(4))[1])
                picture[...] = int(abs(colour) * 50) % 256
        return found


class FakeRun:
    """Implements `gpu_backend.plan.executor.PendingRun`."""

    def __init__(self, plan: FakePlan, outputs: tuple[str, ...], measure: bool, waited_ms: float) -> None:
        self._plan = plan
        self._ready_s = time.perf_counter() + plan.executor.delay_s
        self._answers = plan.answers(outputs)
        self._measure = measure
        self._is_over = False
        self.waited_ms = waited_ms

    @property
    def steps(self) -> tuple[StepTime, ...]:
        steps = self._plan.plan.steps if self._measure and self._is_over else ()
        return tuple(StepTime(step.layer, step.op, 2.5, step.flops, step.nbytes) for step in steps)

    @property
    def timing_source(self) -> TimingSource:
        return "events"

    @property
    def device_ms(self) -> float | None:
        return self._plan.executor.delay_s * 1e3 if self._is_over else None

    def wait(self) -> Mapping[str, NDArray[Any]]:
        self._plan.executor.fail("wait")
        self.waited_ms += self.finish()
        return self._answers

    def finish(self) -> float:
        """Wait for the end; return its milliseconds."""
        executor = self._plan.executor
        if self._is_over:
            return 0.0
        start = time.perf_counter()
        rest_s = self._ready_s - start
        if rest_s > 0:
            threading.Event().wait(rest_s)
        self._is_over = True
        executor.in_flight.remove(self)
        return (time.perf_counter() - start) * 1e3
