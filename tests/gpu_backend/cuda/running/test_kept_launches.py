"""Runs that leave out the first launches and read what an earlier run of them left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend.cuda.schedule import Schedule
from tests.helpers.bound_plan_harness import BoundPlanHarness, make_x
from tests.helpers.hand_schedule import expected_image, expected_pixels, hand_schedule
from tests.helpers.zero_copy_schedule import ZeroCopyHarness


class KeepingHarness(BoundPlanHarness):
    """The hand-made schedule, whose first launch may be left out."""

    @staticmethod
    def schedule() -> Schedule:
        schedule = hand_schedule()
        regions = (replace(one, role="lasting") if one.name == "h" else one for one in schedule.regions)
        return replace(schedule, regions=tuple(regions), kept_launches=1)


@pytest.mark.parametrize("use_graph", [True, False], ids=["graph", "no graph"])
def test_a_run_uses_what_the_last_whole_one_left(use_graph: bool) -> None:
    harness = KeepingHarness()
    source = np.array([0, 3, 0, 0], np.uint32)
    for seed in range(2):
        whole = harness.bound.submit({"x": make_x(seed)}, use_graph=use_graph)
        x = make_x(seed + 10)
        later = harness.bound.submit({"x": x, "noise_source": source}, uses_kept=True, use_graph=use_graph)
        expected = expected_pixels(make_x(seed), seed=3 if seed else 0)
        assert np.array_equal(whole.wait()["pixels"], expected)
        assert np.array_equal(later.wait()["pixels"], expected_pixels(make_x(seed), seed=3))
    assert harness.bound.captures == (2 if use_graph else 0)
    harness.close()


def test_runs_with_and_without_the_first_launches_are_measured_by_themselves() -> None:
    harness = KeepingHarness()
    for turn in range(4):
        run = harness.bound.submit({"x": make_x(0)}, measure=True, uses_kept=turn % 2 == 1)
        assert np.array_equal(run.wait()["pixels"], expected_pixels(make_x(0)))
        layers = [step.layer for step in run.steps]
        assert layers == (["second"] if turn % 2 else ["first.second", "second"])
        assert run.device_ms == pytest.approx(0.005 if turn % 2 else 0.025)
    harness.close()
    assert not harness.driver.graphs


def test_observed_layers_are_those_of_a_whole_run() -> None:
    harness = KeepingHarness()
    harness.bound.run({"x": make_x(0)})
    image = harness.bound.submit({}, outputs=("image",), uses_kept=True).wait()["image"]
    assert np.array_equal(image, expected_image(make_x(0)))
    harness.close()


class KeepingZeroCopyHarness(ZeroCopyHarness):
    """The same with a kernel that writes its bytes to the host."""

    @staticmethod
    def schedule() -> Schedule:
        return replace(ZeroCopyHarness.schedule(), kept_launches=1)


def test_a_picture_that_is_written_to_the_host_has_a_graph_of_its_own_for_each_kind_of_run() -> None:
    harness = KeepingZeroCopyHarness()
    for turn in range(4):
        run = harness.bound.submit({"x": make_x(turn // 2)}, uses_kept=turn % 2 == 1)
        assert np.array_equal(run.wait()["pixels"], expected_pixels(make_x(turn // 2)))
    assert harness.bound.captures == 2
    assert harness.driver.copies_out == []
    harness.close()
