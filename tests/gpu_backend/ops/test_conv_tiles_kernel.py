"""Fused convolutions cut in every way there is, and as older GPUs run them, against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.conv_arguments import Weights
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.fused_convs import WITHOUT_TF32, conv_geometry, fused_conv, fused_recipe
from gpu_backend.cuda.schedule import Built
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvTile
from tests.helpers.conv_cases import (
    H200,
    ConvCase,
    Flavour,
    check_case,
    filter_taps,
    fused,
    problem_of,
    run_built,
    site_of,
    step_of,
    weights_of,
)
from tests.helpers.gpu import target_of
from tests.helpers.kept_kernels import statistics_of
from tests.helpers.kernel_checks import accepted

TOLERANCE = {False: 2e-3, True: 4e-3}
WIDE = ConvCase(90, 70, 32, batch=2, rgb=3, noise="random", half=True)
BARE = replace(WIDE, rgb=0)
SMALL = ConvCase(72, 40, 8, batch=2, rgb=3, half=True)
LEAST = ConvCase(40, 24, 4, batch=3, rgb=1, half=True)
UP = ConvCase(72, 40, 64, batch=2, fir=filter_taps(4), noise="random", half=True)
RAGGED = ConvCase(72, 40, 38, batch=2, padding=2, noise="none", rgb=3, half=True)
FLAT = ConvCase(102, 72, 52, batch=2, kernel=1, noise="none", half=True)
BROAD = replace(FLAT, cout=200)
UP_LEAST = ConvCase(40, 24, 8, batch=2, fir=filter_taps(4), half=True)

TILES_OF_CASES = (
    (WIDE, ConvTile(8, 16, 64, 32, 2, 4, 2)),
    (WIDE, ConvTile(8, 16, 128, 16, 3, 2, 4)),
    (WIDE, ConvTile(8, 16, 64, 64, 2, 4, 2, split_k=2)),
    (WIDE, ConvTile(8, 16, 64, 32, 3, 4, 2, row_tiles=2, weights_in_smem=True)),
    (WIDE, ConvTile(8, 16, 64, 16, 3, 4, 2, row_tiles=4)),
    (WIDE, ConvTile(8, 16, 96, 16, 2, 4, 2)),
    (WIDE, ConvTile(8, 32, 96, 16, 3, 8, 1, mma="wgmma", row_tiles=2)),
    (WIDE, ConvTile(16, 16, 64, 32, 2, 8, 1, mma="wgmma")),
    (WIDE, ConvTile(8, 16, 128, 16, 2, 4, 2, mma="wgmma")),
    (WIDE, ConvTile(16, 32, 32, 32, 2, 8, 1, mma="wgmma")),
    (WIDE, ConvTile(4, 32, 32, 32, 2, 8, 1, mma="wgmma", row_tiles=4, weights_in_smem=True)),
    (replace(WIDE, cin=60), ConvTile(8, 16, 64, 64, 1, 4, 1, mma="wgmma")),
    (WIDE, ConvTile(8, 16, 80, 32, 2, 4, 1, mma="wgmma")),
    (BARE, ConvTile(8, 16, 72, 16, 2, 4, 1, mma="wgmma")),
    (BARE, ConvTile(16, 16, 72, 32, 2, 8, 1, mma="wgmma", row_tiles=2)),
    (BARE, ConvTile(8, 16, 40, 32, 3, 4, 1, mma="wgmma", row_tiles=4, weights_in_smem=True)),
    (BARE, ConvTile(8, 16, 112, 16, 2, 4, 2, mma="wgmma")),
    (BARE, ConvTile(8, 16, 104, 32, 2, 4, 1, mma="wgmma", split_k=2)),
    (SMALL, ConvTile(8, 8, 64, 32, 2, 2, 2, split_k=3)),
    (SMALL, ConvTile(8, 8, 64, 32, 2, 4, 1, split_k=2, mma="wgmma")),
    (SMALL, ConvTile(8, 8, 32, 16, 2, 4, 2)),
    (LEAST, ConvTile(4, 4, 64, 16, 2, 1, 4, split_k=3)),
    (LEAST, ConvTile(4, 4, 16, 16, 2, 1, 1)),
    (RAGGED, ConvTile(8, 16, 64, 32, 3, 4, 2, row_tiles=3, weights_in_smem=True)),
    (RAGGED, ConvTile(8, 8, 32, 16, 2, 2, 2, split_k=3)),
    (RAGGED, ConvTile(8, 32, 64, 16, 3, 4, 1, row_tiles=2)),
    (RAGGED, ConvTile(8, 16, 64, 64, 2, 4, 1, mma="wgmma")),
    (RAGGED, ConvTile(4, 32, 32, 32, 3, 8, 1, mma="wgmma", row_tiles=4, weights_in_smem=True)),
    (replace(RAGGED, rgb=0), ConvTile(8, 32, 40, 16, 3, 4, 1, mma="wgmma", row_tiles=2)),
    (replace(RAGGED, rgb=0), ConvTile(8, 8, 56, 32, 2, 4, 1, mma="wgmma", split_k=3)),
    (FLAT, ConvTile(8, 16, 128, 64, 2, 4, 1, mma="wgmma")),
    (FLAT, ConvTile(8, 16, 96, 64, 2, 4, 1, mma="wgmma", row_tiles=3)),
    (FLAT, ConvTile(8, 16, 88, 64, 2, 4, 1, mma="wgmma", row_tiles=2)),
    (FLAT, ConvTile(8, 8, 24, 32, 2, 4, 1, mma="wgmma")),
    (FLAT, ConvTile(16, 16, 64, 32, 3, 4, 2, row_tiles=2)),
    (FLAT, ConvTile(8, 8, 32, 32, 2, 2, 1, split_k=2)),
    (UP, ConvTile(8, 16, 32, 32, 2, 4, 2)),
    (UP, ConvTile(8, 14, 64, 16, 2, 8, 1, mma="wgmma")),
    (UP, ConvTile(8, 14, 64, 16, 2, 8, 1, mma="wgmma", row_tiles=3)),
    (UP, ConvTile(4, 30, 32, 32, 2, 8, 1, mma="wgmma", row_tiles=4, weights_in_smem=True)),
    (UP, ConvTile(8, 14, 32, 16, 3, 4, 2, row_tiles=5)),
    (UP, ConvTile(6, 4, 64, 32, 2, 3, 2, split_k=3)),
    (UP, ConvTile(12, 14, 64, 32, 2, 12, 1, mma="wgmma")),
    (UP, ConvTile(18, 16, 32, 16, 2, 12, 1, mma="wgmma")),
    (UP, ConvTile(10, 8, 16, 32, 2, 8, 1, mma="wgmma")),
    (UP, ConvTile(4, 30, 32, 16, 2, 8, 1, mma="wgmma", min_blocks=2, row_tiles=8)),
    (replace(UP, fir=(0.1, 0.2, 0.3, 0.4)), ConvTile(4, 30, 32, 16, 2, 8, 1, mma="wgmma", min_blocks=2, row_tiles=4)),
    (replace(UP, fir=(0.1, 0.2, 0.3, 0.4)), ConvTile(12, 14, 64, 16, 3, 12, 1, mma="wgmma")),
    (replace(UP, fir=filter_taps(1)), ConvTile(8, 16, 32, 16, 2, 4, 2, row_tiles=2)),
    (replace(UP, fir=filter_taps(3)), ConvTile(8, 14, 32, 16, 2, 4, 2, row_tiles=2)),
    (replace(UP, fir=filter_taps(6)), ConvTile(8, 13, 32, 16, 2, 4, 2, row_tiles=3)),
    (UP_LEAST, ConvTile(6, 4, 16, 16, 2, 3, 1, split_k=2)),
)


def in_tf32(case: ConvCase, tile: ConvTile) -> tuple[ConvCase, ConvTile]:
    """The same with fp32 activations: a step of as many bytes."""
    return replace(case, half=False), replace(tile, depth=tile.depth // 2)


def in_bf16x3(case: ConvCase, tile: ConvTile) -> tuple[ConvCase, ConvTile]:
    """The same with fp32 activations in bf16x3, of which a step takes sixteen channels at least."""
    return replace(case, half=False, bf16x3=True), replace(tile, depth=max(tile.depth // 2, 16))


def geometry_of(case: ConvCase, tile: ConvTile) -> ConvGeometry:
    """The tile on the case's shape, on an H200."""
    return replace(accepted(conv_geometry(ConvWork.of_step(step_of(case)), site_of(case), H200)), tile=tile)


