"""Which tile a fused convolution gets, and which convolutions are left to plain kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_backend.cuda.launches.conv_work import ConvWork
from gpu_backend.cuda.launches.fused_convs import conv_geometry, fused_recipe
from gpu_backend.cuda.launches.gpu_op import Refused
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.tiles.table import TileTable, Tuned
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.kernels.conv_rules import default_tile
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvShape, ConvTile
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.conv_cases import ConvCase, filter_taps, site_of, step_of
from tests.helpers.kernel_checks import accepted
from tests.helpers.networks import make_stylegan2

SHARED = 101376
UP = ConvCase(64, 64, 64, fir=filter_taps(4), half=True)
SHAPE = ConvShape("up_conv", 64, 64, 64, 1)


def target_with(tuned: dict[ConvShape, ConvTile]) -> Target:
    table = TileTable("sm_86", 82, {shape: Tuned(tile, 1.0) for shape, tile in tuned.items()}, {}, SHARED)
    return Target("sm_86", 82, SHARED, table)


def geometry_of(case: ConvCase, target: Target) -> ConvGeometry:
    return accepted(conv_geometry(ConvWork.of_step(step_of(case)), site_of(case), target))


def reasons_of(fir: tuple[float, ...] = (1, 3, 3, 1), img_channels: int = 3) -> set[tuple[str, str]]:
    """Labels and reasons of the launches that take the place of fused ones."""
    model = make_stylegan2(fir=fir, img_channels=img_channels)
    plan = build_synthesis_plan(model.spec, "model", precision="fp16")
    launches = lower(plan, model.weights, target_with({})).launches
    return {(launch.label, launch.reason) for launch in launches if launch.reason}


def test_a_tile_that_a_longer_filter_makes_too_large_is_replaced_by_that_of_the_next_shape() -> None:
    large, small = ConvTile(8, 14, 32, 16, 3, 4, 2, 2, min_blocks=2), ConvTile(10, 8, 16, 16, 2, 4, 1)
    target = target_with({SHAPE: large, replace(SHAPE, side=128): small})
    assert geometry_of(UP, target).tile == large
    longer = replace(UP, fir=filter_taps(6))
    assert geometry_of(longer, target).tile == small, "measured next to it"
    rule = default_tile(SHAPE, "sm_86", 82, taps=6, shared_nbytes=SHARED)
    assert geometry_of(longer, target_with({SHAPE: large})).tile == rule


@pytest.mark.parametrize("count", range(1, 23))
def test_filters_of_up_to_22_taps_run_fused(count: int) -> None:
    assert reasons_of(fir=filter_taps(count)) == set()


def test_a_filter_too_long_for_shared_memory_is_named() -> None:
    reason = "no fused kernel fits a block's shared memory with an FIR filter of 23 taps"
    assert reasons_of(fir=filter_taps(23)) == {("plain_modulated_up_conv", reason)}


def test_pictures_of_more_channels_than_a_fused_kernel_brings_along_are_named() -> None:
    assert reasons_of(img_channels=8) == set()
    reason = "no fused kernel fits this GPU for a picture of 9 channels"
    assert reasons_of(img_channels=9) == {("plain_modulated_conv", reason), ("plain_to_rgb", reason)}


@pytest.mark.parametrize("case", [replace(UP, side=4096, cout=128), ConvCase(8, 512, 2048, half=True)], ids=str)
def test_pictures_of_more_numbers_than_32_bits_count_are_left_to_plain_kernels(case: ConvCase) -> None:
    refused = conv_geometry(ConvWork.of_step(step_of(case)), site_of(case), target_with({}))
    assert isinstance(refused, Refused)
    assert "have more numbers than fused kernels count" in refused.reason
    geometry_of(replace(case, cout=case.cout - 8), target_with({}))


@pytest.mark.parametrize("side", [36, 38, 54, 1046])
def test_tiles_reach_over_the_border_of_a_side_that_none_divides_and_of_no_other(side: int) -> None:
    case = ConvCase(64, 64, side, padding=2, noise="none", half=True)
    geometry = geometry_of(case, target_with({}))
    across, _, _ = geometry.grid
    rows, columns = geometry.segment, geometry.tile.columns
    assert across == -(-side // rows) * -(-side // columns)
    assert dict(fused_recipe(ConvWork.of_step(step_of(case)), site_of(case), geometry).defines)["PADDING"] == "2"
    tile = ConvTile(8, 16, 64, 16, 2, 4, 2)
    assert ConvGeometry(ConvShape("conv", side, 64, 64, 1), tile).fits("sm_86", SHARED)
    assert ConvGeometry(ConvShape("conv", 64, 64, 64, 1), tile).fits("sm_86", SHARED)
    assert not ConvGeometry(ConvShape("conv", 8, 64, 64, 1), tile).fits("sm_86", SHARED)


def test_of_tiles_measured_for_other_sides_one_that_reaches_less_far_is_taken() -> None:
    wide, narrow = ConvTile(8, 32, 64, 16, 2, 4, 1), ConvTile(8, 8, 64, 16, 2, 4, 1)
    shape = ConvShape("conv", 32, 64, 64, 1)
    target = target_with({shape: wide, replace(shape, side=64): narrow})
    case = ConvCase(64, 64, 38, padding=2, noise="none", half=True)
    assert geometry_of(case, target).tile == narrow


@pytest.mark.parametrize(("side", "cin", "cout"), [(36, 1024, 1024), (52, 3, 5), (1044, 102, 64), (532, 256, 161)])
@pytest.mark.parametrize(("architecture", "mma"), [("sm_90a", "wgmma"), ("sm_86", "mma")])
def test_a_conv1x1olution_of_any_side_has_a_tile(side: int, cin: int, cout: int, architecture: str, mma: str) -> None:
    shared = 232448 if mma == "wgmma" else SHARED
    target = Target(architecture, 132, shared, TileTable(architecture, 132, {}, {}, shared))
    geometry = geometry_of(ConvCase(cin, cout, side, kernel=1, noise="none", half=True), target)
    assert geometry.tile.mma == mma
    assert (geometry.tile.row_tiles > 1) == (side > 500)
