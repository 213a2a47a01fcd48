"""What a StyleGAN1's plan becomes on a GPU, as data."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import shape_of
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.launches.style_layout import StyleLayout
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.cuda.schedule import Address, Schedule
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target, target_of_batch
from gpu_backend.cuda.tuning.isolated_conv import FusedExtras, IsolatedConvs
from gpu_backend.model.model import Model
from gpu_backend.plan import fusion
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import Plan, PlanKey, Precision
from tests.helpers.kernel_checks import assert_arguments_fit
from tests.helpers.stylegan1 import for_rosinality, make_stylegan1

MODEL = make_stylegan1(resolution=128, channel_base=1024, channel_max=20)
SMALL = make_stylegan1(resolution=16, channels={8: 5})
TARGET = Target("sm_90a", 132, 232448, TileTable("sm_90a", 132, shared_nbytes_per_block=232448))
UNFOLDED = replace(TARGET, folds=False)
BOTH = pytest.mark.parametrize("model", [MODEL, SMALL], ids=["large", "small"])


@pytest.fixture(autouse=True)
def _small_layers_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "LEAST_FOLDED_SIDE", 128)


def plan_of(model: Model, precision: Precision = "fp16", **fields: Any) -> Plan:
    key = {"batch": 1, "resolution": model.spec.resolution} | fields
    return build_plan(model.spec, PlanKey("model", "synthesis", precision=precision, **key))


def schedule_of(model: Model, precision: Precision = "fp16", **settings: Any) -> Schedule:
    return lower(plan_of(model, precision), model.weights, TARGET, **settings)


def labels(schedule: Schedule) -> list[str]:
    return [launch.label for launch in schedule.launches]


def test_a_layer_is_a_convolution_and_its_normalisation() -> None:
    schedule = schedule_of(MODEL)
    small = ["modulated_up_conv", "modulated_conv", "adain"]  # of 8 x 8: a block of the first has the whole picture
    block = ["modulated_up_conv", "adain", "modulated_conv", "adain"]
    last = ["modulated_up_conv", "fold_adain", "modulated_conv", "adain"]
    assert labels(schedule) == ["styles", "adain_input", "modulated_conv", *small, *block * 3, *last]
    assert all(launch.is_fused and not launch.reason for launch in schedule.launches)


def test_a_convolution_whose_blocks_have_whole_pictures_normalises_them() -> None:
    schedule = schedule_of(MODEL)
    regions = {region.name for region in schedule.regions}
    own = [launch for launch in schedule.launches if ("NORMALISES", "1") in launch.recipe.defines]
    assert own[0].layer == "synthesis.b4.conv1"
    for launch in own:
        layer = launch.layer.removeprefix("synthesis.")
        assert launch.grid[0] == 1
        assert launch.arguments["y"] == Address(layer, "region")
        assert launch.arguments["moments"] is None
        assert launch.arguments["channels"] == np.int32(20)
        assert not {f"{layer}/moments", f"{layer}/activated"} & regions


def test_the_normalisation_of_the_last_layer_makes_the_picture() -> None:
    schedule = schedule_of(MODEL)
    assert not {"b128.conv1", "b128.conv1/rgb"} & {region.name for region in schedule.regions}
    last = schedule.launches[-1]
    assert (last.label, last.pictures, last.optional) == ("adain", ("synthesis.b128.torgb",), ("image",))
    for name in ("image", "pixels", "flags"):
        assert last.arguments[name] == Address(name, "region")


def test_a_picture_of_more_channels_than_a_block_has_is_made_of_parts() -> None:
    model = make_stylegan1(resolution=8, channels={8: 72})
    schedule = schedule_of(model)
    assert labels(schedule)[-2:] == ["adain", "to_rgb"]
    (parts,) = [region for region in schedule.regions if region.name == "b8.conv1/rgb"]
    last = schedule.launches[-2]
    assert parts.shape == (last.grid[1], 1, 8, 8, 3)
    assert schedule.launches[-1].arguments["part_count"] == np.int32(last.grid[1])


def test_a_wide_up_convolution_streams_and_sums_its_moments() -> None:
    model = make_stylegan1(resolution=512, channel_base=4096, channel_max=16)
    schedule = schedule_of(model)
    (launch,) = [launch for launch in schedule.launches if launch.label == "streaming_up_conv"]
    assert launch.layer == "synthesis.b512.conv0"
    assert ("HAS_MOMENTS", "1") in launch.recipe.defines
    for launch in schedule.launches:
        assert_arguments_fit(launch, schedule.regions, schedule.constants)


def test_a_convolution_passes_the_moments_of_its_blocks_to_the_normalisation() -> None:
    schedule = schedule_of(MODEL)
    regions = {region.name: region for region in schedule.regions}
    normalised = [launch for launch in schedule.launches if launch.label in ("adain", "fold_adain")]
    before = [launch for launch in schedule.launches if isinstance(launch.arguments.get("strengths"), Address)]
    before = [launch for launch in before if ("NORMALISES", "0") in launch.recipe.defines]
    for conv, normal in zip(before, normalised, strict=True):
        assert conv.layer == normal.layer
        calls = normal.arguments["moments"]
        assert isinstance(calls, Address)
        assert calls in conv.arguments.values()
        names = ("parts", "part_rows", "part_columns", "side", "cout" if normal.label == "adain" else "cin")
        parts, rows, columns, side, cout = (int(normal.arguments[name]) for name in names)  # type: ignore[arg-type]
        assert regions[calls.name].shape == (1, parts, cout, 2)
        assert parts == conv.grid[0] == -(-side // rows) * -(-side // columns)


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
@pytest.mark.parametrize(
    "model",
    [MODEL, SMALL, for_rosinality(), make_stylegan1(use_noise=False)],
    ids=["large", "small", "blurs", "silent"],
)
@pytest.mark.parametrize("is_plain", [False, True])
def test_arguments_fit_the_kernels(model: Model, precision: Precision, is_plain: bool) -> None:
    schedule = schedule_of(model, precision, everything_plain=is_plain)
    for launch in schedule.launches:
        assert_arguments_fit(launch, schedule.regions, schedule.constants)


@BOTH
def test_plain_kernels_share_the_regions_of_fused_ones(model: Model) -> None:
    fused, plain = schedule_of(model), schedule_of(model, everything_plain=True)
    shapes = {region.name: (region.shape, region.dtype) for region in plain.regions}
    for region in fused.regions:
        if region.name in shapes and not region.name.endswith("/rgb"):  # moments are nobody's but fused kernels'
            assert shapes[region.name] == (region.shape, region.dtype), region.name
    assert {"plain_adain_moments", "plain_adain", "plain_modulated_conv", "plain_modulated_up_conv"} <= set(
        labels(plain)
    )
    assert not {"adain", "modulated_conv", "modulated_up_conv"} & set(labels(plain))
    assert not [region.name for region in plain.regions if region.name.endswith("/moments")]


@BOTH
@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_every_layer_has_its_own_styles_and_noise(model: Model, precision: Precision) -> None:
    schedule = schedule_of(model, precision, everything_plain=True)
    layout = StyleLayout(next(step for step in schedule.plan.steps if step.op == "styles").attributes)
    layers = [layer for layer in model.spec.layers if layer.kind != "to_rgb"]
    for place, layer in enumerate(layers):
        named = [
            argument
            for launch in schedule.launches
            if launch.layer == f"synthesis.{layer.name}"
            for argument in launch.arguments.values()
            if isinstance(argument, Address)
        ]
        (styles,) = [argument.offset // 4 for argument in named if argument.name == "styles"]
        (gain,) = [argument.offset // 4 for argument in named if argument.name == "noise_gain"]
        assert styles == layout.style_offset(layer.name)
        assert gain == place


@pytest.mark.parametrize("label", ["adain", "modulated_conv", "modulated_up_conv"])
def test_a_layer_one_of_whose_kernels_failed_is_plain(label: str) -> None:
    usual = lower(plan_of(MODEL), MODEL.weights, UNFOLDED)
    failed = [launch.recipe for launch in usual.launches if launch.label == label][-1]
    schedule = lower(plan_of(MODEL), MODEL.weights, UNFOLDED, plain={failed.digest: "it was off"})
    stands_in = [launch for launch in schedule.launches if launch.reason]
    assert {launch.reason for launch in stands_in} == {"it was off"}
    layers = {launch.layer for launch in usual.launches if launch.recipe == failed}
    for layer in layers:
        own = [launch.label for launch in schedule.launches if launch.layer == layer]
        assert own[:3] == [own[0], "plain_adain_moments", "plain_adain"]
        assert own[0] in ("plain_modulated_conv", "plain_modulated_up_conv")
    assert {launch.layer for launch in stands_in} - {"synthesis.b128.torgb"} == layers
    assert failed not in schedule.recipes
    for launch in schedule.launches:
        assert_arguments_fit(launch, schedule.regions, schedule.constants)


def test_weights_take_in_the_normalisation_of_the_layer_that_they_alone_read() -> None:
    schedule = schedule_of(MODEL)
    regions = {region.name: region for region in schedule.regions}
    fold, conv = schedule.launches[-3:-1]
    assert (fold.layer, conv.layer) == ("synthesis.b128.conv0", "synthesis.b128.conv1")
    assert fold.arguments["y"] is None
    assert "b128.conv0" not in regions
    assert conv.arguments["x"] == Address("b128.conv0/activated", "region")
    assert conv.arguments["weight"] == fold.arguments["folded"]
    assert conv.arguments["tap_sums"] == fold.arguments["tap_sums"]
    tile = dict(conv.recipe.defines)
    channels, depth = int(tile["CHANNELS"]), int(tile["DEPTH"])
    assert (fold.recipe.defines[2:]) == (("CHANNELS", tile["CHANNELS"]), ("DEPTH", tile["DEPTH"]))
    assert regions["b128.conv0/weight"].shape == (-(-8 // channels), -(-8 // depth), 9, channels, depth)
    rows, columns = int(fold.arguments["rows"]), int(fold.arguments["columns"])  # type: ignore[arg-type]
    (weight,) = [item.make() for item in schedule.constants if item.key.startswith("by_tap/")]
    assert weight.shape == (9, rows, columns)
    assert columns >= depth * int(fold.arguments["steps"])  # type: ignore[arg-type]
    assert not weight[:, 8:].any()
    assert not weight[:, :, 8:].any()
    stored = MODEL.weights["synthesis.b128.conv1.weight"]
    scale = np.float32(np.sqrt(2 / (9 * 8)) * 2.0 ** -weight_exponent(stored, float(np.sqrt(2 / (9 * 8)))))
    assert np.allclose(weight[5, :8, :8], stored[:, :, 1, 2] * scale, rtol=1e-6)


@pytest.mark.parametrize(
    ("plan", "target"),
    [
        (plan_of(MODEL, batch=2), TARGET),
        (plan_of(MODEL, "tf32"), TARGET),
        (plan_of(MODEL, tap="b128.conv0"), TARGET),
        (plan_of(MODEL, resolution=64), TARGET),
        (plan_of(MODEL), UNFOLDED),
        (plan_of(MODEL), target_of_batch(TARGET, 8)),
    ],
    ids=["batch", "tf32", "tap", "draft", "tuning", "checked for a batch"],
)
def test_other_layers_are_normalised_in_memory(plan: Plan, target: Target) -> None:
    assert "fold_adain" not in labels(lower(plan, MODEL.weights, target))


@pytest.mark.parametrize("place", [-3, -2, -1], ids=["fold", "convolution", "normalisation"])
def test_a_layer_is_normalised_in_memory_where_a_kernel_failed_that_would_fold_it(place: int) -> None:
    failed = schedule_of(MODEL).launches[place].recipe
    schedule = schedule_of(MODEL, plain={failed.digest: "it was off"})
    own = [launch.label for launch in schedule.launches if launch.layer == "synthesis.b128.conv0"]
    assert own[-1] in ("adain", "plain_adain")
    assert "fold_adain" not in labels(schedule)
    assert failed not in schedule.recipes
    for launch in schedule.launches:
        assert_arguments_fit(launch, schedule.regions, schedule.constants)


def test_a_layer_that_is_shown_is_stored() -> None:
    schedule = lower(plan_of(MODEL, tap="b128.conv1"), MODEL.weights, TARGET)
    (shown,) = [region for region in schedule.regions if region.name == "b128.conv1"]
    assert shown.shape == (1, 128, 128, 8)
    assert shown.dtype == "float16"


@BOTH
def test_scratch_that_is_used_at_a_time_does_not_overlap(model: Model) -> None:
    for schedule in (schedule_of(model), schedule_of(model, everything_plain=True)):
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


def test_weights_of_any_size_are_packed_near_one_and_given_back() -> None:
    weights = {**MODEL.weights}
    name = "synthesis.b128.conv1.weight"
    weights[name] = weights[name] * np.float32(2.0**-30)
    schedule = lower(plan_of(MODEL), weights, UNFOLDED)
    launch = next(item for item in schedule.launches if item.layer == "synthesis.b128.conv1")
    constants = {item.key: item.make() for item in schedule.constants}
    packed, given_back = (
        constants[argument.name]
        for argument in (launch.arguments["weight"], launch.arguments["demod"])
        if isinstance(argument, Address)
    )
    assert 1 <= np.abs(packed).max() < 2
    largest = float(np.abs(weights[name]).max()) * np.sqrt(2 / (9 * 8))
    assert float(np.abs(packed).max()) * given_back[0] == pytest.approx(largest, rel=1e-3)
    assert launch.arguments["demod_stride"] == np.int32(0), "the constant has no sample to step over"


def test_the_large_public_network_runs_fused_in_few_kernels() -> None:
    model = random_model(shape_of("adain1024"))
    schedule = lower(plan_of(model), model.weights, replace(TARGET, tiles=TileTable.load("sm_90a", 132, 232448)))
    assert not [launch.layer for launch in schedule.launches if launch.reason]
    assert len(schedule.launches) == 32
    assert schedule.nbytes < 100e6
    steps = sum(step.flops for step in schedule.plan.steps if step.op != "to_display")
    assert sum(launch.flops for launch in schedule.launches) == pytest.approx(steps, rel=0.01)


def test_its_convolutions_can_be_tuned() -> None:
    convs = IsolatedConvs([plan_of(MODEL)], MODEL.weights, TARGET)
    assert {shape.kind for shape in convs.shapes} == {"conv", "up_conv"}
    extras = FusedExtras.of(MODEL.spec)
    assert extras == FusedExtras(taps=4, picture_channels=0, has_moments=True)
    for shape in convs.shapes:
        stem = "modulated_up_conv" if shape.kind == "up_conv" else "modulated_conv"
        tile, _ = extras.explain(TARGET.tiles, shape)
        assert convs.fused(shape, tile).launch.label == stem
        assert convs.plain(shape).launch.label == f"plain_{stem}"
