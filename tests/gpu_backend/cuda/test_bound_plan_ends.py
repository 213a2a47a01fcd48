"""How a bound schedule ends, well or badly: what it leaves, and for whom it waits. On a GPU made of Python."""

from __future__ import annotations

import contextlib
import gc

import numpy as np
import pytest

from gpu_backend.errors import DeviceError, DeviceLostError, DeviceMemoryError
from tests.helpers.fake_gpu import FakeDriver
from tests.helpers.hand_desk import HandDesk, make_x
from tests.helpers.hand_schedule import expected_image, expected_pixels


@pytest.fixture
def desk() -> HandDesk:
    return HandDesk()


def test_closing_frees_everything_and_may_be_done_twice(desk: HandDesk) -> None:
    desk.bound.run({"x": make_x(0)}, outputs=("pixels", "image", "flags"), measure=True)
    desk.bound.submit({"x": make_x(1)})
    desk.close()
    desk.bound.close()
    gc.collect()
    assert desk.driver.is_empty
    assert desk.bound.nbytes == 0
    with pytest.raises(RuntimeError, match="closed"):
        desk.bound.submit({})


def test_a_run_in_flight_is_finished_before_its_plan_is_closed(desk: HandDesk) -> None:
    x = make_x(0)
    pending = desk.bound.submit({"x": x})
    desk.bound.close()
    assert np.array_equal(pending.wait()["pixels"], expected_pixels(x))


def test_plans_share_constants_and_the_last_one_frees_them(desk: HandDesk) -> None:
    before = desk.constants.nbytes
    second = desk.bind()
    assert desk.constants.nbytes == before > 0
    desk.bound.close()
    x = make_x(0)
    assert np.array_equal(second.run({"x": x})["pixels"], expected_pixels(x))
    second.close()
    assert desk.constants.nbytes == 0


def test_closing_a_plan_waits_for_its_own_runs_and_for_no_others(desk: HandDesk) -> None:
    x, others = make_x(0), [make_x(1), make_x(2)]
    second = desk.bind()
    own = desk.bound.submit({"x": x}, outputs=("pixels", "image"))
    runs = [second.submit({"x": other}) for other in others]
    desk.bound.close()
    assert desk.driver.queued > 0, "the runs of the other plan are still under way"
    third = desk.bind()
    last = third.submit({"x": x})
    assert desk.driver.full_waits == 0
    assert np.array_equal(own.wait()["pixels"], expected_pixels(x))
    for run, other in zip(runs, others, strict=True):
        assert np.array_equal(run.wait()["pixels"], expected_pixels(other))
    assert np.array_equal(last.wait()["pixels"], expected_pixels(x)), "in memory that was just released"
    third.close()
    second.close()
    own = last = run = None
    runs.clear()
    gc.collect()
    desk.close()
    assert desk.driver.full_waits == 0
    assert desk.driver.is_empty


@pytest.mark.parametrize("is_seen_by_a_wait", [True, False])
def test_what_a_closed_plan_leaves_is_freed_once_the_device_is_idle(desk: HandDesk, is_seen_by_a_wait: bool) -> None:
    second = desk.bind()
    desk.bound.run({"x": make_x(0)})
    held = len(desk.driver.device), len(desk.driver.pinned)
    run = second.submit({"x": make_x(1)})
    desk.bound.close()
    gc.collect()
    assert (len(desk.driver.device), len(desk.driver.pinned)) == (held[0], held[1] + 2)
    if is_seen_by_a_wait:
        run.wait()
    else:
        second.write_region("h", make_x(2))  # ends when the run does
        assert len(desk.driver.device) == held[0]
        second.submit({"x": make_x(2)})
    lanes_in_use = 1 if is_seen_by_a_wait else 2
    assert len(desk.driver.device) == held[0] - 1 + (lanes_in_use - 1), "the second picture has a place of its own"
    assert len(desk.driver.pinned) == 2 + 2 * lanes_in_use, "staging, then flags and a picture for each lane in use"
    assert desk.driver.full_waits == 0


def test_a_plan_that_does_not_fit_leaves_nothing_behind() -> None:
    with pytest.raises(DeviceMemoryError):
        HandDesk(memory_nbytes=1000)
    desk = HandDesk()
    free = sum(block.nbytes for block in desk.driver.device.values())
    desk.driver.memory_nbytes = free + 1000
    with pytest.raises(DeviceMemoryError):
        desk.bind()
    assert sum(block.nbytes for block in desk.driver.device.values()) == free
    x = make_x(0)
    assert np.array_equal(desk.bound.run({"x": x})["pixels"], expected_pixels(x))


