"""The streaming 3 x 3 convolution against the reference; how it divides its work, where it is chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import shape_of
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.conv_arguments import Weights
from gpu_backend.cuda.launches.conv_op import observe_conv
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.launches.streaming_conv import streaming_conv, streaming_conv_choice, streaming_conv_recipe
from gpu_backend.cuda.schedule import Built, TensorMap
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.conv_tile import ConvShape
from gpu_backend.ops.kernels.streaming_conv_tile import StreamingConvGeometry, streaming_conv_geometry
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from tests.helpers.conv_cases import H200, ConvCase, Flavour, check_case, site_of, step_of, weights_of
from tests.helpers.gpu import target_of
from tests.helpers.kept_kernels import frontend_log, statistics_of
from tests.helpers.kernel_checks import assert_compiles

H200_LIMITS = (132, 232448)
WIDE = ConvCase(32, 32, 100, batch=2, rgb=3, half=True)
DEEP = replace(WIDE, cin=64, cout=64, side=73, rgb=4)
TURNED = replace(DEEP, side=74, noise="random", half_turns=0.3)
RAGGED = replace(WIDE, cin=27, cout=19, side=65, rgb=0, batch=1)
PADDED = replace(RAGGED, cin=13, cout=13, side=17, padding=2, rgb=1)
LINEAR = replace(WIDE, side=64, act=BiasAct.of_layer("linear"))
CLAMPED = replace(WIDE, act=replace(BiasAct.of_layer("lrelu"), clamp=1.0), noise="off")
ODD = replace(WIDE, cin=50, cout=52, side=66)
BOXES = ConvCase(88, 51, 71, batch=2, half=True, act=BiasAct.of_layer("linear"), padding=2)
CASES: tuple[tuple[ConvCase, dict[str, int]], ...] = (
    (WIDE, {"channels": 32, "depth": 32, "rows": 32, "warpgroups": 4, "stages": 6}),
    (replace(WIDE, is_stored=False), {"channels": 32, "depth": 32, "rows": 7, "warpgroups": 1, "stages": 2}),
    (DEEP, {"channels": 64, "depth": 64, "rows": 16, "warpgroups": 2, "stages": 5}),
    (DEEP, {"channels": 64, "depth": 64, "rows": 9, "warpgroups": 4, "stages": 2}),
    (TURNED, {"channels": 64, "depth": 32, "rows": 5, "warpgroups": 2, "stages": 3}),
    (RAGGED, {"channels": 32, "depth": 32, "rows": 10, "warpgroups": 5, "stages": 4}),
    (PADDED, {"channels": 16, "depth": 16, "rows": 4, "warpgroups": 4, "stages": 4}),
    (
        replace(RAGGED, padding=0, is_styled=False, noise="none"),
        {"channels": 32, "depth": 16, "rows": 3, "warpgroups": 2, "stages": 3},
    ),
    (LINEAR, {"channels": 32, "depth": 32, "rows": 1, "warpgroups": 2, "stages": 2}),
    (CLAMPED, {"channels": 32, "depth": 32, "rows": 64, "warpgroups": 2, "stages": 6}),
    (BOXES, {"channels": 56, "depth": 32, "rows": 19, "warpgroups": 2, "stages": 2}),
    (ODD, {"channels": 56, "depth": 64, "rows": 12, "warpgroups": 3, "stages": 3}),
    (replace(WIDE, blend=16), {"channels": 32, "depth": 32, "rows": 32, "warpgroups": 4, "stages": 4}),
    (replace(DEEP, blend=73), {"channels": 64, "depth": 64, "rows": 16, "warpgroups": 3, "stages": 3}),
    (replace(RAGGED, blend=9), {"channels": 32, "depth": 32, "rows": 10, "warpgroups": 4, "stages": 4}),
    (replace(BOXES, blend=71), {"channels": 56, "depth": 32, "rows": 19, "warpgroups": 2, "stages": 2}),
)
"""Strips reach over the right and lower border; some have fewer rows than stages, or than turns."""


def label(value: object) -> str:
    """Name of a case or its choices among parameters."""
    return "-".join(f"{name}{number}" for name, number in value.items()) if isinstance(value, dict) else str(value)


def geometry_of(case: ConvCase, choices: dict[str, Any]) -> StreamingConvGeometry:
    """Divide a case, as choices say."""
    work, site = ConvWork.of_step(step_of(case)), site_of(case)
    shape = ConvShape("conv", work.side, site.cin(work), work.cout, site.batch, site.operands)
    return StreamingConvGeometry(shape, **choices)


def flavour_of(case: ConvCase, choices: dict[str, Any]) -> Flavour:
    """The kernel with these choices."""

    def build(work: ConvWork, site: ConvSite, weights: Weights, target: Target) -> Built:
        return streaming_conv(work, site, weights, geometry_of(case, choices))

    return Flavour(build, build, (3,), (), {True: 4e-2 if case.fp8 else 4e-3})


def recipe_of(case: ConvCase, choices: dict[str, int]) -> Any:
    """The kernel's recipe with these choices."""
    return streaming_conv_recipe(ConvWork.of_step(step_of(case)), site_of(case), geometry_of(case, choices))


