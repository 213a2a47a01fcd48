"""The small plans that compute-sanitizer watches run every fused convolution that Hopper has."""

from __future__ import annotations

import pytest

from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.model.model import Model
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from tests.helpers.conv_cases import H200
from tests.helpers.small_plans import (
    SMALL_STYLEGAN2,
    SMALL_STYLEGAN3,
    let_small_plans_have_the_kernels_of_large_ones,
    small_stylegan2,
)
from tests.helpers.stylegan3 import R, make_stylegan3

HOPPERS = {"first_layers", "flat_conv", "streaming_conv", "streaming_up_conv", "transposed_conv", "up_filter"}
OTHERS = {"filtered_lrelu", "modulated_conv", "modulated_up_conv", "styles", "to_rgb"}


def test_small_plans_in_fp16_run_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    let_small_plans_have_the_kernels_of_large_ones(monkeypatch)
    plans: list[tuple[Model, PlanKey]] = [
        (small_stylegan2(architecture, width, resolution), PlanKey("m", "synthesis", batch, resolution, "fp16"))
        for architecture, batch, width, resolution in SMALL_STYLEGAN2
    ]
    for side, width in SMALL_STYLEGAN3:
        model = make_stylegan3(resolution=side, channel_base=16 * width, channel_max=width, w_dim=20, **R)
        plans.append((model, PlanKey("m", "synthesis", 1, side, "fp16")))
    schedules = [lower(build_plan(model.spec, key), model.weights, H200) for model, key in plans]
    assert {launch.label for schedule in schedules for launch in schedule.launches} >= HOPPERS | OTHERS


def test_one_launch_of_each_convolution_can_be_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    let_small_plans_have_the_kernels_of_large_ones(monkeypatch)
    for architecture, batch, width, resolution in SMALL_STYLEGAN2:
        model = small_stylegan2(architecture, width, resolution)
        plan = build_plan(model.spec, PlanKey("m", "synthesis", batch, resolution, "fp16"))
        for everything_plain in (False, True):
            launches = lower(plan, model.weights, H200, everything_plain=everything_plain).launches
            assert all(launch.observed in ("", *launch.arguments) for launch in launches)
            found = [launch.layer for launch in launches if launch.observed]
            found += [layer for launch in launches for layer in launch.convolutions if "conv" in layer]
            wanted = [
                step.layer for step in plan.steps if step.op in ("modulated_conv", "modulated_up_conv", "skip_conv")
            ]
            assert sorted(found) == sorted(wanted)
