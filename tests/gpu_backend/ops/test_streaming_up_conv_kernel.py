"""The streaming up-convolution against the reference, and how it divides its work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches import streaming_up_conv as launches
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.streaming_up_conv import (
    channel_order,
    streaming_choice,
    streaming_recipe,
    streaming_up_conv,
)
from gpu_backend.cuda.schedule import Built, TensorMap
from gpu_backend.cuda.tiles.target import Target, target_of_batch
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.conv_tile import ConvShape
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.ops.kernels.streaming_tile import STRIP_COLUMNS, streaming_geometry
from gpu_backend.ops.modulated_up_conv import BINOMIAL_TAPS
from tests.helpers.conv_cases import (
    H200,
    ConvCase,
    Flavour,
    Weights,
    check_case,
    filter_taps,
    site_of,
    step_of,
    weights_of,
)
from tests.helpers.gpu import target_of
from tests.helpers.kept_kernels import statistics_of
from tests.helpers.kernel_checks import assert_compiles

FOUR = BINOMIAL_TAPS
CASES = (
    ConvCase(64, 32, 256, fir=FOUR),
    ConvCase(128, 64, 128, batch=2, fir=FOUR, noise="random"),
    ConvCase(40, 24, 132, batch=3, fir=FOUR, noise="none"),
    ConvCase(24, 16, 128, fir=FOUR, noise="off"),
    ConvCase(16, 8, 136, batch=2, fir=FOUR, is_styled=False),
    ConvCase(100, 40, 180, fir=FOUR, act=replace(BiasAct.of_layer("lrelu"), clamp=0.5)),
    ConvCase(72, 12, 128, fir=FOUR, act=BiasAct.of_layer("tanh")),
    ConvCase(8, 33, 260, fir=FOUR, noise="random"),
    ConvCase(64, 32, 256, fir=FOUR, blend=128),
    ConvCase(40, 24, 132, batch=3, fir=FOUR, noise="none", blend=132),
    ConvCase(16, 8, 136, batch=2, fir=FOUR, is_styled=False, blend=17),
)
H200_LIMITS = (132, 232448)


def build(work: ConvWork, site: ConvSite, weights: Weights, target: Target) -> Built:
    """Build a streaming up-convolution."""
    geometry = streaming_choice(work, site, target)
    assert geometry is not None
    return streaming_up_conv(work, site, weights, geometry)


@pytest.fixture
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small pictures stream, too: they take less time to check."""
    monkeypatch.setattr(launches, "_LEAST_POSITIONS", 0)


STREAMING = Flavour(build, build, (), (3,), {True: 4e-3})


@pytest.mark.gpu
@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_streaming_up_convolution_equals_the_reference(case: ConvCase, gpu: Gpu) -> None:
    target = target_of(gpu)
    if target.architecture != "sm_90a":
        pytest.skip("the streaming kernel is for Hopper")
    check_case(STREAMING, replace(case, half=True), target)


@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_compiles_without_spills_and_its_arguments_fit(case: ConvCase) -> None:
    case = replace(case, half=True)
    work, site = ConvWork.of_step(step_of(case)), site_of(case)
    built = build(work, site, weights_of(case), H200)
    (launch,) = built.launches
    regions = {item.name for item in built.regions}
    assert regions == {"y", "y_raw"}
    assert isinstance(launch.arguments["tma_map"], TensorMap)
    assert_compiles(launch.recipe, "sm_90a", launch.block[0], is_heavy=case.noise == "random")


@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("case", [CASES[1], CASES[7]], ids=str)
def test_it_declares_no_more_shared_memory_than_its_geometry_counts(case: ConvCase) -> None:
    case = replace(case, half=True)
    work, site = ConvWork.of_step(step_of(case)), site_of(case)
    geometry = streaming_choice(work, site, H200)
    assert geometry is not None
    declared = statistics_of(streaming_recipe(work, site, geometry), "sm_90a").shared_nbytes
    assert geometry.static_nbytes - 128 <= declared <= geometry.static_nbytes