MADE_FOR_A_RUN = 160
"""Memory, events and graphs of a plan and its first measured run, calibration included, and some more."""


@pytest.mark.parametrize("after", [*range(20), *range(20, MADE_FOR_A_RUN, 7)])
def test_memory_that_ends_anywhere_leaves_nothing_behind_and_what_worked_works(desk: HandDesk, after: int) -> None:
    x = make_x(0)
    desk.driver.full_after = after
    with contextlib.suppress(DeviceMemoryError):
        desk.bound.run({"x": x}, measure=True)
        desk.bind().close()
    desk.driver.full_after = -1
    pending = desk.bound.submit({"x": x}, measure=True)
    assert np.array_equal(pending.wait()["pixels"], expected_pixels(x))
    assert len(pending.steps) == 2
    assert desk.bound.captures == 2
    desk.close()
    del pending
    gc.collect()
    assert desk.driver.is_empty


MADE_FOR_A_PLAN = 12


@pytest.mark.parametrize("after", range(MADE_FOR_A_PLAN))
def test_a_plan_that_is_bound_half_way_leaves_nothing_behind(desk: HandDesk, after: int) -> None:
    driver = desk.driver
    for _ in range(2):
        desk.bound.run({})
    before = len(driver.device), len(driver.pinned), len(driver.events)
    driver.full_after = after
    bound = None
    with contextlib.suppress(DeviceMemoryError):
        bound = desk.bind()
    driver.full_after = -1
    assert (bound is not None) == (after == MADE_FOR_A_PLAN - 1)
    if bound is not None:
        bound.close()
    gc.collect()
    desk.bound.run({})
    assert (len(driver.device), len(driver.pinned), len(driver.events)) == before


class Refusing(FakeDriver):
    """Refuses the copy of a number out of the device, once."""

    def copy_out(self, target: int, source: int, nbytes: int) -> None:
        self.refused_copy = getattr(self, "refused_copy", -1) - 1
        if self.refused_copy == 0:
            raise DeviceError("The GPU's driver refused copying.")
        super().copy_out(target, source, nbytes)


@pytest.mark.parametrize("copy", [1, 2, 3])
@pytest.mark.parametrize("ends_then", [False, True])
def test_a_run_that_is_handed_over_in_part_is_over_before_its_memory_goes(copy: int, ends_then: bool) -> None:
    desk = HandDesk(made_by=Refusing)
    other = desk.bind()
    x, outputs = make_x(0), ("image", "flags", "pixels")
    desk.driver.refused_copy = copy
    with pytest.raises(DeviceError, match="refused copying"):
        desk.bound.submit({"x": x}, outputs=outputs)
    assert desk.driver.queued > 0
    if not ends_then:
        assert np.array_equal(desk.bound.run({}, outputs=outputs)["image"], expected_image(x))
    desk.bound.close()
    gc.collect()
    assert np.array_equal(other.run({"x": x}, outputs=outputs)["image"], expected_image(x))
    assert desk.driver.full_waits == 0
    other.close()
    desk.close()
    gc.collect()
    assert desk.driver.is_empty


def test_runs_of_a_lost_device_that_nobody_waited_for_are_failed_when_the_plan_is_closed(desk: HandDesk) -> None:
    other = desk.bind()
    runs = [desk.bound.submit({"x": make_x(seed)}) for seed in range(2)]
    desk.driver.lose_after = 0
    with pytest.raises(DeviceLostError):
        other.run({})
    other.close()
    desk.close()
    for run in runs:
        with pytest.raises(DeviceLostError):
            run.wait()
    runs.clear()
    del run
    gc.collect()
    assert desk.driver.is_empty


@pytest.mark.parametrize("after", range(0, 24, 3))
def test_a_lost_device_is_said_by_every_run_and_closing_raises_nothing(after: int) -> None:
    desk = HandDesk()
    desk.driver.lose_after = after
    runs = []

    def work() -> None:
        for seed in range(9):
            runs.append(desk.bound.submit({"x": make_x(seed)}))

    with pytest.raises(DeviceLostError):
        work()
    for run in runs[-2:]:
        with pytest.raises(DeviceLostError):
            run.wait()
    desk.close()
    runs.clear()
    run = None
    gc.collect()
    assert desk.driver.is_empty
