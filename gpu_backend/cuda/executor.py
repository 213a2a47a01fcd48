"""Runs plans on a GPU: lowers them, has their kernels compiled and checked, binds them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.compiling.compilation import Compilation, compile_kernels
from gpu_backend.cuda.compiling.kernel_store import KernelStore
from gpu_backend.cuda.driver.comparison import COMPARISON, Comparer
from gpu_backend.cuda.driver.interface import Driver
from gpu_backend.cuda.driver.memory_pool import MemoryPool
from gpu_backend.cuda.driver.probe import Gpu, probe
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.running.bound_plan import CudaBoundPlan
from gpu_backend.cuda.running.constants import ConstantStore
from gpu_backend.cuda.running.self_check import SelfCheckRecord, check_steps, doubtful_recipes, record_of, returned
from gpu_backend.cuda.schedule import Schedule
from gpu_backend.cuda.tiles.table import tuned_folder
from gpu_backend.cuda.tiles.target import Target, target_of, target_of_batch
from gpu_backend.cuda.timing.cupti_timer import CuptiTimer, KernelRecords
from gpu_backend.cuda.timing.kernel_timer import EventTimer, measure_event_cost
from gpu_backend.cuda.timing.occupancy import kernel_facts
from gpu_backend.cuda.timing.range_profiler import counting
from gpu_backend.cuda.timing.step_timer import StepTimer
from gpu_backend.errors import DeviceError, DeviceMemoryError
from gpu_backend.frame import KernelFacts
from gpu_backend.model.model import Model
from gpu_backend.ops.bend_channels import BEND_INPUT
from gpu_backend.ops.blend_samples import MASK_INPUT
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.styles import OFFSETS_INPUT
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import SECOND_ROWS, Plan, Precision

EMPTY = KernelRecipe("empty")

Compile = Callable[[Iterable[KernelRecipe], str], Compilation]
Lower = Callable[..., Schedule]


class CudaExecutor:
    """Implements `gpu_backend.plan.executor.Executor` for one model on one GPU. One thread at a time.

    Parameters
    ----------
    index
        The driver's number of the GPU; the probe has found it.
    precision
        Of the activations.
    driver, gpu, record, compiled, lowered
        In place of the real ones.

    Raises
    ------
    DeviceError
        If the GPU is not there or does not start.
    """

    def __init__(
        self,
        model: Model,
        index: int = 0,
        precision: Precision = "fp16",
        *,
        driver: Driver | None = None,
        gpu: Gpu | None = None,
        record: SelfCheckRecord | None = None,
        compiled: Compile = compile_kernels,
        lowered: Lower = lower,
    ) -> None:
        self._gpu = gpu or _gpu(index)
        self._model = model
        self._spec = model.spec
        self._precision = precision
        self._target = target_of(self._gpu, tuned_folder())
        self._compile = compiled
        self._lower = lowered
        self._record = record or record_of(self._gpu, probe().driver)
        self._records = _kernel_records() if driver is None else None
        # Last: if anything here fails, nothing of the driver's is left open.
        self._driver = driver or _open_driver(self._gpu)
        self._pool = MemoryPool(self._driver)
        self._constants = ConstantStore(self._driver, self._pool)
        self._store = KernelStore(self._driver)
        self._failures: dict[str, str] = self._record.failures
        self._common: frozenset[KernelRecipe] = frozenset()
        """Kernels that plain schedules have too, so that there is nothing to check them against."""
        self._bound: list[CudaBoundPlan] = []
        self._is_closed = False

    @property
    def device_name(self) -> str:
        """For people: "NVIDIA H200"."""
        return self._gpu.name

    @property
    def precision(self) -> Precision:
        """Precision of the activations."""
        return self._precision

    @property
    def nbytes(self) -> int:
        """Weights and other constants on the device."""
        return self._constants.nbytes

    @property
    def pinned_nbytes(self) -> int:
        """Memory of the host that the device copies from and to."""
        return sum(bound.pinned_nbytes for bound in self._bound)

    @property
    def fallbacks(self) -> dict[str, str]:
        """Digest of a fused kernel that does not run here -> why."""
        return dict(self._failures)

    def bind(self, plan: Plan, *, use_fused: bool = True) -> CudaBoundPlan:
        """Bind a plan. Kernels that are not in the cache are compiled now; new ones are checked.

        Raises
        ------
        ValueError
            If the plan is for another precision.
        KernelError
            If a kernel fails for which there is no other.
        DeviceMemoryError, DeviceLostError
            If the device has no room or failed; nothing of the binding is left then.
        """
        if self._is_closed:
            raise RuntimeError("this executor was closed")
        if plan.key.precision != self._precision:
            raise ValueError(f"this executor runs {self._precision} plans, but this one is for {plan.key.precision}")
        self._driver.enter()
        self._bound = [earlier for earlier in self._bound if not earlier.is_closed]
        while True:
            schedule = self._loaded(plan, self._target, use_fused=use_fused)
            if not use_fused or not returned(self._check_steps(plan, schedule)):
                break
        bound = self._bind(schedule)
        self._bound.append(bound)
        return bound

    def close(self) -> None:
        """Close every bound plan and free everything on the device. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        for bound in reversed(self._bound):
            bound.close()
        self._bound.clear()
        self._constants.close()
        self._pool.close()
        self._store.close()
        self._driver.close()

    def _loaded(self, plan: Plan, target: Target, *, use_fused: bool) -> Schedule:
        """Return a schedule whose kernels are all on the device, plain ones in place of those that fail."""
        while True:
            schedule = self._lower(
                plan, self._model.weights, target, plain=self._failures, everything_plain=not use_fused
            )
            missing = self._store.missing(schedule.recipes)
            compilation = self._compile(missing, target.architecture) if missing else Compilation({}, {})
            failures = self._load(compilation)
            if not failures:
                return schedule
            reasons = {recipe: error.phrase for recipe, error in failures.items()}
            self._give_up(reasons, schedule, failures)
            # What does not compile may after an update; what this driver refuses it will refuse again.
            self._record.note({recipe: reasons[recipe] for recipe in reasons if recipe not in compilation.failures})

    def _load(self, compilation: Compilation) -> dict[KernelRecipe, KernelError]:
        return self._pool.make(lambda: self._store.load(compilation))

    def _give_up(
        self,
        reasons: dict[KernelRecipe, str],
        schedule: Schedule,
        errors: dict[KernelRecipe, KernelError] | None = None,
    ) -> None:
        """Replace these kernels by plain ones from now on."""
        fused = {launch.recipe for launch in schedule.all_launches if launch.is_fused}
        for recipe, why in reasons.items():
            if recipe not in fused or recipe.digest in self._failures:
                raise (errors or {}).get(recipe) or KernelError(
                    f"The kernel {recipe.title} does not work on this GPU, and has no fallback; render on the CPU.",
                    why,
                )
            self._failures[recipe.digest] = why

    def check_steps(self, plan: Plan) -> Generator[tuple[int, int], None, None]:
        """Check the kernels of a plan ahead of `bind`, in steps: yields how many of how many were checked so far.

        Most steps run and compare one kernel; the first ones load kernels, and bind the fused and the plain schedule.

        Raises
        ------
        DeviceMemoryError, DeviceLostError, KernelError
            As `bind`.
        """
        self._driver.enter()
        while (yield from self._check_steps(plan, self._loaded(plan, self._target, use_fused=True))):
            pass

    def _check_steps(self, plan: Plan, schedule: Schedule) -> Generator[tuple[int, int], None, bool]:
        """Check the kernels that were never checked on this GPU; return whether one failed."""
        if plan.key.part != "synthesis":
            return False
        new = self._unchecked(plan, schedule, self._target)
        if not new:
            return False
        candidates = [(plan, self._target)]
        if plan.key.batch > 1:
            # A kernel is the same for every batch: one picture is checked sooner, and takes less memory.
            candidates.insert(0, (self._single(plan), target_of_batch(self._target, plan.key.batch)))
        for candidate, target in candidates:
            verdicts = yield from self._verdict_steps(candidate, target, new)
            self._record.note(verdicts)
            wrong = {recipe: why for recipe, why in verdicts.items() if why}
            if wrong:
                self._give_up(wrong, schedule)
                return True
            new -= frozenset(verdicts)
            if not new:
                break
        return False

    def _unchecked(self, plan: Plan, schedule: Schedule, target: Target) -> frozenset[KernelRecipe]:
        """Fused kernels of a schedule that were never checked on this GPU."""
        unknown = frozenset(recipe for recipe in schedule.recipes if not self._record.knows(recipe)) - self._common
        if not unknown:
            return frozenset()
        plain = self._lower(plan, self._model.weights, target, everything_plain=True)
        doubtful = doubtful_recipes(schedule, plain)
        # Lowering reads every weight; a draft without new kernels need not wait for that.
        self._common |= unknown - doubtful
        return doubtful & unknown

    def _verdict_steps(
        self, plan: Plan, target: Target, wanted: frozenset[KernelRecipe]
    ) -> Generator[tuple[int, int], None, dict[KernelRecipe, str]]:
        """Run a plan with fused and plain kernels and compare; empty if memory is too small for both."""
        fused = plain = None
        try:
            total = len(wanted)
            fused = self._bind(self._loaded(plan, target, use_fused=True))
            yield 0, total
            plain = self._bind(self._loaded(plan, target, use_fused=False))
            yield 0, total
            comparer, verdicts = self._make_comparer(), dict[KernelRecipe, str]()
            schedule = fused.schedule
            for candidate in (schedule, schedule.with_zero_copy):
                left = wanted.intersection(() if candidate is None else candidate.recipes) - set(verdicts)
                if candidate is None or not left:
                    continue
                if fused.schedule is not candidate:
                    fused.close()
                    fused = self._bind(candidate)
                    plain.clear()  # what a launch writes is recognised by its change
                inputs = self._check_inputs(plain.schedule)
                steps = check_steps(fused, plain, inputs, left, comparer, self._record.note)
                verdicts |= yield from _counted(steps, len(verdicts), total)
            return verdicts
        except DeviceMemoryError:
            return {}
        finally:
            for bound in (plain, fused):
                if bound is not None:
                    bound.close()

    def _make_comparer(self) -> Comparer:
        missing = self._store.missing([COMPARISON])
        failures = self._load(self._compile(missing, self._target.architecture)) if missing else {}
        for error in failures.values():
            raise error
        return Comparer(self._driver, self._pool, self._store.kernels[COMPARISON])

    def _check_inputs(self, schedule: Schedule) -> dict[str, NDArray[Any]]:
        """Return w rows around the average, stored noise at full strength, the stored transform, and edits."""
        generator = np.random.default_rng(0)
        inputs: dict[str, NDArray[Any]] = {}
        for region in schedule.regions:
            if region.role != "input":
                continue
            if region.name in ("ws", SECOND_ROWS):
                spread = generator.standard_normal(region.shape, np.float32)
                inputs[region.name] = (self._model.mean_w + 0.5 * spread).astype(np.float32)
            elif region.name == OFFSETS_INPUT or region.name.startswith((BEND_INPUT, MASK_INPUT)):
                # At rest a kernel that does nothing would pass.
                inputs[region.name] = generator.uniform(0.2, 0.8, region.shape).astype(np.float32)
            elif region.name in schedule.starts:
                inputs[region.name] = schedule.starts[region.name]
            elif region.name == "noise_gain":
                inputs["noise_gain"] = np.ones(region.shape, np.float32)
            else:
                inputs[region.name] = np.zeros(region.shape, region.dtype)
        return inputs

    def _single(self, plan: Plan) -> Plan:
        return build_plan(self._spec, replace(plan.key, batch=1))

    def _bind(self, schedule: Schedule) -> CudaBoundPlan:
        return CudaBoundPlan(
            self._driver,
            self._pool,
            schedule,
            self._store.kernels,
            self._constants,
            self._make_timer,
            counting(self._driver, self._gpu.index),
        )

    def _make_timer(self, schedule: Schedule, start: Callable[[int], None]) -> StepTimer:
        def facts() -> tuple[KernelFacts, ...]:
            kernels = self._store.kernels
            return tuple(
                kernel_facts(self._driver, self._gpu, kernels[launch.recipe], launch) for launch in schedule.launches
            )

        by_events = EventTimer(self._driver, schedule.launches, start, facts, lambda: self._event_cost_ms)
        return by_events if self._records is None else CuptiTimer(schedule.launches, self._records, facts, by_events)

    @cached_property
    def _event_cost_ms(self) -> float:
        """Milliseconds that an event adds to an interval; 0 if unknown, because intervals are scaled anyway."""
        if self._load(self._compile([EMPTY], self._target.architecture)):
            return 0.0
        return measure_event_cost(self._driver, self._store.kernels[EMPTY])


def _counted(
    steps: Generator[int, None, dict[KernelRecipe, str]], before: int, total: int
) -> Generator[tuple[int, int], None, dict[KernelRecipe, str]]:
    """Yield how many of `total` verdicts there are after each step, `before` of them from other steps."""
    while True:
        try:
            yield before + next(steps), total
        except StopIteration as end:
            verdicts: dict[KernelRecipe, str] = end.value
            return verdicts


def _gpu(index: int) -> Gpu:
    for gpu in probe().gpus:
        if gpu.index == index:
            return gpu
    raise DeviceError(probe().problem or f"There is no GPU {index}; choose another device.")


def _kernel_records() -> KernelRecords | None:
    # Imported here: CUPTI is optional, and only a GPU needs it.
    from gpu_backend.cuda.timing.cupti_records import cupti_records

    return cupti_records()


def start_gpu(gpu: Gpu) -> None:
    """Create the process's context on a GPU. It stays until the process ends, so an executor finds it there.

    Raises
    ------
    DeviceError
        If the driver does not give one.
    """
    _open_driver(gpu).close()


def _open_driver(gpu: Gpu) -> Driver:
    # Imported here: the driver's own module, which nothing may load before the probe has found a GPU.
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    return GpuDriver(gpu.index)
