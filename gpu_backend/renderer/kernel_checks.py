"""Self-checks of a model's kernels in steps, for a thread that renders between them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from gpu_backend.device import choose_gpu, usable_precision
from gpu_backend.model import Model
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey, Precision

if TYPE_CHECKING:
    from gpu_backend.cuda.driver.probe import Gpu
    from gpu_backend.cuda.executor import CudaExecutor

OpenExecutor = Callable[[], "CudaExecutor"]


class KernelChecks:
    """Checks the kernels of a full picture against plain ones on a GPU, and keeps the verdicts.

    A renderer that is made afterwards finds the verdicts, and checks nothing. One thread uses all methods.

    Parameters
    ----------
    open_executor
        Opens the GPU; called by the first step.
    """

    def __init__(self, model: Model, precision: Precision, open_executor: OpenExecutor) -> None:
        self._plan = build_plan(
            model.spec, PlanKey(model.facts.model_id, "synthesis", 1, model.spec.resolution, precision)
        )
        self._open_executor = open_executor
        self._executor: CudaExecutor | None = None
        self._steps: Generator[tuple[int, int], None, None] | None = None
        self.is_done = False
        self.progress = (0, 0)
        """How many kernels of how many are checked; (0, 0) before that is known."""

    def step(self) -> None:
        """Load kernels, bind a schedule, or check one kernel.

        Raises
        ------
        DeviceError
            If the GPU fails. The checks are over then.
        """
        if self.is_done:
            return
        try:
            if self._executor is None or self._steps is None:
                self._executor = self._open_executor()
                self._steps = self._executor.check_steps(self._plan)
                return
            self.progress = next(self._steps)
        except StopIteration:
            self.close()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the GPU. Verdicts that were found stay. May be called twice."""
        self.is_done = True
        if self._steps is not None:
            self._steps.close()
        if self._executor is not None:
            self._executor.close()


def kernel_checks(model: Model, device: str = "auto", *, precision: Precision = "fp16") -> KernelChecks | None:
    """Return the self-checks that a renderer of this model would make; None if it would make none.

    Does not call the GPU's driver beyond the probe, so any thread may call this.

    Raises
    ------
    DeviceError
        If there is no device of that name, or no compiler.
    """
    gpu = choose_gpu(device)
    if gpu is None or not _has_unchecked(model, gpu, precision):
        return None
    # Imported here, because only a GPU needs it.
    from gpu_backend.cuda.executor import CudaExecutor

    usable, _ = usable_precision(model, gpu, precision)
    return KernelChecks(model, usable, lambda: CudaExecutor(model, gpu.index, usable))


def _has_unchecked(model: Model, gpu: Gpu, precision: Precision) -> bool:
    from gpu_backend.cuda.driver.probe import probe
    from gpu_backend.cuda.running.self_check import doubtful_recipes, record_of
    from gpu_backend.renderer.kernels import schedules_of

    record = record_of(gpu, probe().driver)
    fused, _, plain = schedules_of(model, gpu, precision)
    return any(not record.knows(recipe) for recipe in doubtful_recipes(fused, plain))
