"""The up-convolution in two kernels against the reference, how it divides its work, and where it is chosen."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.conv_op import observe_conv
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.launches.streaming_up_conv import streaming_choice
from gpu_backend.cuda.launches.unfused_up_conv import (
    TAP_ORDER,
    channel_order,
    unfused_choice,
    unfused_recipes,
    unfused_up_conv,
)
from gpu_backend.cuda.running.self_check import doubtful_recipes
from gpu_backend.cuda.schedule import Built, Schedule, TensorMap
from gpu_backend.cuda.tiles.target import Target, target_of_batch
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels import unfused_tile
from gpu_backend.ops.kernels.conv_tile import ConvShape
from gpu_backend.ops.kernels.unfused_tile import FilterGeometry, TransposedGeometry, unfused_geometries
from gpu_backend.ops.modulated_up_conv import BINOMIAL_TAPS
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.gpu_backend.cuda.running.test_self_check import judged
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
from tests.helpers.kept_kernels import frontend_log, statistics_of
from tests.helpers.kernel_checks import assert_compiles
from tests.helpers.networks import make_stylegan2

FOUR = BINOMIAL_TAPS
CASES = (
    ConvCase(64, 64, 64, batch=2, fir=FOUR),
    ConvCase(40, 24, 36, batch=3, fir=FOUR, noise="random"),
    ConvCase(72, 136, 20, fir=FOUR, noise="none"),
    ConvCase(512, 128, 32, batch=2, fir=FOUR, is_styled=False),
    ConvCase(100, 40, 180, fir=FOUR, act=replace(BiasAct.of_layer("lrelu"), clamp=0.5)),
    ConvCase(16, 72, 4, fir=FOUR, noise="off", act=BiasAct.of_layer("tanh")),
    ConvCase(8, 33, 132, fir=FOUR, half_turns=0.25),
)
STORED = ConvCase(128, 64, 132, fir=FOUR, half=True, fp8="y")
READ = (
    ConvCase(64, 64, 64, batch=2, fir=FOUR, half=True, fp8="xy"),
    ConvCase(40, 32, 36, batch=3, fir=FOUR, noise="random", half=True, fp8="xy"),
    ConvCase(72, 144, 20, fir=FOUR, noise="none", half=True, fp8="xy"),
    ConvCase(512, 128, 132, batch=2, fir=FOUR, is_styled=False, half=True, fp8="xy"),
)
H200_LIMITS = (132, 232448)


def geometries(shape: ConvShape) -> tuple[TransposedGeometry, FilterGeometry]:
    """Divide a shape as large ones are."""
    found = unfused_geometries(replace(shape, side=256, cin=512, cout=256, batch=8), *H200_LIMITS)
    assert found is not None
    return replace(found[0], shape=shape), replace(found[1], shape=shape)


def build(work: ConvWork, site: ConvSite, weights: Weights, target: Target) -> Built:
    """Build an up-convolution of any size in two kernels, on fewer blocks than there are tiles."""
    shape = ConvShape("up_conv", work.side, site.cin(work), work.cout, site.batch, site.operands)
    return unfused_up_conv(work, site, weights, *geometries(shape), multiprocessors=5)


@pytest.mark.gpu
@pytest.mark.parametrize("case", [*(replace(case, half=True) for case in CASES), STORED, *READ], ids=str)
def test_two_kernels_equal_the_reference(case: ConvCase, gpu: Gpu) -> None:
    target = target_of(gpu)
    if target.architecture != "sm_90a":
        pytest.skip("the kernels are for Hopper")
    check_case(Flavour(build, build, (), (3,), {True: 4e-2 if case.fp8 else 4e-3}), case, target)


@pytest.mark.parametrize("case", [replace(CASES[0], half=True), replace(CASES[5], half=True), STORED, READ[0]], ids=str)
def test_they_compile_without_spills_and_their_arguments_fit(case: ConvCase) -> None:
    built = build(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), H200)
    for launch in built.launches:
        assert isinstance(launch.arguments["tma_map"], TensorMap)
        assert set(launch.arguments) == set(launch.recipe.parameters.names or ())
        assert_compiles(launch.recipe, "sm_90a", launch.block[0], is_heavy=False)


@pytest.mark.parametrize("case", [replace(CASES[0], half=True), READ[0]], ids=str)
def test_they_declare_no_more_shared_memory_than_their_geometries_count(case: ConvCase) -> None:
    work, site = ConvWork.of_step(step_of(case)), site_of(case)
    shape = ConvShape("up_conv", work.side, site.cin(work), work.cout, site.batch, site.operands)
    products, filtering = geometries(shape)
    counted = products.static_nbytes, filtering.static_nbytes
    for recipe, most in zip(unfused_recipes(work, site, products, filtering), counted, strict=True):
        declared = statistics_of(recipe, "sm_90a").shared_nbytes
        assert most - 128 <= declared <= most, recipe.title


def test_divisions_that_are_counted_otherwise_than_the_kernels_do_are_refused() -> None:
    case = replace(CASES[0], half=True)
    for launch in build(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), H200).launches:
        other = {**dict(launch.recipe.defines), "SHARED_NBYTES": str(launch.shared_nbytes - 1024)}
        log = frontend_log(replace(launch.recipe, defines=tuple(other.items())), "sm_90a")
        assert "the stages lie in the launch's shared memory" in log, launch.label


def test_the_transposed_picture_lives_from_the_first_kernel_to_the_second() -> None:
    case = replace(CASES[0], half=True)
    first, second = (built := build(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), H200)).launches
    assert {"x", "demod", "y/t"} == set(first.region_names)
    assert {"y/t", "y", "y_raw", "styles", "noise_gain", "noise_source"} == set(second.region_names)
    t = next(region for region in built.regions if region.name == "y/t")
    assert t.shape == (2, 65, 65, 64)
    work = ConvWork.of_step(step_of(case))
    assert first.flops + second.flops == 2 * work.flops
    assert first.nbytes + second.nbytes == site_of(case).nbytes(work)


@pytest.mark.parametrize(
    ("shape", "is_unfused"),
    [
        (ConvShape("up_conv", 32, 512, 512, 8), True),
        (ConvShape("up_conv", 64, 512, 512, 1), False),
        (ConvShape("up_conv", 64, 512, 512, 2), True),
        (ConvShape("up_conv", 64, 512, 512, 3), False),
        (ConvShape("up_conv", 128, 512, 256, 1), False),
        (ConvShape("up_conv", 128, 512, 256, 8), True),
        (ConvShape("up_conv", 256, 256, 128, 2), False),
        (ConvShape("up_conv", 256, 256, 128, 8), True),
        (ConvShape("up_conv", 512, 128, 64, 8), False),
        (ConvShape("up_conv", 128, 512, 96, 8), False),
        (ConvShape("up_conv", 16, 512, 512, 32), False),
        (ConvShape("conv", 128, 512, 256, 8), False),
    ],
    ids=lambda value: f"{value.title}, batch {value.batch}" if isinstance(value, ConvShape) else None,
)
def test_shapes_whose_tiles_fill_the_gpu_are_unfused(shape: ConvShape, is_unfused: bool) -> None:
    found = unfused_geometries(shape, *H200_LIMITS)
    assert (found is not None) == is_unfused
    assert unfused_geometries(shape, 132, 100_000) is None


@pytest.mark.parametrize(
    ("shape", "warps", "strip"),
    [
        (ConvShape("up_conv", 64, 512, 512, 8, "fp8"), 12, (16, 2)),
        (ConvShape("up_conv", 64, 512, 512, 1, "fp8"), 8, (8, 1)),
        (ConvShape("up_conv", 128, 512, 256, 1, "fp8"), 12, (8, 2)),
        (ConvShape("up_conv", 256, 128, 64, 1, "fp8"), 12, (8, 2)),
    ],
    ids=lambda value: f"{value.title}, batch {value.batch}" if isinstance(value, ConvShape) else None,
)
def test_all_that_read_e4m3_are_unfused_in_blocks_for_their_number(
    shape: ConvShape, warps: int, strip: tuple[int, int]
) -> None:
    found = unfused_geometries(shape, *H200_LIMITS)
    assert found is not None
    products, filtering = found
    assert products.warps == warps
    assert (filtering.rows, filtering.columns) == strip
    assert products.dynamic_nbytes + products.static_nbytes <= H200_LIMITS[1]
    assert unfused_geometries(shape, 132, 100_000) is None


@pytest.mark.parametrize(("side", "cout", "batch"), [(64, 512, 8), (256, 128, 1), (36, 24, 3), (20, 136, 2)])
def test_tiles_and_blocks_cover_the_picture_and_fit_a_multiprocessor(side: int, cout: int, batch: int) -> None:
    products, filtering = geometries(ConvShape("up_conv", side, 64, cout, batch))
    positions = side // 2 + 1
    across, down = -(-positions // products.columns), -(-positions // products.rows)
    assert products.tiles == across * down * -(-cout // products.channels) * batch
    assert products.rows * products.columns <= 16 * products.warps
    assert products.dynamic_nbytes + products.static_nbytes <= H200_LIMITS[1]
    columns, channels, pictures = filtering.grid
    assert columns == -(-side // filtering.width) * -(-side // filtering.rows)
    assert channels * filtering.depth >= cout
    assert pictures == batch
    block_nbytes = filtering.dynamic_nbytes + filtering.static_nbytes
    assert filtering.min_blocks * (block_nbytes + 1024) - 1024 <= H200_LIMITS[1]


def site_on(case: ConvCase, batch: int) -> tuple[ConvWork, ConvSite]:
    return ConvWork.of_step(step_of(case)), replace(site_of(case), batch=batch)


def test_a_single_picture_gets_the_kernels_of_a_batch_where_those_are_checked() -> None:
    case = ConvCase(512, 256, 128, fir=FOUR, half=True)
    single, batch = site_on(case, 1), site_on(case, 8)
    checked, chosen = unfused_choice(*single, target_of_batch(H200, 8)), unfused_choice(*batch, H200)
    assert checked is not None
    assert chosen is not None
    assert unfused_recipes(*single, *checked) == unfused_recipes(*batch, *chosen)
    assert checked[0].tiles * 8 == chosen[0].tiles
    assert unfused_choice(*single, H200) is None


@pytest.mark.parametrize("batch", [1, 2, 8])
def test_every_up_convolution_that_reads_e4m3_has_a_kernel(batch: int) -> None:
    shapes = {(512, 512, 64), (512, 256, 128), (128, 64, 256), (128, 64, 512), (64, 32, 1024), (32, 16, 1024)}
    for cin, cout, side in shapes:
        case = ConvCase(cin, cout, side, batch=batch, fir=FOUR, half=True, fp8="xy")
        work, site = ConvWork.of_step(step_of(case)), site_of(case)
        streaming, unfused = streaming_choice(work, site, H200), unfused_choice(work, site, H200)
        assert (streaming is not None) == (cin <= 128 and batch * side**2 >= 4 * 256**2)
        assert streaming is not None or unfused is not None, f"{cin} to {cout} at {side}"


@pytest.mark.parametrize("change", ["filter", "fp32", "architecture", "streams"])
def test_other_layers_and_gpus_keep_one_kernel(change: str) -> None:
    case = ConvCase(512, 256, 128, fir=filter_taps(4) if change == "filter" else FOUR, half=change != "fp32")
    target = H200
    if change == "architecture":
        target = replace(H200, architecture="sm_90")
    elif change == "streams":
        target = replace(H200, streams=False)
    assert unfused_choice(*site_on(case, 8), target) is None


@pytest.fixture
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small pictures of few channels be unfused, too."""
    for name in ("_LEAST_CHANNELS", "_MANY_CHANNELS", "_LEAST_SHARE"):
        monkeypatch.setattr(unfused_tile, name, 0)


