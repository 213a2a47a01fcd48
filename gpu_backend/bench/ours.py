"""Our own networks, measured through the interface that executors keep."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpu_backend.bench.contender import ROTATION, Case
from gpu_backend.bench.report import NO_GRAPH, OURS
from gpu_backend.errors import DeviceError
from gpu_backend.frame import StepTime
from gpu_backend.model.model import Model
from gpu_backend.plan.executor import BoundPlan, CountsKernels, Executor, PendingRun, RecordsRuns
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey, Precision

_MADE_ON_THE_DEVICE = ("flags",)
"""Asking for the flags alone leaves the bytes of the picture where they were made."""


class Ours:
    """A contender: a bound plan of one batch.

    The time of a run is the device's own, between events around the graph; on the processor, the time until the bytes
    are there.

    Parameters
    ----------
    executor
        Returns the executor of this precision; called when the contender is prepared. The caller owns the executor.
    use_graph
        Whether the captured graph is replayed, or its kernels are launched one by one.
    use_fused
        Whether fused kernels run, or the plain ones that they are checked against.
    """

    def __init__(
        self,
        model: Model,
        executor: Callable[[Precision], Executor],
        precision: Precision,
        batch: int,
        *,
        use_graph: bool = True,
        use_fused: bool = True,
    ) -> None:
        self._model = model
        self._give = executor
        self._precision: Precision = precision
        self._batch = batch
        self._use_graph = use_graph
        self._use_fused = use_fused
        self._rows = example_rows(model, batch)
        self._executor: Executor | None = None
        self._bound: BoundPlan | None = None
        self._turn = 0
        self._nbytes: int | None = None

    @property
    def case(self) -> Case:
        """Title in tables."""
        return Case(OURS if self._use_graph else NO_GRAPH, self._precision, self._batch)

    @property
    def nbytes(self) -> int | None:
        """The plan's memory and what the executor shares between plans."""
        return self._nbytes

    def prepare(self) -> None:
        """Bind the plan and run it once, so that what it replays is recorded."""
        self.bind()
        bound: object = self._bound
        if isinstance(bound, RecordsRuns):
            bound.record_next_run()
        self._submit().wait()

    def bind(self) -> None:
        """Bind the plan."""
        self._executor = self._give(self._precision)
        spec = self._model.spec
        key = PlanKey(self._model.facts.model_id, "synthesis", self._batch, spec.resolution, self._precision)
        self._bound = self._executor.bind(build_plan(spec, key), use_fused=self._use_fused)

    def settle(self) -> None:
        """Note what memory is held; it stays the same from now on."""
        if self._bound is not None and self._executor is not None:
            self._nbytes = self._bound.nbytes + self._executor.nbytes

    def times_ms(self, runs: int, should_cancel: Callable[[], bool] | None = None) -> list[float]:
        """Run with two in flight, as frames of a moving hand are. Raises CancelledError once it should cancel."""
        times: list[float] = []
        waiting: tuple[PendingRun, float] | None = None
        for _ in range(runs):
            start = time.perf_counter()
            pending = self._submit(should_cancel=should_cancel)
            submitted_ms = (time.perf_counter() - start) * 1e3
            if waiting is not None:
                times.append(_finished_ms(*waiting))
            waiting = pending, submitted_ms
        if waiting is not None:
            times.append(_finished_ms(*waiting))
        return times

    def measured_steps(self, runs: int) -> list[tuple[StepTime, ...]]:
        """Return the steps of some runs, each measured step by step."""
        found = []
        for _ in range(runs):
            pending = self._submit(measure=True)
            pending.wait()
            found.append(pending.steps)
        return found

    def measure_counters(self) -> None:
        """Measure the hardware counters of the kernels, for `measured_steps`. Raises DeviceError without them."""
        if self._bound is None:
            raise RuntimeError("this contender was not prepared")
        if not isinstance(self._bound, CountsKernels):
            raise DeviceError("Hardware counters are those of an NVIDIA GPU.")
        for _ in self._bound.counter_steps():
            pass

    def picture(self, should_cancel: Callable[[], bool] | None = None) -> NDArray[np.uint8]:
        """Return the first picture of the first input: the same for every batch, (resolution, resolution, 4)."""
        if self._bound is None:
            raise RuntimeError("this contender was not prepared")
        pixels: NDArray[np.uint8] = self._bound.run(
            {"ws": self._rows[0]}, use_graph=self._use_graph, should_cancel=should_cancel
        )["pixels"]
        return np.array(pixels[0])

    def close(self) -> None:
        """Free the plan; the executor stays with its owner."""
        if self._bound is not None:
            self._bound.close()
        self._bound = None
        self._executor = None

    def _submit(self, *, measure: bool = False, should_cancel: Callable[[], bool] | None = None) -> PendingRun:
        if self._bound is None:
            raise RuntimeError("this contender was not prepared")
        self._turn += 1
        rows = self._rows[self._turn % ROTATION]
        return self._bound.submit(
            {"ws": rows},
            outputs=_MADE_ON_THE_DEVICE,
            measure=measure,
            use_graph=self._use_graph,
            should_cancel=should_cancel,
        )


def example_rows(model: Model, batch: int) -> NDArray[np.float32]:
    """Return normal w rows that take turns, (ROTATION, batch, num_ws, w_dim)."""
    spec = model.spec
    generator = np.random.default_rng(1)
    return generator.standard_normal((ROTATION, batch, spec.num_ws, spec.w_dim), dtype=np.float32)


def _finished_ms(pending: PendingRun, submitted_ms: float) -> float:
    """Wait, and return the device's time; the processor's runs end before they are handed back."""
    pending.wait()
    return submitted_ms if pending.device_ms is None else pending.device_ms
