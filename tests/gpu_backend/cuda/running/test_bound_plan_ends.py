"""How a bound schedule ends, well or badly: what it leaves, and for whom it waits. On a GPU made of Python."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest

from gpu_backend.errors import DeviceError, DeviceLostError, DeviceMemoryError
from tests.helpers.bound_plan_harness import BoundPlanHarness, make_x
from tests.helpers.fake_gpu import FakeDriver
from tests.helpers.hand_schedule import expected_image, expected_pixels


@pytest.fixture
def harness() -> BoundPlanHarness:
    return BoundPlanHarness()


def test_closing_frees_everything_and_may_be_done_twice(harness: BoundPlanHarness) -> None:
    harness.bound.run({"x": make_x(0)}, outputs=("pixels", "image", "flags"), measure=True)
    harness.bound.submit({"x": make_x(1)})
    harness.close()
    harness.bound.close()
    gc.collect()
    assert harness.driver.is_empty
    assert harness.bound.nbytes == 0
    with pytest.raises(RuntimeError, match="closed"):
        harness.bound.submit({})


def test_a_run_in_flight_is_finished_before_its_plan_is_closed(harness: BoundPlanHarness) -> None:
    x = make_x(0)
    pending = harness.bound.submit({"x": x})
    harness.bound.close()
    assert np.array_equal(pending.wait()["pixels"], expected_pixels(x))


def test_plans_share_constants_and_the_last_one_frees_them(harness: BoundPlanHarness) -> None:
    before = harness.constants.nbytes
    second = harness.bind()
    assert harness.constants.nbytes == before > 0
    harness.bound.close()
    x = make_x(0)
    assert np.array_equal(second.run({"x": x})["pixels"], expected_pixels(x))
    second.close()
    assert harness.constants.nbytes == 0


def test_closing_a_plan_waits_for_its_own_runs_and_for_no_others(harness: BoundPlanHarness) -> None:
    x, others = make_x(0), [make_x(1), make_x(2)]
    second = harness.bind()
    own = harness.bound.submit({"x": x}, outputs=("pixels", "image"))
    runs = [second.submit({"x": other}) for other in others]
    harness.bound.close()
    assert harness.driver.queued > 0, "the runs of the other plan are still under way"
    third = harness.bind()
    last = third.submit({"x": x})
    assert harness.driver.full_waits == 0
    assert np.array_equal(own.wait()["pixels"], expected_pixels(x))
    for run, other in zip(runs, others, strict=True):
        assert np.array_equal(run.wait()["pixels"], expected_pixels(other))
    assert np.array_equal(last.wait()["pixels"], expected_pixels(x)), "in memory that was just released"
    third.close()
    second.close()
    del own, last, run
    runs.clear()
    gc.collect()
    harness.close()
    assert harness.driver.full_waits == 0
    assert harness.driver.is_empty


@pytest.mark.parametrize("is_seen_by_a_wait", [True, False])
def test_memory_of_a_closed_plan_is_freed_once_the_device_is_idle(
    harness: BoundPlanHarness, is_seen_by_a_wait: bool
) -> None:
    second = harness.bind()
    harness.bound.run({"x": make_x(0)})
    held = len(harness.driver.device), len(harness.driver.pinned)
    run = second.submit({"x": make_x(1)})
    harness.bound.close()
    gc.collect()
    assert (len(harness.driver.device), len(harness.driver.pinned)) == (held[0], held[1] + 1)
    if is_seen_by_a_wait:
        run.wait()
    else:
        second.write_region("h", make_x(2))  # ends when the run does
        assert len(harness.driver.device) == held[0]
        second.submit({"x": make_x(2)})
    lanes_in_use = 1 if is_seen_by_a_wait else 2
    assert len(harness.driver.device) == held[0] - 1 + (lanes_in_use - 1), "the second picture has a place of its own"
    assert len(harness.driver.pinned) == 2 + lanes_in_use, "staging, then a picture for each lane in use"
    assert harness.driver.full_waits == 0


def test_a_plan_that_does_not_fit_leaves_nothing_behind() -> None:
    with pytest.raises(DeviceMemoryError):
        BoundPlanHarness(memory_nbytes=1000)
    harness = BoundPlanHarness()
    free = sum(block.nbytes for block in harness.driver.device.values())
    harness.driver.memory_nbytes = free + 1000
    with pytest.raises(DeviceMemoryError):
        harness.bind()
    assert sum(block.nbytes for block in harness.driver.device.values()) == free
    x = make_x(0)
    assert np.array_equal(harness.bound.run({"x": x})["pixels"], expected_pixels(x))


MADE_FOR_A_RUN = 160
"""Memory, events and graphs of a plan and its first measured run, calibration included, and some more."""


@pytest.mark.parametrize("after", [*range(20), *range(20, MADE_FOR_A_RUN, 7)])
def test_memory_that_ends_anywhere_leaves_nothing_behind_and_what_worked_works(
    harness: BoundPlanHarness, after: int
) -> None:
    x = make_x(0)
    harness.driver.full_after = after
    with contextlib.suppress(DeviceMemoryError):
        harness.bound.run({"x": x}, measure=True)
        harness.bind().close()
    harness.driver.full_after = -1
    pending = harness.bound.submit({"x": x}, measure=True)
    assert np.array_equal(pending.wait()["pixels"], expected_pixels(x))
    assert len(pending.steps) == 2
    assert harness.bound.captures == 2
    harness.close()
    del pending
    gc.collect()
    assert harness.driver.is_empty


MADE_FOR_A_PLAN = 12


@pytest.mark.parametrize("after", range(MADE_FOR_A_PLAN))
def test_a_plan_that_is_bound_half_way_leaves_nothing_behind(harness: BoundPlanHarness, after: int) -> None:
    driver = harness.driver
    for _ in range(2):
        harness.bound.run({})
    before = len(driver.device), len(driver.pinned), len(driver.events)
    driver.full_after = after
    bound = None
    with contextlib.suppress(DeviceMemoryError):
        bound = harness.bind()
    driver.full_after = -1
    assert (bound is not None) == (after == MADE_FOR_A_PLAN - 1)
    if bound is not None:
        bound.close()
    gc.collect()
    harness.bound.run({})
    assert (len(driver.device), len(driver.pinned), len(driver.events)) == before


class Refusing(FakeDriver):
    """Refuses the copy of a number out of the device, once."""

    def copy_out(self, target: int, source: int, nbytes: int) -> None:
        self.refused_copy = getattr(self, "refused_copy", -1) - 1
        if self.refused_copy == 0:
            raise DeviceError("The GPU's driver refused copying.")
        super().copy_out(target, source, nbytes)


@pytest.mark.parametrize("copy", [1, 2])
@pytest.mark.parametrize("ends_then", [False, True])
def test_a_run_that_is_handed_over_in_part_is_over_before_its_memory_goes(copy: int, ends_then: bool) -> None:
    harness = BoundPlanHarness(made_by=Refusing)
    other = harness.bind()
    x, outputs = make_x(0), ("image", "flags", "pixels")
    harness.driver.refused_copy = copy  # type: ignore[attr-defined] # kept: an exception that lives refers to it
    with pytest.raises(DeviceError, match="refused copying"):
        harness.bound.submit({"x": x}, outputs=outputs)
    assert harness.driver.queued > 0
    if not ends_then:
        assert np.array_equal(harness.bound.run({}, outputs=outputs)["image"], expected_image(x))
    harness.bound.close()
    gc.collect()
    assert np.array_equal(other.run({"x": x}, outputs=outputs)["image"], expected_image(x))
    assert harness.driver.full_waits == 0
    other.close()
    harness.close()
    gc.collect()
    assert harness.driver.is_empty


def test_pending_runs_of_a_lost_device_fail_when_the_plan_is_closed(
    harness: BoundPlanHarness,
) -> None:
    other = harness.bind()
    runs = [harness.bound.submit({"x": make_x(seed)}) for seed in range(2)]
    harness.driver.lose_after = 0
    with pytest.raises(DeviceLostError):
        other.run({})
    other.close()
    harness.close()
    for run in runs:
        with pytest.raises(DeviceLostError):
            run.wait()
    runs.clear()
    del run
    gc.collect()
    assert harness.driver.is_empty


@pytest.mark.parametrize("after", range(0, 24, 3))
def test_a_lost_device_is_said_by_every_run_and_closing_raises_nothing(after: int) -> None:
    harness = BoundPlanHarness()
    harness.driver.lose_after = after
    runs = []

    def work() -> None:
        for seed in range(9):
            runs.append(harness.bound.submit({"x": make_x(seed)}))

    with pytest.raises(DeviceLostError):
        work()
    for run in runs[-2:]:
        with pytest.raises(DeviceLostError):
            run.wait()
    harness.close()
    runs.clear()
    del run
    gc.collect()
    assert harness.driver.is_empty
