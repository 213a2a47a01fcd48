"""A ladder in bounded steps, for a thread that renders between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.bench.ladder import LEAST_RUNS, Rung, RungResult, compared, measuring, rungs_for
from gpu_backend.bench.stopwatch import why
from gpu_backend.device import choose_gpu
from gpu_backend.errors import CancelledError
from gpu_backend.model import Model
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey

CompileRung = Callable[[Model, str, Rung, Callable[[], bool]], None]


@dataclass(frozen=True, slots=True)
class LadderShare:
    """How much of a ladder is measured.

    Attributes
    ----------
    share
        0..1, by rungs.
    rung
        What is compiled or measured now; None at the end.
    is_compiling
        Whether its kernels are being compiled.
    """

    share: float
    rung: Rung | None
    is_compiling: bool = False


class LadderRun:
    """Measures each rung of a model on a device. Kernels are compiled on a thread of their own.

    All methods but the constructor are called on the same thread. A rung that fails becomes a result that says why.

    Parameters
    ----------
    device
        ``"cpu"``, ``"cuda:0"``.
    runs
        Timed runs of each rung.
    compile_rung
        Compiles what a rung needs, in place of `compile_rung`.

    Raises
    ------
    DeviceError
        If there is no such device.
    """

    def __init__(
        self, model: Model, device: str, *, runs: int = LEAST_RUNS, compile_rung: CompileRung | None = None
    ) -> None:
        gpu = choose_gpu(device)
        self._model = model
        self._device = "cpu" if gpu is None else gpu.id
        self._rungs = rungs_for(model, self._device)
        self._runs = runs
        self._compile_rung = compile_rung or compile_kernels_of
        self._compiler = ThreadPoolExecutor(1, thread_name_prefix="ladder compiler")
        self._compiling: Future[None] | None = None
        self._steps: Generator[None, None, tuple[RungResult, NDArray[np.uint8]]] | None = None
        self._should_yield: Callable[[], bool] = lambda: False
        self._first: NDArray[np.uint8] | None = None
        self._is_closed = False
        self.found: list[RungResult] = []

    @property
    def is_waiting(self) -> bool:
        """Whether kernels are being compiled, so that there is no step to take yet."""
        return self._compiling is not None and not self._compiling.done()

    @property
    def is_done(self) -> bool:
        """Whether there is no further step."""
        return self._is_closed or len(self.found) == len(self._rungs)

    @property
    def state(self) -> LadderShare:
        """How much is done."""
        rung = None if self.is_done else self._rungs[len(self.found)]
        return LadderShare(len(self.found) / len(self._rungs), rung, is_compiling=self.is_waiting)

    def step(self, should_yield: Callable[[], bool] = lambda: False) -> RungResult | None:
        """Do a bounded piece of work; return the result of a rung if this step ended it.

        Parameters
        ----------
        should_yield
            Asked now and then while the CPU renders; once it returns true, that run is given up and repeated later.
        """
        if self.is_done or self.is_waiting:
            return None
        rung = self._rungs[len(self.found)]
        self._should_yield = should_yield
        try:
            if self._compiling is None:
                self._compiling = self._compiler.submit(
                    self._compile_rung, self._model, self._device, rung, lambda: self._is_closed
                )
                return None
            self._compiling.result()
            if self._steps is None:
                self._steps = measuring(self._model, self._device, rung, self._runs, self._yields_now)
            next(self._steps)
            return None
        except StopIteration as end:
            climbed, picture = end.value
            self._first = picture if self._first is None else self._first
            climbed = compared(climbed, picture, self._first)
        except Exception as error:  # a failure is a result; the other rungs are still measured
            climbed = RungResult(rung, problem=why(error))
        self.found.append(climbed)
        self._steps = self._compiling = None
        return climbed

    def _yields_now(self) -> bool:
        """Ask the step under way: each has a question of its own."""
        return self._should_yield()

    def close(self) -> None:
        """Free the device and end compiling. May be called twice."""
        self._is_closed = True
        if self._steps is not None:
            self._steps.close()
            self._steps = None
        self._compiler.shutdown(wait=True, cancel_futures=True)


def compile_kernels_of(model: Model, device: str, rung: Rung, should_cancel: Callable[[], bool]) -> None:
    """Compile the kernels that a rung launches and those that they are checked against; nothing on the CPU.

    Leaves a core to the window. Raises KernelError without a compiler.
    """
    gpu = choose_gpu(device)
    if gpu is None:
        return
    # Imported here: only a GPU needs it.
    from gpu_backend.cuda.compiling.compilation import compile_kernels
    from gpu_backend.cuda.launches.lowering import lower
    from gpu_backend.cuda.tiles.table import tuned_folder
    from gpu_backend.cuda.tiles.target import target_of
    from gpu_backend.renderer.kernels import recipes_in

    target = target_of(gpu, tuned_folder())
    changed = target if rung.change is None else rung.change(target)
    key = PlanKey(model.facts.model_id, "synthesis", rung.batch, model.spec.resolution, rung.precision)
    plan = build_plan(model.spec, key)
    schedules = [lower(plan, model.weights, changed, everything_plain=not rung.use_fused)]
    if rung.use_fused:
        schedules.append(lower(plan, model.weights, changed, everything_plain=True))
    recipes = recipes_in(schedules)
    threads = max(1, (os.cpu_count() or 2) - 1)
    try:
        compile_kernels(recipes, gpu.compile_architecture, threads=threads, should_cancel=should_cancel)
    except CancelledError:
        return  # the run was closed, so no caller uses them