def schedules(target: Target = H200) -> tuple[Schedule, Schedule]:
    """Two up-convolutions in two kernels, among others; and the plain schedule."""
    model = make_stylegan2(resolution=64, channel_base=4096, channel_max=64)
    plan = build_synthesis_plan(model.spec, "model", batch=2, precision="fp16")
    return lower(plan, model.weights, target), lower(plan, model.weights, target, everything_plain=True)


@pytest.mark.usefixtures("_any_size")
def test_a_plan_has_both_kernels_and_adds_up_pictures_beside_the_second() -> None:
    fused, _ = schedules()
    launches = [launch for launch in fused.launches if launch.label in ("transposed_conv", "up_filter")]
    layers = [(launch.layer, launch.label, launch.pictures) for launch in launches]
    assert layers == [
        ("synthesis.b32.conv0", "transposed_conv", ()),
        ("synthesis.b32.conv0", "up_filter", ("synthesis.b16.torgb",)),
        ("synthesis.b64.conv0", "transposed_conv", ()),
        ("synthesis.b64.conv0", "up_filter", ("synthesis.b32.torgb",)),
    ]
    regions = {region.name: region for region in fused.regions}
    for launch in launches:
        named = [regions[name] for name in launch.region_names]
        assert any(region.name.endswith("/t") for region in named)
        places = sorted((region.offset, region.offset + region.nbytes) for region in named)
        assert all(end <= start for (_, end), (start, _) in pairwise(places)), "regions of a kernel overlap"


