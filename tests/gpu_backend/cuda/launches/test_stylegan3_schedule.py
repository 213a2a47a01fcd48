"""What a StyleGAN3's plan becomes on a GPU, as data."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import shape_of
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.launches.op_table import GPU_OPS
from gpu_backend.cuda.launches.style_layout import StyleLayout
from gpu_backend.cuda.schedule import Address, Launch, Schedule, TensorMap
from gpu_backend.cuda.tiles.table import TileTable, Tuned
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.cuda.tuning.isolated_conv import IsolatedConvs
from gpu_backend.model.model import Model
from gpu_backend.ops.kernels.conv_candidates import candidates
from gpu_backend.ops.kernels.e4m3 import ACTIVATION_SCALE, E4M3, to_e4m3
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.fusion import fuse
from gpu_backend.plan.plan import Plan, PlanKey, Precision
from tests.helpers.stylegan3 import R, StyleGAN3Model, make_stylegan3

T_MODEL, R_MODEL = (make_stylegan3(w_dim=20, conv_clamp=256.0, **changes) for changes in ({}, R))
TARGET = Target("sm_90a", 132, 232448, TileTable("sm_90a", 132, shared_nbytes_per_block=232448))
BOTH = pytest.mark.parametrize("model", [T_MODEL, R_MODEL], ids=["T", "R"])


def plan_of(model: Model, precision: Precision = "fp16", batch: int = 1) -> Plan:
    return build_plan(model.spec, PlanKey("model", "synthesis", batch, model.spec.resolution, precision))


def schedule_of(model: Model, precision: Precision = "fp16", **settings: object) -> Schedule:
    return lower(plan_of(model, precision), model.weights, TARGET, **settings)  # type: ignore[arg-type]


def place(launch: Launch, argument: str) -> tuple[str, int]:
    """Region of an argument, and floats from its start."""
    address = launch.arguments[argument]
    assert isinstance(address, Address)
    return address.name, address.offset // 4


@BOTH
def test_a_layer_is_two_kernels_and_the_last_one_brings_its_share_of_the_picture(model: StyleGAN3Model) -> None:
    labels = [launch.label for launch in schedule_of(model).launches]
    layers = ["modulated_conv", "filtered_lrelu"] * 14
    assert labels == ["styles", "fourier_features", "modulated_conv", *layers, "to_rgb"]
    assert all(launch.is_fused and not launch.reason for launch in schedule_of(model).launches)
    *_, last, picture = schedule_of(model).launches
    assert last.arguments["y"] is None, "nobody reads the layer"
    assert place(last, "rgb_parts") == place(picture, "parts")
    parts = next(region for region in schedule_of(model).regions if region.name == place(last, "rgb_parts")[0])
    assert picture.arguments["part_count"] == parts.shape[0] == -(-model.spec.layers[-2].out_channels // 16)


@BOTH
@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_every_layers_input_comes_with_its_style(model: StyleGAN3Model, precision: Precision) -> None:
    schedule = schedule_of(model, precision)
    layout = StyleLayout(next(step for step in schedule.plan.steps if step.op == "styles").attributes)
    names = [layer.name for layer in model.spec.layers]
    filters = [launch for launch in schedule.launches if launch.label.endswith("filtered_lrelu")]
    convolutions = [launch for launch in schedule.launches if launch.label.endswith("modulated_conv")]
    assert place(convolutions[0], "next_style") == ("styles", layout.style_offset(names[0]))
    for launch, following in zip(filters, names[1:-1], strict=False):
        assert place(launch, "next_style") == ("styles", layout.style_offset(following))
    assert filters[-1].arguments["next_style"] is None, "toRGB applies its own"
    for launch, layer in zip(convolutions[1:], model.spec.layers, strict=False):
        assert launch.layer == f"synthesis.{layer.name}"
        assert launch.arguments["next_style"] is None, "the filters see no style"
        assert place(launch, "demod") == ("demod", layout.demod_offset(layer.name))


@BOTH
def test_plain_kernels_share_the_regions_of_fused_ones(model: StyleGAN3Model) -> None:
    fused, plain = schedule_of(model), schedule_of(model, everything_plain=True)
    mine, others = (
        {(region.name, region.shape, region.dtype) for region in schedule.regions} for schedule in (fused, plain)
    )
    assert [name for name, _, _ in others - mine] == [model.spec.layers[-2].name], "only plain kernels store it"
    assert {launch.label for launch in plain.launches} == {
        *("styles", "fourier_features", "plain_modulated_conv", "plain_filtered_lrelu", "plain_to_rgb", "to_rgb")
    }


def test_a_kernel_that_failed_has_its_plain_one_in_its_place() -> None:
    failed = next(launch for launch in schedule_of(R_MODEL).launches if launch.label == "filtered_lrelu").recipe
    schedule = schedule_of(R_MODEL, plain={failed.digest: "it was off"})
    stands_in = [launch for launch in schedule.launches if launch.label == "plain_filtered_lrelu"]
    assert {launch.reason for launch in stands_in} == {"it was off"}
    assert failed not in schedule.recipes


def test_a_filter_that_has_no_fused_kernel_says_why() -> None:
    layer = next(layer for layer in R_MODEL.spec.layers if layer.is_radial)
    name = f"synthesis.{layer.name}.down_filter"
    crooked = R_MODEL.weights[name].copy()
    crooked[0] *= 2
    schedule = lower(plan_of(R_MODEL), {**R_MODEL.weights, name: crooked}, TARGET)
    (stands_in,) = [launch for launch in schedule.launches if launch.reason]
    assert (stands_in.layer, stands_in.label) == (f"synthesis.{layer.name}", "plain_filtered_lrelu")
    assert "directions" in stands_in.reason


@pytest.mark.parametrize("everything_plain", [False, True])
@pytest.mark.parametrize("changes", [{}, R], ids=["T", "R"])
def test_in_fp8_a_convolution_multiplies_what_the_filtered_activation_before_stored(
    changes: dict[str, Any], everything_plain: bool
) -> None:
    model = make_stylegan3(resolution=64, channel_base=64 * 24, channel_max=24, w_dim=20, conv_clamp=256.0, **changes)
    schedule = schedule_of(model, "fp8", everything_plain=everything_plain)
    steps = [step for step in fuse(schedule.plan) if step.stores_fp8]
    assert {region.name: region.shape[-1] for region in schedule.regions if region.dtype == E4M3} == {
        step.y: 32 if step.main.attributes.channels > 16 else 16 for step in steps
    }
    macros = {(one.layer, one.label.removeprefix("plain_")): dict(one.recipe.defines) for one in schedule.launches}
    stored, read = (
        {layer for (layer, op), found in macros.items() if op == name and found[macro] != "0"}
        for name, macro in (("filtered_lrelu", "FP8_Y"), ("modulated_conv", "FP8_X"))
    )
    assert stored == {step.main.layer for step in steps}
    assert read == {step.next_style.layer for step in steps if step.next_style is not None}
    assert {one.is_fused for one in schedule.launches if one.layer in stored} == {not everything_plain}
    for launch in schedule.launches:
        assert not launch.reason
        described = launch.arguments.get("tma_map")
        if launch.layer in read and isinstance(described, TensorMap):
            assert described.extents[0] == next(
                region.shape[-1] for region in schedule.regions if region.name == described.address.name
            )


def test_what_is_observed_of_a_filtered_activation_in_e4m3_is_what_it_stands_for() -> None:
    model = make_stylegan3(resolution=64, channel_base=64 * 24, channel_max=24, w_dim=20, conv_clamp=256.0)
    schedule = schedule_of(model, "fp8")
    regions = {region.name: region for region in schedule.regions}
    step = next(step.main for step in fuse(schedule.plan) if step.stores_fp8)
    launch = next(one for one in schedule.launches if (one.layer, one.op) == (step.layer, step.op))
    seen = GPU_OPS[step.op].observe(step, launch, regions)
    assert seen is not None
    assert (seen.dtype, seen.shape) == (E4M3, regions[step.outputs[0]].shape)
    found = seen.finish(to_e4m3(np.full(seen.shape, 1.5 * ACTIVATION_SCALE, np.float32)))
    assert found.shape == (1, step.attributes.channels, *seen.shape[1:3])
    assert (found == 1.5).all()


@BOTH
def test_a_frame_begins_with_the_stored_transform(model: StyleGAN3Model) -> None:
    moved = np.array([[0, 1, 0.5], [-1, 0, 0], [0, 0, 1]], np.float32)
    weights = {**model.weights, "synthesis.input.transform": moved}
    schedule = lower(plan_of(model), weights, TARGET)
    assert np.array_equal(schedule.starts["transform"], moved)
    assert {region.name for region in schedule.regions if region.role == "input"} == {"ws", "transform"}


@BOTH
def test_scratch_that_is_used_at_a_time_does_not_overlap(model: StyleGAN3Model) -> None:
    schedule = schedule_of(model)
    spans = {
        region.name: (region.offset, region.offset + int(np.prod(region.shape)) * np.dtype(region.dtype).itemsize)
        for region in schedule.regions
    }
    for launch in schedule.launches:
        named = sorted(
            {
                spans[item.name]
                for item in launch.arguments.values()
                if isinstance(item, Address) and item.kind == "region"
            }
        )
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(named)), launch.layer


def test_the_picture_is_scaled_after_its_clamp() -> None:
    last = schedule_of(T_MODEL).launches[-1]
    assert last.arguments["gain"] == np.float32(T_MODEL.spec.output_scale)


def test_the_large_public_network_runs_fused_in_few_kernels() -> None:
    model = random_model(replace(shape_of("t256"), name="t"))
    schedule = schedule_of(model)
    assert not [launch.layer for launch in schedule.launches if launch.reason]
    assert len(schedule.launches) == 32
    assert sum(launch.flops for launch in schedule.launches) == pytest.approx(2e9 * 109.4, rel=0.01)


@pytest.mark.parametrize(("model", "kind"), [(T_MODEL, "conv"), (R_MODEL, "conv1x1")], ids=["T", "R"])
def test_its_convolutions_can_be_tuned(model: StyleGAN3Model, kind: str) -> None:
    convs = IsolatedConvs([plan_of(model)], model.weights, TARGET)
    layers = [layer for layer in model.spec.layers if layer.kind == "conv"]
    sides = {(kind if layer.kernel == layers[0].kernel else "conv1x1", layer.conv_size) for layer in layers}
    assert {(shape.kind, shape.side) for shape in convs.shapes} == sides
    for shape in convs.shapes:
        tile = TARGET.tiles.choose(shape)
        assert convs.fused(shape, tile).launch.label == "modulated_conv"
        assert convs.plain(shape).launch.label == "plain_modulated_conv"
        others = candidates(shape, "sm_90a", 132, 232448, taps=1, picture_channels=0)
        assert len(others) > 100
        assert all(convs.fused(shape, other).launch.is_fused for other in others[:2])


def test_a_tuned_tile_of_a_conv1x1olution_is_used() -> None:
    shape = IsolatedConvs([plan_of(R_MODEL)], R_MODEL.weights, TARGET).shapes[-1]
    tile = replace(TARGET.tiles.choose(shape), row_tiles=3)
    table = TileTable("sm_90a", 132, {shape: Tuned(tile, 1.0)}, shared_nbytes_per_block=232448)
    schedule = lower(plan_of(R_MODEL), R_MODEL.weights, replace(TARGET, tiles=table))
    row_tiles = [
        dict(launch.recipe.defines)["ROW_TILES"] for launch in schedule.launches if launch.label == "modulated_conv"
    ]
    assert "3" in row_tiles
