"""Running a bound schedule, on a GPU made of Python."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_backend.cuda.driver.memory_pool import MemoryPool
from gpu_backend.cuda.driver.pinned import SMALL_SLOTS, PinnedRing
from gpu_backend.errors import CancelledError
from tests.helpers.bound_plan_harness import BoundPlanHarness, make_x
from tests.helpers.fake_gpu import FakeDriver
from tests.helpers.hand_schedule import AREA, BATCH, SCALE, SIDE, expected_image, expected_pixels

PICTURE_NBYTES = BATCH * SIDE * SIDE * 4 + BATCH * 4
"""Of a run's pixels and flags."""


@pytest.fixture
def harness() -> BoundPlanHarness:
    return BoundPlanHarness()


def test_a_run_gives_what_the_kernels_compute(harness: BoundPlanHarness) -> None:
    x = make_x(0)
    got = harness.bound.run({"x": x}, outputs=("pixels", "image", "flags"))
    assert np.array_equal(got["image"], expected_image(x))
    assert np.array_equal(got["pixels"], expected_pixels(x))
    assert got["pixels"].shape == (BATCH, SIDE, SIDE, 4)
    assert not got["flags"].any()


def test_kernels_start_early_where_nothing_lies_between_them_and_the_one_before(harness: BoundPlanHarness) -> None:
    bound = harness.bound
    bound._kernels[:] = [replace(kernel, starts_early=True) for kernel in bound._kernels]
    for turn in range(2):
        bound.run({"x": make_x(turn)})
        bound.run({"x": make_x(turn)}, use_graph=False)
    # One of two kernels, in the capture and in each run without a graph.
    assert (harness.driver.launches, harness.driver.early_starts) == (6, 3)
    bound.run({}, measure=True)
    assert harness.driver.early_starts == 3


def test_inputs_start_as_the_model_stores_its_noise_and_keep_what_they_held(harness: BoundPlanHarness) -> None:
    x, other = make_x(0), make_x(1)
    harness.bound.run({"x": x, "noise_gain": np.full(3, 0.5, np.float32)})
    got = harness.bound.run({"noise_source": np.array([1, 7, 0, 0], np.uint32)}, outputs=("image",))
    assert np.array_equal(got["image"], expected_image(x, gain=0.5, seed=7))
    got = harness.bound.run({"x": other}, outputs=("image",))
    assert np.array_equal(got["image"], expected_image(other, gain=0.5, seed=7))


def test_a_missing_batch_axis_is_repeated(harness: BoundPlanHarness) -> None:
    x = make_x(0)
    got = harness.bound.run({"x": x[0]}, outputs=("image",))
    assert np.array_equal(got["image"], expected_image(np.stack([x[0], x[0]])))


def test_inputs_that_lie_beside_each_other_go_over_in_one_copy(harness: BoundPlanHarness) -> None:
    harness.bound.run({})
    assert len(harness.driver.copies_in) == 1
    harness.bound.run({"x": make_x(0), "noise_gain": np.ones(3, np.float32), "noise_source": np.zeros(4, np.uint32)})
    assert len(harness.driver.copies_in) == 2
    harness.bound.run({"x": make_x(0)})
    assert harness.driver.copies_in[2] == BATCH * AREA * 4
    harness.bound.run({})
    assert len(harness.driver.copies_in) == 3


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"z": np.zeros(3)}, "not 'z'"),
        ({"x": np.zeros((BATCH, 3))}, "must have the shape"),
        ({"x": np.ones((BATCH, AREA)), "noise_gain": np.zeros(9)}, "must have the shape"),
    ],
)
def test_an_input_that_does_not_fit_is_refused_and_changes_nothing(
    harness: BoundPlanHarness, inputs: dict[str, Any], words: str
) -> None:
    x = make_x(0)
    harness.bound.run({"x": x})
    with pytest.raises(ValueError, match=words):
        harness.bound.submit(inputs)
    assert np.array_equal(harness.bound.run({}, outputs=("image",))["image"], expected_image(x))


def test_an_output_that_the_plan_does_not_have_is_refused(harness: BoundPlanHarness) -> None:
    with pytest.raises(ValueError, match="no output 'h'"):
        harness.bound.submit({}, outputs=("h",))


def test_moving_what_a_gesture_can_move_captures_nothing(harness: BoundPlanHarness) -> None:
    assert harness.bound.captures == 0
    for seed in range(50):
        generator = np.random.default_rng(seed)
        harness.bound.run(
            {
                "x": make_x(seed),
                "noise_gain": generator.uniform(0, 1, 3).astype(np.float32),
                "noise_source": np.array([1, seed, 0, 0], np.uint32),
            }
        )
    assert harness.bound.captures == 1
    assert harness.driver.replays == 50


