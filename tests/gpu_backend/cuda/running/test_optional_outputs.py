"""Outputs that a run computes only when it is asked for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend.cuda.schedule import Schedule
from tests.helpers.bound_plan_harness import BoundPlanHarness, make_x
from tests.helpers.fake_gpu import FakeDriver
from tests.helpers.hand_schedule import expected_image, hand_schedule


class LeanDesk(BoundPlanHarness):
    """The hand-made schedule, whose image is made only when it is asked for."""

    @staticmethod
    def schedule() -> Schedule:
        schedule = hand_schedule()
        first, second = schedule.launches
        return replace(schedule, launches=(first, replace(second, optional=("image",))))


def lean_desk() -> LeanDesk:
    seen = LeanDesk(WritesNothingToNull)
    assert seen.bound.schedule.optional_outputs == {"image"}
    return seen


class WritesNothingToNull(FakeDriver):
    """Knows a null pointer: arrays over it are somewhere else."""

    def view(self, address: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        return np.zeros(shape, dtype) if address == 0 else super().view(address, shape, dtype)


def test_an_optional_output_is_there_when_it_is_requested_and_costs_one_graph_more() -> None:
    harness = lean_desk()
    harness.bound.run({"x": make_x(0)})
    assert harness.bound.captures == 1
    got = harness.bound.run({"x": make_x(1)}, outputs=("image", "pixels"))
    assert np.array_equal(got["image"], expected_image(make_x(1)))
    assert harness.bound.captures == 2
    harness.bound.run({"x": make_x(2)})
    assert harness.bound.captures == 2


@pytest.mark.parametrize("use_graph", [True, False], ids=["graph", "no graph"])
def test_a_measured_run_gives_an_optional_output_too(use_graph: bool) -> None:
    harness = lean_desk()
    for seed in range(3):
        pending = harness.bound.submit({"x": make_x(seed)}, outputs=("image",), measure=True, use_graph=use_graph)
        assert np.array_equal(pending.wait()["image"], expected_image(make_x(seed)))
        assert len(pending.steps) == 2
