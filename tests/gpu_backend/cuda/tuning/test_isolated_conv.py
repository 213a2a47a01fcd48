from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.schedule import Address
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.cuda.tuning.isolated_conv import IsolatedConvs, conv_steps, macros_of
from gpu_backend.ops.kernels.conv_candidates import candidates
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile
from gpu_backend.ops.kernels.flat_tile import flat_geometry
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.networks import StyleGAN2Model, make_stylegan2
from tests.helpers.stylegan3 import R, make_stylegan3

TARGET = Target("sm_80", 108, 166912, TileTable.load("sm_80", 108, 166912))
MODEL = make_stylegan2(resolution=32, channel_base=1024, channel_max=36)


def plans_of(model: StyleGAN2Model, *batches: int) -> list:  # type: ignore[type-arg]
    return [build_synthesis_plan(model.spec, "model", batch=batch, precision="fp16") for batch in batches]


def test_shapes_are_listed_once_with_padded_channels() -> None:
    found = list(conv_steps(plans_of(MODEL, 1, 2)))
    assert found[:3] == [
        ConvShape("conv", 4, 40, 40, 1),
        ConvShape("up_conv", 8, 40, 40, 1),
        ConvShape("conv", 8, 40, 40, 1),
    ]
    assert len(found) == len(set(found)) == 14
    assert found[7:] == [replace(shape, batch=2) for shape in found[:7]]


@pytest.mark.parametrize("precision", ["tf32", "bf16x3"])
def test_shapes_of_a_plan_with_fp32_activations_have_tiles_of_their_own(precision: Any) -> None:
    plan = build_synthesis_plan(MODEL.spec, "model", precision=precision)
    shapes = list(conv_steps([plan]))
    assert shapes == [replace(shape, operands=precision) for shape in conv_steps(plans_of(MODEL, 1))]
    shape = shapes[-1]
    tile = candidates(shape, "sm_80", 108, 166912)[0]
    conv = IsolatedConvs([plan], MODEL.weights, TARGET).fused(shape, tile)
    assert dict(conv.launch.recipe.defines)["HALF"] == "0"
    assert {region.dtype for region in conv.regions} <= {"float32", "uint32"}


def test_the_convolutions_of_resnet_blocks_are_found_and_their_skips_are_not() -> None:
    model = make_stylegan2(architecture="resnet", resolution=16, channel_base=256, channel_max=16)
    assert {(shape.kind, shape.side) for shape in conv_steps(plans_of(model, 1))} == {
        ("conv", 4),
        ("up_conv", 8),
        ("conv", 8),
        ("up_conv", 16),
        ("conv", 16),
    }


@pytest.mark.parametrize("batch", [1, 2])
def test_every_candidate_becomes_a_launch_with_that_tile(batch: int) -> None:
    convs = IsolatedConvs(plans_of(MODEL, batch), MODEL.weights, TARGET)
    for shape in convs.shapes:
        tiles = candidates(shape, "sm_80", 108, 166912)
        assert tiles, shape
        for tile in tiles[:: max(1, len(tiles) // 3)]:
            conv = convs.fused(shape, tile)
            assert macros_of(tile).items() <= dict(conv.launch.recipe.defines).items()
            named = {item.name for item in conv.launch.arguments.values() if isinstance(item, Address)}
            assert named == {item.name for item in conv.regions} | {item.key for item in conv.constants}


def test_the_plain_kernel_takes_the_same_arguments() -> None:
    convs = IsolatedConvs(plans_of(MODEL, 1), MODEL.weights, TARGET)
    for shape in convs.shapes:
        plain, fused = convs.plain(shape), convs.fused(shape, TARGET.tiles.choose(shape))
        assert plain.launch.recipe.stem == f"plain_{fused.launch.recipe.stem}"
        # `strengths`, null here, is a parameter of fused kernels with HAS_MOMENTS alone.
        assert plain.launch.arguments.keys() - fused.launch.arguments.keys() == {"strengths"}
        assert plain.launch.arguments["strengths"] is None
        assert "picture_parts" not in fused.launch.arguments
        x, weight = (plain.launch.arguments[name] for name in ("x", "weight"))
        assert isinstance(x, Address)
        assert isinstance(weight, Address)
        assert (x.kind, weight.kind) == ("region", "constant")
        assert "rgb_parts" not in plain.launch.arguments
        assert fused.launch.arguments["y_raw"] is None


def test_a_tile_that_does_not_fit_is_refused_and_not_replaced() -> None:
    convs = IsolatedConvs(plans_of(MODEL, 1), MODEL.weights, TARGET)
    with pytest.raises(KernelError, match="does not fit"):
        convs.fused(convs.shapes[0], ConvTile(16, 16, 64, 32, 3, 2, 2))


def test_convolutions_whose_kernel_has_no_tile_run_with_none() -> None:
    model = make_stylegan3(resolution=64, channel_base=4096, channel_max=128, **R)
    plans = [build_plan(model.spec, PlanKey("model", "synthesis", 4, 64, "fp16"))]
    shared_nbytes = 232448
    counts = {True: 0, False: 0}
    for architecture in ("sm_80", "sm_90a"):
        table = TileTable.load(architecture, 132, shared_nbytes)
        convs = IsolatedConvs(plans, model.weights, Target(architecture, 132, shared_nbytes, table))
        for shape in convs.shapes:
            is_flat = architecture == "sm_90a" and flat_geometry(shape, 132, shared_nbytes) is not None
            assert convs.runs_with_tile(shape) is not is_flat
            counts[is_flat] += 1
    assert all(counts.values())
