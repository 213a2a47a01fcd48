"""Kernels of the activation between two filters against the reference, and how their launches are cut."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.bands import band_words, products_of, rank_of
from gpu_backend.cuda.launches.filtered_lrelu import filter_geometry, fused_filter_recipe, plain_filter
from gpu_backend.cuda.launches.gpu_op import Refused
from gpu_backend.cuda.tiles.table import SMALLEST_SHARED_NBYTES
from gpu_backend.errors import DeviceError
from gpu_backend.model.stylegan3_design import StyleGAN3Design
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.conv_tile import NoTileError
from gpu_backend.ops.kernels.e4m3 import E4M3, NEEDS, multiplies_e4m3
from gpu_backend.ops.kernels.filter_tile import FilterGeometry, FilterShape, FilterTile, choose_filter_tile
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.conv_cases import H200
from tests.helpers.filter_cases import TOLERANCE, FilterCase, build, check_filter_case, filters_of
from tests.helpers.gpu import target_of
from tests.helpers.kept_kernels import EVERY, frontend_log, statistics_of
from tests.helpers.kernel_checks import accepted, one_each

CASES = (
    FilterCase(5, 38, 36),
    FilterCase(24, 38, 36, batch=3, is_styled=False),
    FilterCase(81, 54, 52, is_radial=True),
    FilterCase(33, 23, 37, up=4, low=-6, batch=2),
    FilterCase(16, 20, 21, up=4, low=-2, is_radial=True, batch=2),
    FilterCase(40, 86, 63, low=-11),
    FilterCase(12, 52, 64, low=11, is_radial=True),
    FilterCase(8, 9, 70, up=4, low=20),
    FilterCase(8, 90, 5, low=-60),
    FilterCase(8, 31, 29, low=10, is_radial=True),
    FilterCase(8, 31, 29, up=4, low=-5),
    FilterCase(8, 31, 29, up=4, low=-4, is_radial=True),
    FilterCase(8, 31, 29, up=4, low=-3),
    FilterCase(8, 31, 29, up=4, low=-3, is_radial=True),
    FilterCase(8, 31, 1, up=4, low=-3),
    FilterCase(24, 54, 52, is_radial=True, rank=2),
    FilterCase(40, 31, 29, up=4, low=-5, is_radial=True, rank=2, batch=2),
    FilterCase(8, 31, 29, is_radial=True, rank=1, is_styled=False),
    FilterCase(32, 31, 60, picture_channels=3, is_styled=False),
    FilterCase(40, 31, 29, up=4, low=-5, picture_channels=1, is_styled=False, batch=2),
    FilterCase(24, 31, 29, is_radial=True, picture_channels=4, is_styled=False, is_stored=False),
    FilterCase(8, 31, 29, is_radial=True, rank=2, picture_channels=3, is_styled=False, is_stored=False, batch=2),
    FilterCase(56, 150, 148, act=BiasAct.of_layer("lrelu", clamp=0.5)),
    FilterCase(8, 31, 29, act=BiasAct.of_layer("lrelu")),
)
FP8 = (
    FilterCase(5, 38, 36, fp8=True),
    FilterCase(81, 54, 52, fp8=True, batch=2),
    FilterCase(24, 38, 36, fp8=True, is_styled=False, batch=3),
    FilterCase(33, 23, 37, up=4, low=-6, batch=2, fp8=True),
    FilterCase(40, 31, 29, up=4, low=-5, is_radial=True, rank=2, batch=2, fp8=True),
    FilterCase(51, 38, 36, is_radial=True, fp8=True),
    FilterCase(56, 150, 148, act=BiasAct.of_layer("lrelu", clamp=0.5), fp8=True),
)
"""Stored as e4m3, with and without channels of padding."""
ODD = (
    FilterCase(5, 20, 13, up=3, low=2, up_taps=13, down=1, down_taps=7),
    FilterCase(12, 20, 13, up=2, low=5, up_taps=16, down=2, down_taps=16),
    FilterCase(5, 40, 13, up=1, low=5, up_taps=8, down=3, down_taps=9, act=BiasAct.of_layer("swish", clamp=0.5)),
)
"""What only the plain kernel runs."""
PHASES = [(up, phase, rank) for rank in (2, 0, 1) for up in (4, 2) for phase in reversed(range(up))]
"""Every way in which samples fall on pixels, with each kind of filter; those that take most registers first."""
_MANY = 6
"""Products whose sum is a filter that no few make up."""


def each() -> list[Any]:
    """Flavours and cases."""
    listed = [(flavour, case) for flavour in TOLERANCE for case in CASES] + [("plain", case) for case in ODD]
    return [
        pytest.param(flavour, replace(case, half=half), id=f"{flavour}-{replace(case, half=half)}")
        for flavour, case in listed
        for half in TOLERANCE[flavour]
    ]


@pytest.mark.gpu
@pytest.mark.parametrize(("flavour", "case"), each())
def test_a_filtered_activation_equals_the_reference(flavour: str, case: FilterCase, gpu: Gpu) -> None:
    check_filter_case(flavour, case, target_of(gpu))


@pytest.mark.gpu
@pytest.mark.parametrize("flavour", ["fused", "plain"])
@pytest.mark.parametrize("case", FP8, ids=str)
def test_what_is_stored_as_e4m3_is_the_rounded_reference(flavour: str, case: FilterCase, gpu: Gpu) -> None:
    if flavour == "fused" and not multiplies_e4m3(gpu.compile_architecture):
        pytest.skip("this GPU has no kernels for fp8")
    check_filter_case(flavour, replace(case, half=True), target_of(gpu))


@pytest.mark.parametrize("case", FP8, ids=str)
def test_what_is_stored_as_e4m3_has_whole_groups_of_channels_and_compiles_without_spills(case: FilterCase) -> None:
    for flavour in ("fused", "plain"):
        built = build(flavour, replace(case, half=True), H200)
        (launch,), (region,) = built.launches, built.regions
        assert (region.dtype, region.shape[-1]) == (E4M3, -(-case.channels // 16) * 16)
        assert launch.nbytes == case.batch * case.channels * (2 * case.in_size**2 + case.out_size**2)
        assert statistics_of(launch.recipe, "sm_90a").spill_nbytes == 0
        assert frontend_log(launch.recipe, "sm_89") == ""


def test_what_is_stored_as_e4m3_has_no_fused_kernel_on_other_gpus() -> None:
    case = replace(FP8[0], half=True)
    for architecture, expected in (("sm_86", Refused(NEEDS)), ("sm_100", Refused(NEEDS)), ("sm_89", None)):
        target = replace(H200, architecture=architecture)
        choice = filter_geometry(case.step, case.site, filters_of(case), target)
        assert (choice if isinstance(choice, Refused) else None) == expected


@pytest.mark.gpu
@pytest.mark.parametrize("tiles", range(3, 9))
@pytest.mark.parametrize("segment", [8, 24])
def test_every_way_to_cut_it_gives_the_reference(
    tiles: int, segment: int, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = target_of(gpu)

    def choose(shape: FilterShape, multiprocessors: int, shared_nbytes: int) -> FilterGeometry:
        geometry = FilterGeometry(shape, FilterTile(tiles, segment, 1))
        if geometry.shared_nbytes > shared_nbytes:
            pytest.skip("this GPU has no room for the tile")
        return geometry

    monkeypatch.setattr("gpu_backend.cuda.launches.filtered_lrelu.choose_filter_tile", choose)
    for case in (
        FilterCase(24, 60, 61, picture_channels=3, is_styled=False),
        FilterCase(24, 40, 61, up=4, low=-2, is_radial=True, batch=2),
        FilterCase(24, 40, 61, up=4, low=-2, is_radial=True, rank=2, batch=2),
    ):
        check_filter_case("fused", replace(case, half=True), target)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("case", "level"),
    [
        *itertools.product(
            [
                FilterCase(24, 60, 61),
                FilterCase(24, 40, 61, up=4, low=-2, is_radial=True),
                FilterCase(24, 40, 61, up=4, low=-2, is_radial=True, rank=2),
                FilterCase(24, 60, 61, picture_channels=3, is_styled=False),
            ],
            ["750", "800"],
        ),
        *((case, "890") for case in FP8),
    ],
    ids=str,
)
def test_the_kernels_for_older_gpus_equal_the_reference(
    case: FilterCase, level: str, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    def older(geometry: FilterGeometry) -> KernelRecipe:
        recipe = fused_filter_recipe(geometry)
        return replace(recipe, defines=(("LEVEL", level), *recipe.defines))

    if level == "890" and not multiplies_e4m3(gpu.compile_architecture):
        pytest.skip("this GPU has no kernels for fp8")
    monkeypatch.setattr("gpu_backend.cuda.launches.filtered_lrelu.fused_filter_recipe", older)
    check_filter_case("fused", replace(case, half=True), target_of(gpu))


@pytest.mark.parametrize(("variant", "architecture"), one_each(PHASES))
def test_it_compiles_for_all_blocks_that_a_multiprocessor_shall_hold_and_spills_nothing(
    variant: tuple[int, int, int], architecture: str
) -> None:
    up, phase, rank = variant
    for picture_channels in (0, 3) if rank < 2 else (0,):
        case = FilterCase(
            24, 60, 61, up=up, low=6 * up - 1 - 4 * up - phase, is_radial=rank != 1, rank=rank or _MANY,
            picture_channels=picture_channels, half=True,
        )  # fmt: skip
        (launch,) = build("fused", case, H200).launches
        defines = dict(launch.recipe.defines)
        expected = {"PHASE": phase, "RANK": rank, "IMG_CHANNELS": picture_channels}
        assert expected == {name: int(defines[name]) for name in expected}
        if not picture_channels and rank < 2 and not EVERY:
            # It keeps fewer values than the one with the products of toRGB, which comes next.
            assert frontend_log(launch.recipe, architecture) == ""
            continue
        kernel = statistics_of(launch.recipe, architecture)
        assert kernel.spill_nbytes == 0, f"{launch.recipe.title} spills {kernel.spill_nbytes} bytes"
        assert int(defines["MIN_BLOCKS"]) * launch.block[0] * kernel.registers <= 65536
        assert kernel.shared_nbytes <= 48 << 10


def test_a_launch_covers_all_outputs_of_all_channels() -> None:
    for case in CASES:
        settings = case.settings
        geometry = accepted(filter_geometry(case.step, replace(case.site, half=True), filters_of(case), H200))
        pairs, segments, pictures = geometry.grid
        column_tiles = -(-settings.out_size // geometry.width)
        assert 2 * pairs - column_tiles * -(-settings.channels // 8) in (
            (0, 1) if not case.picture_channels else (0, column_tiles)
        )
        assert segments * geometry.tile.segment >= settings.out_size
        assert geometry.width % (settings.up // 2) == 0
        assert geometry.tile.segment % 8 == 0
        assert pictures == case.batch


@pytest.mark.parametrize(("up", "rank"), [(up, rank) for up in (2, 4) for rank in (0, 1, 2)])
@pytest.mark.parametrize("shared_nbytes", [SMALLEST_SHARED_NBYTES, 101376, 232448])
def test_a_large_layer_has_long_segments_and_a_small_one_is_shared_out(up: int, rank: int, shared_nbytes: int) -> None:
    large = choose_filter_tile(FilterShape(1044, 56, 1, up, 0, rank), 132, shared_nbytes)
    small = choose_filter_tile(FilterShape(36, 512, 1, up, 0, rank), 132, shared_nbytes)
    assert large.tile.segment >= 64
    assert small.grid[0] * small.grid[1] >= 64
    for geometry in (large, small):
        assert geometry.tile.min_blocks * geometry.shared_nbytes <= shared_nbytes
        assert geometry.tile.min_blocks * geometry.tile.tiles <= 16


def test_a_memory_that_no_tile_fits_is_reported_in_words() -> None:
    with pytest.raises(NoTileError, match="shared memory"):
        choose_filter_tile(FilterShape(36, 512, 1, 2, 0, rank=1), 132, 16384)


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (ODD[0], "6 taps"),
        (ODD[1], "6 taps"),
        (FilterCase(8, 31, 29, act=BiasAct.of_layer("relu")), "leaky"),
        (FilterCase(8, 40000, 40000), "count"),
        (FilterCase(8, 31, 29, picture_channels=9), "pictures"),
    ],
)
def test_filters_without_a_fused_kernel_are_refused_with_a_reason(case: FilterCase, why: str) -> None:
    refused = filter_geometry(case.step, case.site, filters_of(case), H200)
    assert isinstance(refused, Refused)
    assert why in refused.reason


def test_a_filter_that_is_not_its_own_mirror_image_is_refused_in_words() -> None:
    case = FilterCase(8, 31, 29, is_radial=True)
    weights = dict(filters_of(case))
    weights["down"][0, 3] *= 1.01
    refused = filter_geometry(case.step, case.site, weights, H200)
    assert isinstance(refused, Refused)
    assert "directions" in refused.reason


def test_filters_that_no_memory_holds_are_refused_in_a_sentence() -> None:
    case = FilterCase(8, 400, 400, down_taps=400)
    with pytest.raises(DeviceError, match="400; render on the CPU"):
        plain_filter(case.step, case.site, {}, H200)


def test_half_of_the_gain_goes_along_each_axis() -> None:
    case = FilterCase(8, 31, 29, up=4, low=-6, half=True)
    built = build("fused", case, H200)
    (made,) = built.constants
    filters = filters_of(case)
    expected = band_words(filters["up"] * np.float32(4 * case.act.gain**0.5), filters["down"], 4, 1)
    assert np.array_equal(made.make(), expected)
    assert built.launches[0].arguments["bound"] == 0x5C005C00  # 256 twice, as fp16


@pytest.mark.parametrize(("up", "phase"), [(2, 0), (2, 1), (4, 0), (4, 3)])
def test_a_band_is_the_filter(up: int, phase: int) -> None:
    random = np.random.default_rng(up + phase)
    before, after = (random.standard_normal(count).astype(np.float16).astype(np.float32) for count in (6 * up, 12))
    words = band_words(before, after, up, phase)
    parts = matrices(words)
    samples, activated = random.standard_normal(16), random.standard_normal(32)
    # s / UP is 5 for the first sample that is activated, so that all of its taps meet a sample.
    expected = [
        sum(before[up * i + s % up] * samples[s // up + 5 - i] for i in range(6)) for s in range(phase, phase + 16)
    ]
    assert np.concatenate(parts[:2] @ samples) == pytest.approx(expected)
    halved = [after @ activated[2 * q : 2 * q + 12][::-1] for q in range(8)]
    assert parts[4] @ activated[:16] + parts[5] @ activated[16:] == pytest.approx(halved)
    assert np.array_equal(parts[2:4], parts[:2])


def test_a_radial_filter_is_a_band_for_each_of_its_first_rows() -> None:
    case = FilterCase(8, 31, 29, is_radial=True)
    filters = filters_of(case)
    parts = matrices(band_words(filters["up"], filters["down"], 2, 0, rank=0))
    assert parts.shape == (16, 8, 16)
    for row in range(6):
        alone = band_words(filters["up"], filters["down"][row], 2, 0)
        assert np.array_equal(parts[4 + 2 * row : 6 + 2 * row], matrices(alone)[4:])


def test_a_sum_of_two_products_is_bands_down_the_columns_and_along_the_rows() -> None:
    filters = filters_of(FilterCase(8, 31, 29, is_radial=True, rank=2))
    down, along = products_of(filters["down"])
    assert down.T @ along == pytest.approx(filters["down"], abs=1e-7)
    parts = matrices(band_words(filters["up"], filters["down"], 2, 0, rank=2))
    assert parts.shape == (12, 8, 16)
    for number, taps in enumerate((*down, *along)):
        alone = band_words(filters["up"], taps.astype(np.float32), 2, 0)
        assert parts[4 + 2 * number : 6 + 2 * number] == pytest.approx(matrices(alone)[4:], abs=1e-4)


def test_a_filter_is_two_products_only_where_what_is_left_out_is_less_than_rounding() -> None:
    taps = {rank: filters_of(FilterCase(8, 31, 29, is_radial=True, rank=rank))["down"] for rank in (1, 2, 3, _MANY)}
    assert {rank: rank_of(down) for rank, down in taps.items()} == {1: 2, 2: 2, 3: 0, _MANY: 0}
    assert rank_of(taps[1][0]) == 1
    design = StyleGAN3Design(resolution=1024, channel_base=65536, channel_max=1024, kernel=1, is_radial=True)
    found = {name: rank_of(down) for name, down in design.filters().items() if down.ndim == 2}
    assert [name.split(".")[1] for name, rank in found.items() if rank == 0] == ["L8_276_406", "L11_1044_102"]
    for name, rank in found.items():
        down, along = products_of(design.filters()[name])
        rounded = design.filters()[name].astype(np.float16).astype(np.float64)
        error, rounding = (float(np.abs(other - design.filters()[name]).max()) for other in (down.T @ along, rounded))
        assert error < 4 * rounding or rank == 0


def test_a_picture_comes_with_the_layer_which_is_stored_only_where_it_is_read() -> None:
    case = FilterCase(40, 31, 29, picture_channels=3, is_styled=False, half=True)
    for is_stored in (True, False):
        built = build("fused", replace(case, is_stored=is_stored), H200)
        shapes = {region.name: region.shape for region in built.regions}
        assert shapes.pop("rgb") == (3, 1, 29, 29, 3)
        assert shapes == ({"y": (1, 29, 29, 40)} if is_stored else {})
        (launch,) = built.launches
        assert (launch.arguments["y"] is not None) == is_stored
    labels = [launch.label for launch in build("plain", case, H200).launches]
    assert labels == ["plain_filtered_lrelu", "plain_to_rgb"]


def matrices(words: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Lanes' words as the matrices that they are parts of, (matrices, 8, 16)."""
    halves = words.view(np.float16).astype(float).reshape(-1, 2, 8, 8)
    return halves.transpose(0, 2, 1, 3).reshape(-1, 8, 16)
