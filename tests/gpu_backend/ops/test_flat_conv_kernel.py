"""Convolutions as flat matrix products against the reference; how it divides its work, where it is chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import shape_of
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.conv_arguments import Weights
from gpu_backend.cuda.launches.conv_op import observe_conv
from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork
from gpu_backend.cuda.launches.flat_conv import flat_choice, flat_conv, flat_recipe
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.running.self_check import doubtful_recipes
from gpu_backend.cuda.schedule import Built, TensorMap
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.kernels.conv_tile import ConvKind, ConvShape, Operands
from gpu_backend.ops.kernels.e4m3 import padded_channels
from gpu_backend.ops.kernels.flat_tile import FlatGeometry, flat_geometry
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from tests.helpers.conv_cases import H200, ConvCase, Flavour, check_case, site_of, step_of, weights_of
from tests.helpers.gpu import target_of
from tests.helpers.kept_kernels import frontend_log, statistics_of
from tests.helpers.kernel_checks import assert_compiles

H200_LIMITS = (132, 232448)
FLAT = ConvCase(102, 72, 52, batch=2, kernel=1, noise="none", half=True, act=BiasAct())
BROAD = replace(FLAT, cin=140, cout=200, side=37)
NARROW = replace(FLAT, cin=8, cout=9, side=5, is_styled=False)
DEEP = replace(FLAT, cin=400, cout=180, side=23, batch=1)
PADDED = replace(FLAT, kernel=3, padding=2, side=38)
BARE = replace(BROAD, kernel=3, padding=0, side=21)
CASES: tuple[tuple[ConvCase, dict[str, Any]], ...] = (
    (FLAT, {"pixels": 128, "channels": 72, "depth": 64, "stages": 3, "tiles_per_block": 5}),
    (FLAT, {"pixels": 256, "channels": 40, "depth": 32, "stages": 2, "tiles_per_block": 3, "stores": 2}),
    (FLAT, {"pixels": 256, "channels": 24, "depth": 64, "stages": 2, "tiles_per_block": 4, "weights_in_smem": True}),
    (FLAT, {"pixels": 64, "channels": 48, "depth": 32, "stages": 4, "warpgroups": 1}),
    (FLAT, {"pixels": 192, "channels": 72, "depth": 16, "stages": 5, "warpgroups": 3, "tiles_per_block": 2}),
    (BROAD, {"pixels": 256, "channels": 104, "depth": 64, "stages": 2, "tiles_per_block": 2, "weights_in_smem": True}),
    (BROAD, {"pixels": 128, "channels": 200, "depth": 32, "stages": 3, "tiles_per_block": 11}),
    (BROAD, {"pixels": 128, "channels": 256, "depth": 64, "stages": 3}),
    (BROAD, {"pixels": 256, "channels": 176, "depth": 64, "stages": 3, "tiles_per_block": 2}),
    (NARROW, {"pixels": 64, "channels": 16, "depth": 16, "stages": 1, "warpgroups": 1}),
    (NARROW, {"pixels": 256, "channels": 64, "depth": 64, "stages": 2, "weights_in_smem": True, "stores": 2}),
    (DEEP, {"pixels": 128, "channels": 96, "depth": 64, "stages": 5}),
    (DEEP, {"pixels": 256, "channels": 208, "depth": 32, "stages": 5, "tiles_per_block": 3}),
    (PADDED, {"pixels": 128, "channels": 72, "depth": 64, "stages": 3, "tiles_per_block": 5}),
    (PADDED, {"pixels": 256, "channels": 40, "depth": 32, "stages": 4, "tiles_per_block": 2, "stores": 2}),
    (PADDED, {"pixels": 192, "channels": 24, "depth": 16, "stages": 5, "warpgroups": 3, "weights_in_smem": True}),
    (BARE, {"pixels": 64, "channels": 104, "depth": 64, "stages": 2, "warpgroups": 1, "tiles_per_block": 2}),
    (BARE, {"pixels": 256, "channels": 176, "depth": 64, "stages": 3}),
    (replace(NARROW, kernel=3, padding=1), {"pixels": 128, "channels": 16, "depth": 32, "stages": 3}),
)
"""Ragged channels and pixels: tiles reach over the end of both, and the last step has fewer channels."""
IN_FP8 = tuple((replace(case, fp8="x"), {**choices, "depth": 2 * choices["depth"]}) for case, choices in CASES)


def label(value: object) -> str:
    """Name of a case or its choices among parameters."""
    return "-".join(f"{name}{int(number)}" for name, number in value.items()) if isinstance(value, dict) else str(value)


def geometry_of(case: ConvCase, choices: dict[str, Any]) -> FlatGeometry:
    """Divide a case, as choices say."""
    work, site = ConvWork.of_step(step_of(case)), site_of(case)
    kind: ConvKind = "conv1x1" if work.kernel == 1 else "conv"
    shape = ConvShape(kind, work.side, site.cin(work), work.cout, site.batch, site.operands)
    return FlatGeometry(shape, **choices)


def flavour_of(case: ConvCase, choices: dict[str, Any]) -> Flavour:
    """The kernel with these choices."""

    def build(work: ConvWork, site: ConvSite, weights: Weights, target: Target) -> Built:
        geometry = geometry_of(case, choices)
        assert geometry.fits(target.shared_nbytes_per_block), "the tile does not fit the case"
        return flat_conv(work, replace(site, y_raw=None), weights, geometry)

    return Flavour(build, build, (1, 3), (), {True: 4e-2 if case.fp8 else 4e-3})


@pytest.mark.gpu
@pytest.mark.parametrize(("case", "choices"), CASES + IN_FP8, ids=label)
def test_a_flat_product_equals_the_reference(case: ConvCase, choices: dict[str, Any], gpu: Gpu) -> None:
    target = target_of(gpu)
    if target.architecture != "sm_90a":
        pytest.skip("the kernel is for Hopper")
    check_case(flavour_of(case, choices), case, target)


@pytest.mark.parametrize(("case", "choices"), CASES + IN_FP8, ids=label)
def test_the_divisions_fit_their_cases_on_an_h200(case: ConvCase, choices: dict[str, Any]) -> None:
    built = flavour_of(case, choices).conv(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), H200)
    (launch,) = built.launches
    assert isinstance(launch.arguments["tma_map"], TensorMap)
    assert set(launch.arguments) == set(launch.recipe.parameters.names or ())
    across, blocks, pictures = launch.grid
    geometry = geometry_of(case, choices)
    assert across * geometry.tiles_per_block * geometry.pixels >= case.side**2
    assert blocks * geometry.channels >= case.cout
    assert pictures == case.batch


@pytest.mark.parametrize(("case", "choices"), [CASES[1], CASES[3], CASES[4], CASES[8], CASES[12], IN_FP8[2]], ids=label)
def test_it_compiles_without_spills(case: ConvCase, choices: dict[str, Any]) -> None:
    built = flavour_of(case, choices).conv(ConvWork.of_step(step_of(case)), site_of(case), weights_of(case), H200)
    (launch,) = built.launches
    assert_compiles(launch.recipe, "sm_90a", launch.block[0], is_heavy=False)


@pytest.mark.parametrize(("case", "choices"), [CASES[4], CASES[12], IN_FP8[2]], ids=label)
def test_it_declares_no_more_shared_memory_than_its_geometry_counts(case: ConvCase, choices: dict[str, Any]) -> None:
    geometry = geometry_of(case, choices)
    recipe = flat_recipe(ConvWork.of_step(step_of(case)), site_of(case), geometry)
    declared = statistics_of(recipe, "sm_90a").shared_nbytes
    assert geometry.static_nbytes - 128 <= declared <= geometry.static_nbytes


def test_a_division_that_is_counted_otherwise_than_the_kernel_does_is_refused() -> None:
    case, choices = CASES[4]
    recipe = flat_recipe(ConvWork.of_step(step_of(case)), site_of(case), geometry_of(case, choices))
    other = {**dict(recipe.defines), "LOOP_NBYTES": str(geometry_of(case, choices).loop_nbytes - 16)}
    log = frontend_log(replace(recipe, defines=tuple(other.items())), "sm_90a")
    assert "stages and store lie in the launch's shared memory" in log


SHAPES_3X3 = (
    (54, 512, 512),
    (54, 1024, 1024),
    (86, 1024, 1024),
    (150, 512, 512),
    (150, 512, 328),
    (150, 1024, 864),
    (150, 864, 728),
    (150, 728, 616),
    (150, 616, 512),
    (278, 512, 432),
    (278, 432, 368),
    (534, 256, 216),
    (534, 216, 184),
    (534, 184, 152),
    (1046, 128, 112),
)
R_SHAPES = (
    (36, 1024, 1024),
    (52, 1024, 1024),
    (84, 1024, 1024),
    (148, 1024, 1024),
    (148, 1024, 648),
    (276, 648, 408),
    (276, 408, 256),
    (532, 256, 168),
    (1044, 168, 104),
    (1044, 104, 64),
)


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("operands", ["fp16", "fp8"])
@pytest.mark.parametrize(
    ("kind", "side", "cin", "cout"),
    [
        *(("conv1x1", *shape) for shape in (*R_SHAPES, (90, 300, 500), (257, 65, 16), (120, 2000, 9))),
        *(("conv", *shape) for shape in (*SHAPES_3X3, (200, 700, 500), (300, 1024, 256))),
    ],
)
def test_a_shape_is_divided_among_all_multiprocessors(
    kind: ConvKind, side: int, cin: int, cout: int, operands: Operands, batch: int
) -> None:
    in_memory = padded_channels(cin) if operands == "fp8" else pad8(cin)
    shape = ConvShape(kind, side, in_memory, pad8(cout), batch, operands)
    geometry = flat_geometry(shape, *H200_LIMITS)
    assert geometry is not None
    assert geometry.fits(H200_LIMITS[1])
    across, blocks, pictures = geometry.grid
    assert across * geometry.tiles_per_block >= geometry.tiles
    assert (across - 1) * geometry.tiles_per_block < geometry.tiles
    assert geometry.tiles * geometry.pixels >= side**2
    assert blocks * geometry.channels >= shape.cout
    assert across * blocks * pictures >= H200_LIMITS[0] / 2
    assert (geometry.chunks - 1) * geometry.depth < shape.cin <= geometry.chunks * geometry.depth
    assert 1 <= geometry.last_products <= geometry.row_nbytes // 32


@pytest.mark.parametrize(
    "shape",
    [
        ConvShape("conv", 278, 328, 208, 1),
        ConvShape("conv", 278, 208, 128, 1),
        ConvShape("conv", 534, 152, 128, 1),
        ConvShape("conv", 1046, 112, 96, 1),
        ConvShape("conv", 38, 1024, 1024, 1),
        ConvShape("up_conv", 256, 512, 512, 1),
        ConvShape("conv1x1", 148, 1024, 1024, 1, "tf32"),
        ConvShape("conv1x1", 1044, 64, 64, 1),
        ConvShape("conv1x1", 8, 512, 512, 1),
    ],
    ids=lambda shape: shape.title,
)
def test_shapes_that_another_kernel_computes_faster_are_not_flat(shape: ConvShape) -> None:
    assert flat_geometry(shape, *H200_LIMITS) is None


def test_a_gpu_with_too_little_shared_memory_has_no_flat_products() -> None:
    assert flat_geometry(ConvShape("conv1x1", 148, 1024, 1024, 1), 132, 20_000) is None


def test_a_measured_division_that_does_not_fit_gives_way_to_another() -> None:
    shape = ConvShape("conv1x1", 148, 1024, 1024, 1)
    usual, least = flat_geometry(shape, *H200_LIMITS), flat_geometry(shape, 132, 120_000)
    assert usual is not None
    assert least is not None
    assert least.dynamic_nbytes + least.static_nbytes <= 120_000 < usual.dynamic_nbytes


@pytest.mark.parametrize(
    ("changes", "site_changes"),
    [
        ({"kernel": 5, "padding": 2}, {}),
        ({"padding": 1}, {}),
        ({"act": BiasAct.of_layer("lrelu")}, {}),
        ({"act": replace(BiasAct(), clamp=1.0)}, {}),
        ({"noise": "stored"}, {}),
        ({"rgb": 3}, {}),
        ({"half": False}, {}),
        ({"fp8": "xy"}, {}),
        ({}, {"y_raw": "y_raw"}),
        ({}, {"y": None}),
    ],
    ids=str,
)
def test_a_convolution_with_another_epilogue_is_not_flat(changes: dict[str, Any], site_changes: dict[str, Any]) -> None:
    case = replace(FLAT, cin=1024, cout=1024, side=148, batch=1)
    work, site = ConvWork.of_step(step_of(case)), replace(site_of(case), y_raw=None)
    assert flat_choice(work, site, H200) is not None
    assert flat_choice(work, site, replace(H200, streams=False)) is None
    assert flat_choice(work, site, replace(H200, architecture="sm_90")) is None
    other = replace(case, **changes)
    site = replace(site_of(other), **{"y_raw": None, **site_changes})
    assert flat_choice(ConvWork.of_step(step_of(other)), site, H200) is None


def test_copies_of_a_3x3_convolution_have_the_inputs_of_successive_outputs() -> None:
    case = replace(FLAT, cin=512, cout=512, side=150, batch=1, kernel=3, padding=2)
    work, site = ConvWork.of_step(step_of(case)), replace(site_of(case), y_raw=None)
    geometry = flat_choice(work, site, H200)
    assert geometry is not None
    (launch,) = flat_conv(work, site, weights_of(case), geometry).launches
    copies = launch.arguments["tma_map"]
    assert isinstance(copies, TensorMap)
    assert (copies.extents, copies.box, copies.bounds) == ((512, 148, 148, 1), (64, 1, 256), ((-2, -2), (0, 0)))
    assert flat_choice(work, site, replace(H200, fuses_epilogues=False)) is None


def test_a_stylegan3_r_is_mostly_flat_products_and_its_self_check_compares_them() -> None:
    spec = replace(shape_of("r256"), maximum=256)
    model = random_model(spec)
    plan = build_plan(model.spec, PlanKey("model", "synthesis", 1, model.spec.resolution, "fp16"))
    fused, plain = lower(plan, model.weights, H200), lower(plan, model.weights, H200, everything_plain=True)
    flat = {launch.recipe for launch in fused.launches if launch.label == "flat_conv"}
    assert len(flat) >= 3
    assert flat <= doubtful_recipes(fused, plain)
    launch = next(launch for launch in fused.launches if launch.label == "flat_conv")
    steps = {(step.layer, step.op): step for step in plan.steps}
    regions = {region.name: region for region in fused.regions}
    observation = observe_conv(steps[launch.layer, launch.op], launch, regions)
    assert observation is not None
    assert set(observation.changes) == {"y", "next_style"}