@pytest.mark.usefixtures("_any_size")
def test_the_output_of_the_second_is_observed() -> None:
    fused, _ = schedules()
    regions = {region.name: region for region in fused.regions}
    steps = {(step.layer, step.op): step for step in fused.plan.steps}
    first, second = (launch for launch in fused.launches if launch.layer == "synthesis.b64.conv0")
    step = steps[first.layer, first.op]
    assert observe_conv(step, first, regions) is None
    observation = observe_conv(step, second, regions)
    assert observation is not None
    assert (observation.shape, observation.dtype) == ((2, 64, 64, 64), "float16")
    assert set(observation.changes) == {"y", "next_style"}


@pytest.mark.usefixtures("_any_size")
def test_the_second_kernel_is_checked_with_the_first() -> None:
    fused, plain = schedules(replace(H200, adds_pictures=False))
    pair = ["transposed_conv", "up_filter"]
    both = {launch.recipe for launch in fused.launches if launch.label in pair}
    second = {recipe for recipe in both if recipe.stem == "up_filter"}
    assert both <= doubtful_recipes(fused, plain)
    for wanted in (both, second):
        log: list[str] = []
        assert judged(fused, plain, wanted, fused_log=log) == dict.fromkeys(wanted, "")
        assert [entry.split()[1] for entry in log] == 2 * pair
    verdicts = judged(fused, plain, both, offset=0.5)
    assert {recipe.stem for recipe, why in verdicts.items() if why} == {"up_filter"}


def test_a_lane_stores_eight_neighbouring_channels() -> None:
    order = channel_order(64)
    assert sorted(order) == list(range(64))
    for quarter in range(4):
        for part in (0, 1):
            held = [order[8 * n + 2 * quarter + b] for n in range(4 * part, 4 * part + 4) for b in (0, 1)]
            assert held[0] == 32 * part + 8 * quarter
            assert np.diff(held).tolist() == [1] * 7


def test_every_tap_is_a_product() -> None:
    assert sorted(TAP_ORDER) == list(range(9))
