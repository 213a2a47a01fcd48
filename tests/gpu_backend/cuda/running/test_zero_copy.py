"""Runs whose last kernel writes the bytes to the host itself."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from gpu_backend.cuda.driver.pinned import SMALL_SLOTS
from tests.helpers.bound_plan_harness import make_x
from tests.helpers.hand_schedule import expected_image, expected_pixels
from tests.helpers.zero_copy_schedule import ZeroCopyHarness


@pytest.fixture
def harness() -> ZeroCopyHarness:
    return ZeroCopyHarness()


def test_a_picture_by_itself_is_on_the_host_without_a_copy(harness: ZeroCopyHarness) -> None:
    for seed in range(5):
        x = make_x(seed)
        run = harness.bound.submit({"x": x})
        assert np.array_equal(run.wait()["pixels"], expected_pixels(x))
        assert run.device_ms == pytest.approx(0.030)
    assert harness.driver.copies_out == []
    assert len(harness.driver.copies_in) == 5, "the slot goes over with the inputs"
    assert harness.bound.captures == 1


def test_flags_are_those_of_each_picture(harness: ZeroCopyHarness) -> None:
    broken = make_x(0)
    broken[1, 0] = np.inf
    got = harness.bound.run({"x": broken})
    flags = got["flags"]
    assert flags.tolist() == [0, 1]
    del got
    for seed in range(2 * SMALL_SLOTS):
        assert harness.bound.run({"x": make_x(seed)})["flags"].tolist() == [0, 0], "a slot is used again"
    assert flags.tolist() == [0, 1], "they are the caller's"


def test_pictures_that_are_kept_stay_as_they_are_and_one_beyond_the_slots_is_a_copy(harness: ZeroCopyHarness) -> None:
    pictures = [harness.bound.run({"x": make_x(seed)})["pixels"] for seed in range(SMALL_SLOTS)]
    assert harness.driver.copies_out == []
    pictures += [harness.bound.run({"x": make_x(seed)})["pixels"] for seed in range(SMALL_SLOTS, SMALL_SLOTS + 2)]
    assert harness.driver.copies_out
    for seed, picture in enumerate(pictures):
        assert np.array_equal(picture, expected_pixels(make_x(seed)))


def test_pictures_that_follow_others_are_copied_beside_the_kernels(harness: ZeroCopyHarness) -> None:
    xs = [make_x(seed) for seed in range(6)]
    runs = [harness.bound.submit({"x": x}) for x in xs]
    for x, run in zip(xs, runs, strict=True):
        assert np.array_equal(run.wait()["pixels"], expected_pixels(x))
    assert harness.driver.copies_beside > 0
    assert harness.bound.captures == 2


@pytest.mark.parametrize(
    "asked", [{"outputs": ("image", "pixels", "flags")}, {"measure": True}, {"use_graph": False}], ids=str
)
def test_other_runs_do_without_it(harness: ZeroCopyHarness, asked: dict[str, object]) -> None:
    x = make_x(0)
    run = harness.bound.submit({"x": x}, **asked)  # type: ignore[arg-type]
    outputs = run.wait()
    assert np.array_equal(outputs["pixels"], expected_pixels(x))
    if "image" in outputs:
        assert np.array_equal(outputs["image"], expected_image(x))
    assert harness.driver.copies_out
    again = harness.bound.run({"x": make_x(1)})
    assert np.array_equal(again["pixels"], expected_pixels(make_x(1)))


def test_the_time_of_such_a_run_is_not_what_the_steps_of_a_measured_one_add_up_to(harness: ZeroCopyHarness) -> None:
    harness.bound.run({"x": make_x(0)})
    measured = harness.bound.submit({"x": make_x(0)}, measure=True)
    measured.wait()
    assert [step.kernel for step in measured.steps] == ["scale", "paint"]
    assert measured.device_ms == pytest.approx(0.025)


def test_everything_is_freed(harness: ZeroCopyHarness) -> None:
    picture = harness.bound.run({"x": make_x(0)})["pixels"]
    pending = harness.bound.submit({"x": make_x(1)})
    harness.close()
    assert np.array_equal(pending.wait()["pixels"], expected_pixels(make_x(1)))
    assert np.array_equal(picture, expected_pixels(make_x(0)))
    del picture, pending
    gc.collect()
    assert harness.driver.is_empty
