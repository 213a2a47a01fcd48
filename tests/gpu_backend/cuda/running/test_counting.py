"""Hardware counters of a bound schedule: measured on request, reported by measured runs. On a GPU made of Python."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.cuda.running.bound_plan import CudaBoundPlan
from gpu_backend.cuda.running.self_check import SelfCheckRecord
from gpu_backend.errors import CancelledError, DeviceError
from gpu_backend.frame import KernelCounters
from gpu_backend.plan.executor import CountsKernels
from tests.helpers.bound_plan_harness import BoundPlanHarness, make_x
from tests.helpers.hand_schedule import expected_pixels, hand_lower, hand_schedule
from tests.helpers.networks import make_stylegan2

PASSES = 3
COUNTERS = (KernelCounters(0.5, 0.25, 0.75, 4.0, None), KernelCounters(0.1, 0.2, 0.3, None, 8.0))


@pytest.fixture
def harness() -> BoundPlanHarness:
    return BoundPlanHarness()


def counting(harness: BoundPlanHarness, launched: list[int]) -> CudaBoundPlan:
    def count(kernels: int, run: Callable[[], None]) -> Generator[None, None, tuple[KernelCounters, ...]]:
        assert kernels == len(COUNTERS)
        for _ in range(PASSES):
            yield
            before = harness.driver.launches
            run()
            launched.append(harness.driver.launches - before)
            assert harness.driver.queued == 0, "a pass ends when its kernels have"
        return COUNTERS

    harness.count = count
    return harness.bind()


def counters(bound: CudaBoundPlan) -> list[KernelCounters | None]:
    run = bound.submit({}, measure=True)
    run.wait()
    return [step.facts.counters for step in run.steps if step.facts is not None]


def test_measured_runs_report_the_counters_and_pictures_stay_the_same(harness: BoundPlanHarness) -> None:
    launched: list[int] = []
    bound = counting(harness, launched)
    assert isinstance(bound, CountsKernels)
    x, other = make_x(0), make_x(1)
    bound.run({"x": x})
    assert counters(bound) == [None, None]
    for number, _ in enumerate(bound.counter_steps()):
        if number == 1:  # a picture between two passes, whose inputs the next pass uses
            assert np.array_equal(bound.run({"x": other})["pixels"], expected_pixels(other))
    assert launched == [len(COUNTERS)] * PASSES
    assert counters(bound) == list(COUNTERS)
    assert np.array_equal(bound.run({"x": x})["pixels"], expected_pixels(x))
    bound.close()


def test_a_plan_that_is_closed_between_two_passes_ends_the_count(harness: BoundPlanHarness) -> None:
    bound = counting(harness, [])
    steps = bound.counter_steps()
    next(steps)
    bound.close()
    with pytest.raises(CancelledError):
        next(steps)


def test_a_device_without_counters_raises_an_error(harness: BoundPlanHarness) -> None:
    with pytest.raises(DeviceError, match="no hardware counters"):
        next(harness.bound.counter_steps())
    assert counters(harness.bound) == [None, None]


@pytest.mark.gpu
def test_a_gpu_counts_where_cupti_is_installed_and_allowed_and_says_why_not_elsewhere(gpu: Gpu, tmp_path: Path) -> None:
    record = SelfCheckRecord(tmp_path, gpu.uuid)
    executor = CudaExecutor(make_stylegan2(), gpu.index, "fp32", record=record, lowered=hand_lower)
    bound = executor.bind(hand_schedule().plan)
    x, refusal = make_x(0), ""
    before = np.array(bound.run({"x": x})["pixels"])
    try:
        for _ in range(2):
            for _ in bound.counter_steps():
                assert np.array_equal(bound.run({"x": x})["pixels"], before)
    except DeviceError as error:
        refusal = error.sentence
    if refusal:
        reasons = ("pip install", "ERR_NVGPUCTRPERM", "does not give hardware counters")
        assert any(reason in refusal for reason in reasons), refusal
        return
    for found in counters(bound):
        assert found is not None
        for share in (found.occupancy, found.sm_share, found.dram_share):
            assert share is not None
            assert 0.0 <= share <= 1.0
        assert found.load_sectors is None or 1.0 <= found.load_sectors <= 32.0
    executor.close()