def fits(case: ConvCase, tile: ConvTile) -> bool:
    """Whether the tile fits the case on an H200: twice the bytes may not."""
    return geometry_of(case, tile).fits(H200.architecture, H200.shared_nbytes_per_block)


IN_TF32 = tuple(one for one in (in_tf32(*given) for given in TILES_OF_CASES) if fits(*one))
IN_BF16X3 = tuple(
    (case, next(tile for tile in (tile, replace(tile, channels=tile.channels // 2)) if fits(case, tile)))
    for case, tile in (in_bf16x3(*given) for given in TILES_OF_CASES)
    if fits(case, tile) or (tile.channels % 32 == 0 and fits(case, replace(tile, channels=tile.channels // 2)))
)
"""Where registers do not suffice for twice the sums, blocks have half of the channels."""
BROAD_BLOCKS = (
    (BROAD, ConvTile(4, 32, 208, 32, 3, 4, 1, mma="wgmma", row_tiles=3)),
    (BROAD, ConvTile(8, 16, 256, 64, 2, 8, 1, mma="wgmma", row_tiles=2)),
    (replace(RAGGED, cout=136, rgb=0), ConvTile(8, 16, 136, 16, 2, 8, 1, mma="wgmma", row_tiles=2)),
)
"""Blocks of more channels than others have, in fp16 alone."""
OLDER = (
    (WIDE, ConvTile(8, 16, 32, 16, 2, 4, 1)),
    (replace(WIDE, skip=filter_taps(4)), ConvTile(8, 16, 32, 16, 2, 4, 1, row_tiles=2)),
    (SMALL, ConvTile(8, 8, 32, 16, 2, 2, 2, split_k=3)),
    (UP, ConvTile(6, 14, 16, 16, 2, 4, 1, row_tiles=3)),
    (UP_LEAST, ConvTile(6, 4, 16, 16, 2, 3, 1, split_k=2)),
)


def label(value: object) -> str:
    """Name of a case or a tile among parameters."""
    if not isinstance(value, ConvTile):
        return str(value)
    ways = f"{value.rows}x{value.columns}x{value.channels}-depth{value.depth}-{value.mma}-split_k{value.split_k}"
    return f"{ways}-row_tiles{value.row_tiles}" + ("-weights_in_smem" if value.weights_in_smem else "")


def cut(tile: ConvTile, *older: tuple[str, str]) -> Flavour:
    """Fused kernels with this tile, and with these macros besides."""

    def build(work: ConvWork, site: ConvSite, weights: Weights, target: Target) -> Built:
        geometry = replace(accepted(conv_geometry(work, site, target)), tile=tile)
        assert geometry.fits(target.architecture, target.shared_nbytes_per_block), "the tile does not fit the case"
        built = fused_conv(work, site, weights, geometry)
        launches = tuple(
            replace(launch, recipe=replace(launch.recipe, defines=(*older, *launch.recipe.defines)))
            for launch in built.launches
        )
        return replace(built, launches=launches)

    return Flavour(build, build, (1, 3), (3,), TOLERANCE)


@pytest.mark.gpu
@pytest.mark.parametrize(("case", "tile"), TILES_OF_CASES + BROAD_BLOCKS + IN_TF32 + IN_BF16X3, ids=label)
def test_every_way_to_cut_a_convolution_gives_the_reference(case: ConvCase, tile: ConvTile, gpu: Gpu) -> None:
    if tile.mma == "wgmma" and gpu.compile_architecture != "sm_90a":
        pytest.skip("this GPU has no wgmma")
    check_case(cut(tile), case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "case",
    [ConvCase(512, 64, 16, noise="none"), ConvCase(512, 64, 32, noise="none", fir=filter_taps(4))],
    ids=["conv", "up_conv"],
)
def test_bf16x3_errs_by_six_bits_less_than_tf32(case: ConvCase, gpu: Gpu) -> None:
    if target_of(gpu).architecture in WITHOUT_TF32:
        pytest.skip("this GPU has neither")
    problem = problem_of(case)
    errors = []
    for one in (case, replace(case, bf16x3=True)):
        built = fused(ConvWork.of_step(step_of(one)), site_of(one), problem.weights, target_of(gpu))
        off = run_built(built, problem.inputs)["y_raw"][..., : case.cout] - problem.expected["y_raw"]
        errors.append(float(np.sqrt(np.mean(off**2))))
    assert errors[0] >= 64 * errors[1], errors


@pytest.mark.gpu
@pytest.mark.parametrize(("case", "tile"), OLDER, ids=label)
def test_the_kernels_for_turing_equal_the_reference(case: ConvCase, tile: ConvTile, gpu: Gpu) -> None:
    check_case(cut(tile, ("LEVEL", "750")), case, target_of(gpu))


@pytest.mark.parametrize(
    ("case", "tile"),
    [
        (UP, ConvTile(12, 14, 64, 32, 2, 12, 1, mma="wgmma")),
        (UP, ConvTile(8, 14, 64, 16, 3, 8, 1, mma="wgmma", row_tiles=2)),
        (UP, ConvTile(4, 30, 32, 16, 2, 8, 1, mma="wgmma", min_blocks=2, row_tiles=8)),
        (WIDE, ConvTile(8, 32, 64, 16, 3, 8, 1, mma="wgmma", row_tiles=2)),
        in_tf32(UP, ConvTile(4, 30, 32, 16, 2, 8, 1, mma="wgmma", min_blocks=2, row_tiles=8)),
        in_tf32(WIDE, ConvTile(8, 32, 64, 16, 3, 8, 1, mma="wgmma", row_tiles=2)),
        in_bf16x3(UP, ConvTile(4, 30, 16, 16, 2, 8, 1, mma="wgmma", min_blocks=2, row_tiles=8)),
        in_bf16x3(WIDE, ConvTile(8, 32, 64, 16, 2, 8, 1, mma="wgmma")),
    ],
    ids=label,
)
def test_a_kernel_declares_no_more_shared_memory_than_its_geometry_counts(case: ConvCase, tile: ConvTile) -> None:
    work, site, geometry = ConvWork.of_step(step_of(case)), site_of(case), geometry_of(case, tile)
    assert statistics_of(fused_recipe(work, site, geometry), "sm_90a").shared_nbytes <= geometry.static_nbytes


def test_most_ways_are_tried_in_tf32_and_bf16x3_too() -> None:
    assert min(len(IN_TF32), len(IN_BF16X3)) >= len(TILES_OF_CASES) * 3 // 4


@pytest.mark.parametrize(("case", "tile"), TILES_OF_CASES + BROAD_BLOCKS + IN_TF32 + IN_BF16X3 + OLDER, ids=label)
def test_the_ways_fit_their_cases_on_an_h200(case: ConvCase, tile: ConvTile) -> None:
    flavour = cut(tile)
    built = flavour.conv(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), H200)
    assert built.launches[0].block[0] == tile.threads
