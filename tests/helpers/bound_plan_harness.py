"""The hand-made schedule bound to `FakeGpu`, with the objects that an executor would own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.driver.memory_pool import MemoryPool
from gpu_backend.cuda.running.bound_plan import CudaBoundPlan
from gpu_backend.cuda.running.constants import ConstantStore
from gpu_backend.cuda.schedule import Schedule
from gpu_backend.cuda.timing.kernel_timer import EventTimer, measure_event_cost
from gpu_backend.cuda.timing.occupancy import kernel_facts
from gpu_backend.cuda.timing.range_profiler import CountKernels
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.fake_gpu import FAKE_GPU, FakeDriver
from tests.helpers.hand_schedule import AREA, BATCH, hand_driver, hand_schedule


def make_x(seed: int) -> NDArray[np.float32]:
    """An input of the schedule."""
    return np.random.default_rng(seed).uniform(0, 4, (BATCH, AREA)).astype(np.float32)


class BoundPlanHarness:
    """A fake GPU with the schedule bound to it once, as `bound`."""

    def __init__(self, made_by: type[FakeDriver] = FakeDriver, **settings: Any) -> None:
        self.driver = made_by(hand_driver().kernels, **settings)
        self.pool = MemoryPool(self.driver)
        self.constants = ConstantStore(self.driver, self.pool)
        self.kernels = {recipe: self.driver.load(b"", recipe) for recipe in self.schedule().recipes}
        self.count: CountKernels | None = None
        """Reads hardware counters, for plans bound from now on."""
        self.empty = self.driver.load(b"", KernelRecipe("empty"))
        self.bound = self.bind()

    @staticmethod
    def schedule() -> Schedule:
        """The bound plan."""
        return hand_schedule()

    def bind(self) -> CudaBoundPlan:
        """Bind the schedule again."""

        def make_timer(schedule: Any, start: Any) -> EventTimer:
            return EventTimer(
                self.driver,
                schedule.launches,
                start,
                lambda: tuple(
                    kernel_facts(self.driver, FAKE_GPU, self.kernels[launch.recipe], launch)
                    for launch in schedule.launches
                ),
                lambda: measure_event_cost(self.driver, self.empty),
            )

        return CudaBoundPlan(
            self.driver, self.pool, self.schedule(), self.kernels, self.constants, make_timer, self.count
        )

    def close(self) -> None:
        """Free `bound` and the resources that plans share."""
        self.bound.close()
        self.constants.close()
        self.pool.close()
        for kernel in (*self.kernels.values(), self.empty):
            self.driver.unload(kernel)