def test_a_run_without_a_graph_gives_the_same_and_captures_nothing(harness: BoundPlanHarness) -> None:
    x = make_x(3)
    plain = harness.bound.run({"x": x}, use_graph=False)
    assert harness.bound.captures == 0
    assert np.array_equal(plain["pixels"], harness.bound.run({}, use_graph=True)["pixels"])
    assert np.array_equal(plain["pixels"], harness.bound.run({}, use_graph=False)["pixels"])
    assert harness.bound.captures == 1


def test_two_runs_are_in_flight_and_each_gives_its_own_picture(harness: BoundPlanHarness) -> None:
    xs = [make_x(seed) for seed in range(5)]
    first, second = (harness.bound.submit({"x": x}) for x in xs[:2])
    assert harness.driver.queued > 0
    third = harness.bound.submit({"x": xs[2]})
    assert np.array_equal(third.wait()["pixels"], expected_pixels(xs[2]))
    fourth = harness.bound.submit({"x": xs[3]})
    fifth = harness.bound.submit({"x": xs[4]})
    for run, x in zip((first, second, fourth, fifth), (xs[0], xs[1], xs[3], xs[4]), strict=True):
        assert np.array_equal(run.wait()["pixels"], expected_pixels(x))


def test_waiting_for_a_run_does_not_wait_for_the_next_one(harness: BoundPlanHarness) -> None:
    first = harness.bound.submit({"x": make_x(0)})
    harness.bound.submit({"x": make_x(1)})
    first.wait()
    assert harness.driver.queued > 0


def test_other_outputs_of_two_runs_in_flight_do_not_meet(harness: BoundPlanHarness) -> None:
    xs = make_x(0), make_x(1)
    first, second = (harness.bound.submit({"x": x}, outputs=("image",)) for x in xs)
    assert np.array_equal(first.wait()["image"], expected_image(xs[0]))
    assert np.array_equal(second.wait()["image"], expected_image(xs[1]))


def test_a_picture_is_the_callers_and_its_slot_comes_back_when_it_is_gone(harness: BoundPlanHarness) -> None:
    kept = [harness.bound.run({"x": make_x(seed)})["pixels"][1] for seed in range(SMALL_SLOTS)]
    held = harness.bound.pinned_nbytes
    for seed in range(SMALL_SLOTS, SMALL_SLOTS + 6):
        harness.bound.run({"x": make_x(seed)})
    for seed, picture in enumerate(kept):
        assert np.array_equal(picture, expected_pixels(make_x(seed))[1])
    assert harness.bound.pinned_nbytes == held + 2 * PICTURE_NBYTES
    kept.clear()
    gc.collect()
    addresses = set()
    for seed in range(3 * SMALL_SLOTS):
        picture = harness.bound.run({"x": make_x(seed)})["pixels"]
        addresses.add(picture.ctypes.data)
        del picture
    assert len(addresses) <= SMALL_SLOTS


def test_the_flags_come_with_the_pixels_in_one_copy(harness: BoundPlanHarness) -> None:
    x = make_x(0)
    x[1, 0] = np.inf
    outputs = harness.bound.run({"x": x})
    assert harness.driver.copies_out == [PICTURE_NBYTES]
    assert outputs["flags"].tolist() == [0, 1]
    assert harness.bound.run({"x": make_x(1)})["flags"].tolist() == [0, 0]
    assert outputs["flags"].tolist() == [0, 1], "they are the caller's, as the pixels are"
    harness.bound.run({"x": x}, outputs=("flags",))
    assert harness.driver.copies_out[2:] == [BATCH * 4]


def test_flags_of_pictures_that_are_copied_beside_the_next_one_come_too(harness: BoundPlanHarness) -> None:
    inputs = [make_x(seed) for seed in range(4)]
    for seed, x in enumerate(inputs):
        x[seed % 2, 0] = np.inf
    pending = [harness.bound.submit({"x": x}) for x in inputs]
    assert harness.driver.copies_beside > 0
    assert [run.wait()["flags"].tolist() for run in pending] == [[1, 0], [0, 1], [1, 0], [0, 1]]


def test_a_picture_beyond_the_slots_is_a_copy(harness: BoundPlanHarness) -> None:
    pictures = [harness.bound.run({"x": make_x(seed)})["pixels"] for seed in range(SMALL_SLOTS + 3)]
    for seed, picture in enumerate(pictures):
        assert np.array_equal(picture, expected_pixels(make_x(seed)))


@pytest.mark.parametrize(("nbytes", "count"), [(4 << 20, 16), (33 << 20, 7), (1 << 30, 3)])
def test_large_pictures_have_fewer_slots(nbytes: int, count: int) -> None:
    assert PinnedRing(MemoryPool(FakeDriver()), nbytes).slots == count


def test_pictures_outlive_the_plan(harness: BoundPlanHarness) -> None:
    pictures = [harness.bound.run({"x": make_x(seed)})["pixels"] for seed in range(4)]
    image = harness.bound.run({"x": make_x(4)}, outputs=("image",))["image"]
    harness.close()
    assert not harness.driver.is_empty
    for seed, picture in enumerate(pictures):
        assert np.array_equal(picture, expected_pixels(make_x(seed)))
    assert np.array_equal(image, expected_image(make_x(4)))
    pictures.clear()
    del image, picture
    gc.collect()
    assert harness.driver.is_empty


