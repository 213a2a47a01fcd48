"""Convolutions that read or store e4m3, fused and plain, against the reference of the quantised numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches import streaming_up_conv as launches
from gpu_backend.cuda.launches.conv_arguments import Weights
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.fused_convs import conv_geometry, fused_conv
from gpu_backend.cuda.launches.gpu_op import Refused
from gpu_backend.cuda.launches.streaming_up_conv import streaming_choice, streaming_up_conv
from gpu_backend.cuda.schedule import Built, TensorMap
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target, portable
from gpu_backend.ops.kernels.conv_tile import ConvTile
from gpu_backend.ops.kernels.e4m3 import E4M3, NEEDS, multiplies_e4m3
from gpu_backend.ops.modulated_up_conv import BINOMIAL_TAPS
from tests.helpers.conv_cases import (
    FLAVOURS,
    H200,
    ConvCase,
    Flavour,
    check_case,
    filter_taps,
    site_of,
    step_of,
    weights_of,
)
from tests.helpers.gpu import target_of
from tests.helpers.kernel_checks import accepted, assert_compiles

READ = ConvCase(96, 70, 64, batch=2, rgb=3, noise="random", half=True, fp8="x")
BARE = replace(READ, rgb=0)
ODD = ConvCase(51, 83, 53, batch=2, noise="none", padding=2, half=True, fp8="x")
POINTWISE = replace(ODD, cin=139, kernel=1, padding=None)
STORED = ConvCase(72, 48, 64, batch=2, fir=BINOMIAL_TAPS, half=True, fp8="y")

TILES = (
    (READ, ConvTile(8, 16, 64, 32, 3, 4, 1, mma="wgmma", min_blocks=2)),
    (READ, ConvTile(8, 32, 96, 32, 3, 8, 1, mma="wgmma", row_tiles=2)),
    (READ, ConvTile(4, 32, 32, 64, 2, 8, 1, mma="wgmma", row_tiles=4, weights_in_smem=True)),
    (READ, ConvTile(8, 16, 32, 128, 2, 4, 1, mma="wgmma")),
    (READ, ConvTile(8, 16, 128, 32, 2, 4, 2, mma="wgmma")),
    (replace(READ, skip=filter_taps(4)), ConvTile(8, 16, 64, 32, 2, 4, 1, mma="wgmma")),
    (replace(BARE, cin=32), ConvTile(8, 16, 64, 32, 1, 4, 1, mma="wgmma")),
    (BARE, ConvTile(8, 16, 72, 32, 2, 4, 1, mma="wgmma", row_tiles=2)),
    (BARE, ConvTile(8, 16, 64, 32, 2, 4, 1, mma="wgmma", split_k=2)),
    (BARE, ConvTile(8, 8, 40, 32, 2, 4, 1, mma="wgmma")),
    (ODD, ConvTile(4, 32, 88, 32, 2, 4, 1, mma="wgmma", min_blocks=2, row_tiles=3)),
    (ODD, ConvTile(8, 16, 48, 64, 2, 4, 1, mma="wgmma")),
    (replace(ODD, cin=88), ConvTile(4, 32, 88, 32, 2, 4, 1, mma="wgmma", row_tiles=2)),
    (POINTWISE, ConvTile(4, 32, 88, 128, 2, 8, 1, mma="wgmma", min_blocks=2)),
    (POINTWISE, ConvTile(8, 32, 64, 64, 3, 8, 1, mma="wgmma", row_tiles=3)),
    (STORED, ConvTile(8, 14, 64, 16, 2, 8, 1, mma="wgmma")),
    (STORED, ConvTile(12, 14, 64, 32, 2, 12, 1, mma="wgmma")),
    (STORED, ConvTile(4, 30, 32, 32, 2, 8, 1, mma="wgmma", row_tiles=4, weights_in_smem=True)),
    (STORED, ConvTile(8, 16, 32, 32, 2, 4, 2)),
    (replace(READ, fp8="xy"), ConvTile(8, 32, 96, 32, 3, 8, 1, mma="wgmma", row_tiles=2)),
    (replace(READ, fp8="y", cout=80), ConvTile(8, 16, 64, 32, 2, 4, 2, mma="wgmma")),
    (replace(BARE, fp8="y"), ConvTile(8, 8, 64, 16, 2, 4, 2, split_k=2)),
    (replace(STORED, fir=filter_taps(4)), ConvTile(12, 14, 64, 16, 3, 12, 1, mma="wgmma")),
    (replace(STORED, fir=filter_taps(3)), ConvTile(8, 14, 32, 16, 2, 4, 2, row_tiles=2)),
)
MMA_TILES = (
    (READ, ConvTile(8, 16, 32, 32, 2, 2, 2, min_blocks=2)),
    (READ, ConvTile(8, 16, 64, 32, 2, 4, 2)),
    (READ, ConvTile(16, 16, 32, 64, 1, 4, 2, split_k=2)),
    (READ, ConvTile(4, 32, 16, 32, 2, 4, 1, min_blocks=2, row_tiles=3)),
    (READ, ConvTile(8, 8, 32, 128, 1, 2, 2)),
    (replace(READ, skip=filter_taps(4)), ConvTile(8, 16, 32, 32, 3, 2, 2, row_tiles=2)),
    (BARE, ConvTile(8, 16, 48, 32, 2, 4, 1, row_tiles=2)),
    (BARE, ConvTile(8, 16, 32, 32, 2, 2, 2, split_k=3)),
    (replace(BARE, cin=32), ConvTile(8, 16, 32, 32, 2, 2, 2, min_blocks=2, row_tiles=8, weights_in_smem=True)),
    (ODD, ConvTile(8, 16, 32, 32, 2, 2, 2, min_blocks=2, row_tiles=3)),
    (ODD, ConvTile(4, 16, 96, 32, 2, 2, 2)),
    (POINTWISE, ConvTile(8, 16, 64, 64, 2, 4, 1, min_blocks=2, row_tiles=2)),
    (POINTWISE, ConvTile(8, 32, 16, 128, 2, 8, 1)),
)
"""For GPUs that multiply e4m3 without wgmma."""
STREAMED = (replace(STORED, side=128), replace(STORED, cout=16, side=132, is_styled=False))
BOTH = replace(STORED, fp8="xy")
READ_AND_STREAMED = (
    replace(BOTH, side=128),
    replace(BOTH, cin=128, cout=16, side=132, is_styled=False),
    replace(BOTH, cin=40, side=128, batch=1),
)
CONV_STORED = replace(READ, fp8="y", cout=80)
TOLERANCE = {True: 4e-3}
ADA = Target("sm_89", 128, 101376, TileTable("sm_89", 128, shared_nbytes_per_block=101376))


def in_tile(tile: ConvTile) -> Flavour:
    """Fused kernels with a tile."""

    def build(work: ConvWork, site: ConvSite, weights: Weights, target: Target) -> Built:
        geometry = replace(accepted(conv_geometry(work, site, target)), tile=tile)
        assert geometry.fits(target.architecture, target.shared_nbytes_per_block), "the tile does not fit the case"
        return fused_conv(work, site, weights, geometry)

    return Flavour(build, build, (1, 3), (3,), TOLERANCE)


def streaming(work: ConvWork, site: ConvSite, weights: Weights, target: Target) -> Built:
    """Build a streaming up-convolution."""
    geometry = streaming_choice(work, site, target)
    assert geometry is not None
    return streaming_up_conv(work, site, weights, geometry)


@pytest.fixture
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "_LEAST_POSITIONS", 0)


@pytest.mark.gpu
@pytest.mark.parametrize(("case", "tile"), TILES, ids=str)
def test_fused_kernels_equal_the_reference_of_the_quantised_numbers(case: ConvCase, tile: ConvTile, gpu: Gpu) -> None:
    if gpu.compile_architecture != "sm_90a":
        pytest.skip("the tiles are for Hopper")
    check_case(in_tile(tile), case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize(("case", "tile"), MMA_TILES, ids=str)
def test_kernels_without_wgmma_equal_it_too(case: ConvCase, tile: ConvTile, gpu: Gpu) -> None:
    target = portable(target_of(gpu))
    if not multiplies_e4m3(target.architecture):
        pytest.skip("this GPU has no kernels for fp8")
    check_case(in_tile(tile), case, target)


@pytest.mark.gpu
@pytest.mark.parametrize("case", [READ, BARE, ODD, POINTWISE, STORED], ids=str)
def test_kernels_by_rule_equal_it_on_every_gpu(case: ConvCase, gpu: Gpu) -> None:
    target = portable(target_of(gpu))
    if not multiplies_e4m3(target.architecture):
        pytest.skip("this GPU has no kernels for fp8")
    check_case(FLAVOURS["fused"], case, target)


@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("case", [*STREAMED, *READ_AND_STREAMED], ids=str)
def test_the_streaming_kernel_takes_its_cases(case: ConvCase) -> None:
    assert streaming_choice(ConvWork.of_step(step_of(case)), site_of(case), H200) is not None


@pytest.mark.gpu
@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("case", [*STREAMED, *READ_AND_STREAMED], ids=str)
def test_streaming_kernels_store_the_reference(case: ConvCase, gpu: Gpu) -> None:
    if gpu.compile_architecture != "sm_90a":
        pytest.skip("the streaming kernel is for Hopper")
    check_case(Flavour(streaming, streaming, (), (3,), TOLERANCE), case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "case", [READ, BARE, ODD, POINTWISE, STORED, BOTH, CONV_STORED, replace(BOTH, fir=filter_taps(3))], ids=str
)
def test_plain_kernels_equal_it_on_every_gpu(case: ConvCase, gpu: Gpu) -> None:
    check_case(replace(FLAVOURS["plain"], tolerance={True: 1e-3}), case, target_of(gpu))


@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize(
    ("case", "tile"),
    [*TILES[:2], next(one for one in TILES if one[0] == STORED), (STREAMED[0], None), (READ_AND_STREAMED[0], None)],
    ids=str,
)
def test_they_compile_without_spills(case: ConvCase, tile: ConvTile | None) -> None:
    build = streaming if tile is None else in_tile(tile).conv
    built = build(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), H200)
    (launch,) = built.launches
    assert_compiles(launch.recipe, "sm_90a", launch.block[0], is_heavy=False)
    described = launch.arguments["tma_map"]
    assert isinstance(described, TensorMap)
    assert described.itemsize == (1 if "x" in case.fp8 else 2)
    assert {region.name: region.dtype for region in built.regions}["y"] == (E4M3 if "y" in case.fp8 else "float16")


@pytest.mark.parametrize(("case", "tile"), TILES, ids=str)
def test_the_tiles_fit_their_cases_on_an_h200(case: ConvCase, tile: ConvTile) -> None:
    built = in_tile(tile).conv(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), H200)
    assert built.launches[0].block[0] == tile.threads


@pytest.mark.parametrize(("case", "tile"), MMA_TILES, ids=str)
def test_the_tiles_without_wgmma_fit_their_cases_on_ada_and_compile(case: ConvCase, tile: ConvTile) -> None:
    built = in_tile(tile).conv(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), ADA)
    (launch,) = built.launches
    assert {"USE_WGMMA": "0", "USE_TMA": "0", "FP8_X": "256"}.items() <= dict(launch.recipe.defines).items()
    assert_compiles(launch.recipe, "sm_89", tile.threads, is_heavy=False)


@pytest.mark.parametrize("architecture", ["sm_89", "sm_120"])
def test_a_kernel_without_wgmma_spills_nothing(architecture: str) -> None:
    case, tile = MMA_TILES[0]
    (launch,) = in_tile(tile).conv(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), ADA).launches
    assert_compiles(launch.recipe, architecture, 2 * tile.threads)


@pytest.mark.parametrize("case", [READ, STORED], ids=str)
@pytest.mark.parametrize("architecture", ["sm_86", "sm_100"])
def test_other_architectures_have_no_fused_kernel(case: ConvCase, architecture: str) -> None:
    target = Target(architecture, 128, 101376, TileTable(architecture, 128, shared_nbytes_per_block=101376))
    choice = conv_geometry(ConvWork.of_step(step_of(case)), site_of(case), target)
    assert choice == Refused(NEEDS)


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        ("sm_75", False), ("sm_86", False), ("sm_89", True), ("sm_90", True), ("sm_90a", True), ("sm_100", False),
        ("sm_103", False), ("sm_110", False), ("sm_120", True), ("sm_121", True), ("sm_120f", True),
    ],
)  # fmt: skip
def test_e4m3_is_for_gpus_whose_tensor_cores_multiply_it(architecture: str, expected: bool) -> None:
    """From compute capability 10 to 11 mma would convert it to fp16."""
    assert multiplies_e4m3(architecture) == expected


def test_hopper_multiplies_e4m3_by_wgmma_alone() -> None:
    """Its mma would convert it to fp16, as a portable target has it do."""
    case, tile = MMA_TILES[1]
    geometry = accepted(conv_geometry(ConvWork.of_step(step_of(case)), site_of(case), H200))
    assert geometry.tile.mma == "wgmma"
    assert not replace(geometry, tile=tile).fits("sm_90a", H200.shared_nbytes_per_block)
    assert replace(geometry, tile=tile).fits("sm_90", H200.shared_nbytes_per_block)


def test_a_shape_that_no_table_knows_has_a_tile_by_rule() -> None:
    for cin, cout, side in ((16, 8, 64), (512, 512, 64), (32, 32, 1024), (48, 24, 128)):
        case = replace(BARE, cin=cin, cout=cout, side=side)
        geometry = conv_geometry(ConvWork.of_step(step_of(case)), site_of(case), H200)
        assert not isinstance(geometry, Refused)
        assert geometry.tile.mma == "wgmma"


@pytest.mark.parametrize(("architecture", "multiprocessors"), [("sm_89", 20), ("sm_89", 128), ("sm_120", 170)])
def test_where_there_is_no_wgmma_a_rule_has_two_blocks_a_multiprocessor(
    architecture: str, multiprocessors: int
) -> None:
    table = TileTable(architecture, multiprocessors, shared_nbytes_per_block=101376)
    target = Target(architecture, multiprocessors, 101376, table)
    for cin, cout, side in ((16, 8, 64), (512, 512, 64), (128, 128, 256), (32, 32, 1024), (1024, 1024, 38)):
        case = replace(BARE, cin=cin, cout=cout, side=side, rgb=0 if side == 38 else 3)
        geometry = accepted(conv_geometry(ConvWork.of_step(step_of(case)), site_of(case), target))
        assert (geometry.tile.mma, geometry.tile.min_blocks) == ("mma", 2)
        assert geometry.fits(architecture, 101376 // 2)
        keeps_weights = geometry.tile.row_tiles > 1 and cin <= 32
        assert geometry.tile.weights_in_smem == keeps_weights, "those of few input channels fit beside the patches"
    case = replace(POINTWISE, cin=512, cout=512, side=276)
    geometry = accepted(conv_geometry(ConvWork.of_step(step_of(case)), site_of(case), target))
    assert (geometry.tile.mma, geometry.tile.min_blocks, geometry.tile.depth) == ("mma", 2, 64)