IN_E4M3: tuple[Literal["x", "xy"], ...] = ("x", "x", "xy", "xy", "x", "xy", "xy")
IN_FP8 = tuple(
    (replace(case, fp8=fp8, cin=max(case.cin, 17)), {**choices, "depth": max(32, choices["depth"])})
    for (case, choices), fp8 in zip(CASES[:7], IN_E4M3, strict=True)
)


@pytest.mark.gpu
@pytest.mark.parametrize(("case", "choices"), CASES + IN_FP8, ids=label)
def test_a_streaming_convolution_equals_the_reference(case: ConvCase, choices: dict[str, int], gpu: Gpu) -> None:
    target = target_of(gpu)
    if target.architecture != "sm_90a":
        pytest.skip("the kernel is for Hopper")
    check_case(flavour_of(case, choices), case, target)


@pytest.mark.parametrize(("case", "choices"), CASES + IN_FP8, ids=label)
def test_the_divisions_fit_their_cases_on_an_h200(case: ConvCase, choices: dict[str, int]) -> None:
    built = flavour_of(case, choices).conv(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), H200)
    (launch,) = built.launches
    geometry = geometry_of(case, choices)
    assert isinstance(launch.arguments["tma_map"], TensorMap)
    assert set(launch.arguments) == set(launch.recipe.parameters.names or ())
    assert geometry.dynamic_nbytes + geometry.static_nbytes <= H200_LIMITS[1]
    across, _, pictures = launch.grid
    strips = -(-case.side // 64)
    assert across * geometry.warpgroups >= strips * -(-case.side // geometry.rows)
    assert pictures == case.batch


@pytest.mark.parametrize(
    ("case", "choices"), [CASES[0], CASES[3], CASES[5], CASES[6], CASES[10], CASES[11], IN_FP8[2]], ids=label
)
def test_it_compiles_without_spills(case: ConvCase, choices: dict[str, int]) -> None:
    recipe = recipe_of(case, choices)
    assert_compiles(recipe, "sm_90a", 128 * choices["warpgroups"], is_heavy=False)


@pytest.mark.parametrize(("case", "choices"), [CASES[0], CASES[3]], ids=label)
def test_it_declares_no_more_shared_memory_than_its_geometry_counts(case: ConvCase, choices: dict[str, int]) -> None:
    geometry = geometry_of(case, choices)
    declared = statistics_of(recipe_of(case, choices), "sm_90a").shared_nbytes
    assert geometry.static_nbytes - 128 <= declared <= geometry.static_nbytes


def test_a_division_that_is_counted_otherwise_than_the_kernel_does_is_refused() -> None:
    recipe = recipe_of(*CASES[0])
    other = {**dict(recipe.defines), "SHARED_NBYTES": str(geometry_of(*CASES[0]).dynamic_nbytes - 1024)}
    log = frontend_log(replace(recipe, defines=tuple(other.items())), "sm_90a")
    assert "weights and stages lie in the launch's shared memory" in log


def test_weights_hold_three_rows_of_taps_in_the_order_of_any_turn() -> None:
    case, choices = WIDE, CASES[0][1]
    built = flavour_of(case, choices).conv(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), H200)
    packed = next(item for item in built.constants if item.key.startswith("streaming/")).make()
    assert packed.shape == (1, 1, 15, 32, 32)
    weight = weights_of(case)["w"].astype(np.float16)
    for column, places in enumerate(packed.reshape(3, 5, -1)):
        taps = {tuple(np.sort(weight[:, :, row, column], axis=None)): row for row in range(3)}
        order = [taps[tuple(np.sort(place))] for place in places]
        for turn in range(3):
            thirds = order[turn * 2 % 3 :][:3]
            begun, ended, continued = (thirds[(turn + shift) % 3] for shift in range(3))
            assert (begun, continued, ended) == (0, 1, 2), "a row of outputs begins with the upper row of taps"


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize(
    ("side", "cin", "cout"), [(1024, 32, 32), (512, 64, 64), (1046, 56, 32), (1046, 64, 64), (512, 32, 32), (999, 9, 9)]
)
def test_a_shape_is_divided_among_all_multiprocessors(side: int, cin: int, cout: int, batch: int) -> None:
    geometry = streaming_conv_geometry(ConvShape("conv", side, cin, cout, batch), *H200_LIMITS)
    assert geometry is not None
    assert geometry.channels >= cout
    assert geometry.depth >= cin
    assert geometry.dynamic_nbytes + geometry.static_nbytes <= H200_LIMITS[1]
    across, _, pictures = geometry.grid
    assert across * geometry.warpgroups >= -(-side // 64) * -(-side // geometry.rows)
    rounds = -(-across * pictures // H200_LIMITS[0])
    assert across * pictures >= 0.75 * rounds * H200_LIMITS[0]


@pytest.mark.parametrize(
    "shape",
    [
        ConvShape("conv", 128, 64, 64, 1),
        ConvShape("conv", 256, 64, 64, 1),
        ConvShape("conv", 256, 32, 32, 8),
        ConvShape("conv", 512, 128, 128, 1),
        ConvShape("conv", 512, 64, 128, 1),
        ConvShape("conv1x1", 512, 64, 64, 1),
        ConvShape("up_conv", 512, 64, 64, 1),
        ConvShape("conv", 512, 64, 64, 1, "tf32"),
    ],
    ids=lambda shape: shape.title,
)
def test_other_shapes_have_other_kernels(shape: ConvShape) -> None:
    assert streaming_conv_geometry(shape, *H200_LIMITS) is None


def test_a_gpu_with_too_little_shared_memory_has_no_streaming_convolution() -> None:
    assert streaming_conv_geometry(ConvShape("conv", 512, 64, 64, 1), 132, 100_000) is None


@pytest.mark.parametrize(
    ("changes", "site_changes"),
    [
        ({"kernel": 1}, {}),
        ({"act": BiasAct.of_layer("swish")}, {}),
        ({"skip": (1.0, 2.0, 1.0)}, {}),
        ({"half": False}, {}),
        ({"rgb": 9}, {}),
        ({}, {"moments": "moments"}),
    ],
    ids=str,
)
def test_a_convolution_with_another_epilogue_is_not_streaming(
    changes: dict[str, Any], site_changes: dict[str, Any]
) -> None:
    case = replace(WIDE, side=1024, batch=1)
    assert streaming_conv_choice(ConvWork.of_step(step_of(case)), site_of(case), H200) is not None
    for other in (
        replace(H200, streams=False),
        replace(H200, fuses_epilogues=False),
        replace(H200, architecture="sm_90"),
    ):
        assert streaming_conv_choice(ConvWork.of_step(step_of(case)), site_of(case), other) is None
    case = replace(case, **changes)
    site = replace(site_of(case), **site_changes)
    assert streaming_conv_choice(ConvWork.of_step(step_of(case)), site, H200) is None


def test_the_last_layers_of_a_large_stylegan2_are_streaming_and_can_be_observed() -> None:
    model = random_model(replace(shape_of("ffhq1024"), maximum=64))
    plan = build_plan(model.spec, PlanKey("model", "synthesis", 1, 1024, "fp16"))
    schedule = lower(plan, model.weights, H200)
    launches = {launch.layer: launch for launch in schedule.launches if launch.label == "streaming_conv"}
    assert {"synthesis.b512.conv1", "synthesis.b1024.conv1"} <= set(launches)
    last = launches["synthesis.b1024.conv1"]
    assert last.arguments["y"] is None
    regions = {region.name: region for region in schedule.regions}
    steps = {step.layer: step for step in plan.steps}
    for layer, launch in launches.items():
        observation = observe_conv(steps[layer], launch, regions)
        assert observation is not None
        assert observation.shape[:2] == (1, steps[layer].attributes.resolution)
        assert set(observation.changes) == {"y_raw"}