@pytest.mark.parametrize(
    ("shape", "is_streamed"),
    [
        (ConvShape("up_conv", 1024, 64, 32, 8), True),
        (ConvShape("up_conv", 512, 128, 64, 1), True),
        (ConvShape("up_conv", 256, 256, 128, 1), False),
        (ConvShape("up_conv", 64, 64, 32, 1), False),
        (ConvShape("conv", 1024, 32, 32, 1), False),
    ],
)
def test_wide_up_convolutions_of_few_channels_are_streamed(shape: ConvShape, is_streamed: bool) -> None:
    assert (streaming_geometry(shape, *H200_LIMITS) is not None) == is_streamed


@pytest.mark.parametrize("batch", [1, 2, 8])
@pytest.mark.parametrize(("side", "cin", "cout"), [(1024, 64, 32), (512, 128, 64), (256, 128, 24), (132, 40, 8)])
def test_blocks_cover_the_picture_and_fit_a_multiprocessor(side: int, cin: int, cout: int, batch: int) -> None:
    geometry = streaming_geometry(ConvShape("up_conv", side, cin, cout, batch), *H200_LIMITS)
    assert geometry is not None
    positions = side // 2
    across = -(-positions // (geometry.strips * STRIP_COLUMNS))
    down = geometry.grid[0] // across
    rows = geometry.warpgroups * (4 // geometry.strips) * geometry.rows
    assert (down - 1) * rows < positions <= down * rows
    assert geometry.grid[1] * geometry.channels >= cout
    assert geometry.grid[2] == batch
    block_nbytes = geometry.dynamic_nbytes + geometry.static_nbytes
    assert geometry.min_blocks * (block_nbytes + 1024) - 1024 <= H200_LIMITS[1]


@pytest.mark.parametrize(("side", "cin", "cout"), [(1024, 32, 16), (512, 64, 32), (132, 40, 40)])
def test_a_block_that_sums_moments_has_one_part_of_the_picture(side: int, cin: int, cout: int) -> None:
    shape = ConvShape("up_conv", side, cin, cout, 1)
    geometry = streaming_geometry(shape, *H200_LIMITS, has_moments=True)
    assert geometry is not None
    rows, columns = geometry.part
    assert geometry.grid[0] == -(-side // rows) * -(-side // columns)
    assert geometry.warpgroups == 1
    block_nbytes = geometry.dynamic_nbytes + geometry.static_nbytes
    assert geometry.min_blocks * (block_nbytes + 1024) - 1024 <= H200_LIMITS[1]
    wider = replace(shape, cin=72)
    assert streaming_geometry(wider, *H200_LIMITS, has_moments=True) is None


def test_a_single_picture_gets_the_kernel_of_a_batch_where_that_one_is_checked() -> None:
    case = ConvCase(64, 32, 1024, fir=FOUR, half=True)
    work = ConvWork.of_step(step_of(case))

    def kernel(pictures: int, target: Target) -> tuple[KernelRecipe, int]:
        site = replace(site_of(case), batch=pictures)
        geometry = streaming_choice(work, site, target)
        assert geometry is not None
        return streaming_recipe(work, site, geometry), geometry.grid[2]

    assert kernel(8, H200) == (kernel(1, target_of_batch(H200, 8))[0], 8)
    assert kernel(1, target_of_batch(H200, 8))[1] == 1
    assert kernel(8, H200)[0] != kernel(1, H200)[0]


@pytest.mark.parametrize(("side", "pictures", "is_streamed"), [(512, 1, True), (256, 1, False), (256, 8, True)])
def test_pictures_that_leave_most_of_a_gpu_idle_keep_their_tiles(side: int, pictures: int, is_streamed: bool) -> None:
    case = ConvCase(128, 64, side, fir=FOUR, half=True)
    site = replace(site_of(case), batch=pictures)
    assert (streaming_choice(ConvWork.of_step(step_of(case)), site, H200) is not None) == is_streamed


def test_another_filter_is_not_streamed() -> None:
    case = ConvCase(128, 64, 512, fir=filter_taps(4), half=True)
    assert streaming_choice(ConvWork.of_step(step_of(case)), site_of(case), H200) is None


@pytest.mark.parametrize("channels", [16, 32])
def test_a_lane_holds_neighbouring_channels(channels: int) -> None:
    order = channel_order(channels)
    assert sorted(order) == list(range(channels))
    for quarter in range(4):
        held = [order[8 * n + 2 * quarter + b] for n in range(channels // 8) for b in (0, 1)]
        assert np.diff(held).tolist() == [1] * (channels // 4 - 1)