def test_a_cancelled_run_occupies_no_slot(harness: BoundPlanHarness) -> None:
    for seed in range(20):
        harness.bound.submit({"x": make_x(seed)})
    x = make_x(99)
    assert np.array_equal(harness.bound.run({"x": x})["pixels"], expected_pixels(x))
    gc.collect()
    harness.close()
    gc.collect()
    assert harness.driver.is_empty


def test_an_abandoned_run_hands_nothing_over_but_its_inputs_arrive_with_the_next(harness: BoundPlanHarness) -> None:
    x = make_x(0)
    with pytest.raises(CancelledError):
        harness.bound.submit({"x": x}, should_cancel=lambda: True)
    assert harness.driver.replays == 0
    got = harness.bound.run({}, outputs=("image",), should_cancel=lambda: False)
    assert np.array_equal(got["image"], expected_image(x))


def test_each_launch_is_timed_and_described(harness: BoundPlanHarness) -> None:
    x = make_x(0)
    harness.bound.run({"x": x})
    pending = harness.bound.submit({"x": x}, measure=True)
    assert np.array_equal(pending.wait()["pixels"], expected_pixels(x))
    assert pending.timing_source == "events"
    first, second = pending.steps
    assert (first.layer, first.kernel, second.layer, second.kernel) == ("first", "scale", "second", "paint")
    assert first.time_us == pytest.approx(20, rel=0.01)
    assert second.time_us == pytest.approx(5, rel=0.01)
    assert pending.device_ms == pytest.approx(0.025)
    assert first.facts is not None
    assert second.facts is not None
    assert (first.facts.state, second.facts.state, second.facts.reason) == ("fused", "fallback", "it was wrong")
    assert (first.facts.grid, first.facts.block, first.facts.registers) == ((4, 1, 1), (128, 1, 1), 32)
    assert first.facts.occupancy == 1.0
    assert first.facts.waves == pytest.approx(4 / (16 * 4))
    assert first.facts.digest == SCALE.digest


def test_a_measured_run_before_any_other_is_timed_alike(harness: BoundPlanHarness) -> None:
    pending = harness.bound.submit({"x": make_x(0)}, measure=True)
    pending.wait()
    assert [step.time_us for step in pending.steps] == pytest.approx([20, 5], rel=0.01)
    assert pending.device_ms == pytest.approx(0.025)


def test_measuring_captures_one_more_graph_and_only_once(harness: BoundPlanHarness) -> None:
    for seed in range(6):
        harness.bound.run({"x": make_x(seed)}, measure=seed % 2 == 1)
    assert harness.bound.captures == 2


def test_measured_runs_one_after_another_do_not_mix_their_times(harness: BoundPlanHarness) -> None:
    runs = [harness.bound.submit({"x": make_x(seed)}, measure=True) for seed in range(4)]
    for seed, run in enumerate(runs):
        pixels = run.wait()["pixels"]
        assert np.array_equal(pixels, expected_pixels(make_x(seed)))
        assert sum(step.time_us for step in run.steps) == pytest.approx(25, rel=0.01)


def test_an_unmeasured_run_has_a_device_time_and_no_steps(harness: BoundPlanHarness) -> None:
    pending = harness.bound.submit({"x": make_x(0)})
    pending.wait()
    assert pending.steps == ()
    assert pending.device_ms == pytest.approx(0.025)
    assert pending.waited_ms >= 0.0
    assert pending.wait() is pending.wait()


def test_pixels_of_a_run_that_follows_another_are_copied_beside_the_next_one(harness: BoundPlanHarness) -> None:
    inputs = [make_x(seed) for seed in range(6)]
    pending = [harness.bound.submit({"x": inputs[0]}), harness.bound.submit({"x": inputs[1]})]
    assert harness.driver.copies_beside == 1, "the first had nothing before it"
    for x in inputs[2:]:
        pending.append(harness.bound.submit({"x": x}))
    for x, run in zip(inputs, pending, strict=True):
        assert np.array_equal(run.wait()["pixels"], expected_pixels(x))
    assert 1 < harness.driver.copies_beside < len(inputs)


def test_one_picture_at_a_time_takes_no_memory_for_copies_beside(harness: BoundPlanHarness) -> None:
    nbytes = harness.bound.nbytes
    for seed in range(3):
        harness.bound.run({"x": make_x(seed)})
    assert (harness.bound.nbytes, harness.driver.copies_beside) == (nbytes, 0)
    for seed in range(3):
        harness.bound.submit({"x": make_x(seed)})
    assert nbytes < harness.bound.nbytes <= nbytes + 2 * PICTURE_NBYTES
    harness.close()
    assert harness.driver.is_empty
