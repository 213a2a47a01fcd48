"""The streaming 3 x 3 convolution against the reference; how it divides its work, where it is chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.conv_arguments import Weights
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.streaming_conv import streaming_conv
from gpu_backend.cuda.schedule import Built
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.conv_tile import ConvShape
from gpu_backend.ops.kernels.streaming_conv_tile import StreamingConvGeometry
from tests.helpers.conv_cases import ConvCase, Flavour, check_case, site_of, step_of
from tests.helpers.gpu import target_of

WIDE = ConvCase(32, 32, 100, batch=2, rgb=3, half=True)
DEEP = replace(WIDE, cin=64, cout=64, side=73, rgb=4)
RAGGED = replace(WIDE, cin=27, cout=19, side=65, rgb=0, batch=1)
CASES: tuple[tuple[ConvCase, dict[str, Any]], ...] = (
    (WIDE, {"channels": 32, "depth": 32, "rows": 32, "warpgroups": 4, "stages": 6}),
    (replace(WIDE, is_stored=False), {"channels": 32, "depth": 32, "rows": 7, "warpgroups": 1, "stages": 2}),
    (DEEP, {"channels": 64, "depth": 64, "rows": 16, "warpgroups": 2, "stages": 5}),
    (
        replace(DEEP, side=74, noise="random", half_turns=0.3),
        {"channels": 64, "depth": 32, "rows": 5, "warpgroups": 2, "stages": 3},
    ),
    (RAGGED, {"channels": 32, "depth": 32, "rows": 10, "warpgroups": 2, "stages": 4}),
    (
        replace(RAGGED, cin=13, cout=13, side=17, padding=2, rgb=1),
        {"channels": 16, "depth": 16, "rows": 4, "warpgroups": 4, "stages": 4},
    ),
    (
        replace(RAGGED, padding=0, is_styled=False, noise="none"),
        {"channels": 32, "depth": 16, "rows": 3, "warpgroups": 2, "stages": 3},
    ),
    (
        replace(WIDE, act=BiasAct.of_layer("linear"), side=64),
        {"channels": 32, "depth": 32, "rows": 1, "warpgroups": 2, "stages": 2},
    ),
    (
        replace(WIDE, act=replace(BiasAct.of_layer("lrelu"), clamp=1.0), noise="off"),
        {"channels": 32, "depth": 32, "rows": 64, "warpgroups": 2, "stages": 6},
    ),
)


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


IN_FP8 = tuple(
    (replace(case, fp8=fp8, cin=max(case.cin, 17)), {**choices, "depth": max(32, choices["depth"])})
    for (case, choices), fp8 in zip(CASES[:6], ("x", "x", "xy", "x", "xy", "xy"), strict=True)
)


@pytest.mark.gpu
@pytest.mark.parametrize(("case", "choices"), CASES + IN_FP8, ids=str)
def test_a_streaming_convolution_equals_the_reference(case: ConvCase, choices: dict[str, Any], gpu: Gpu) -> None:
    target = target_of(gpu)
    if target.architecture != "sm_90a":
        pytest.skip("the kernel is for Hopper")
    check_case(flavour_of(case, choices), case, target)
