"""Fused or plain: what a step becomes."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from gpu_backend.cuda.launches.gpu_op import Fused, LoweringContext, Refused
from gpu_backend.cuda.launches.lowering import choose, lower
from gpu_backend.cuda.launches.op_table import GPU_OPS
from gpu_backend.cuda.schedule import Address
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.model.model import Model
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile
from gpu_backend.ops.kernels.e4m3 import ACTIVATION_SCALE, E4M3, from_e4m3, to_e4m3
from gpu_backend.plan.arena import ALIGNMENT
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.fusion import FusedStep, fuse
from gpu_backend.plan.plan import Plan, PlanKey, Precision
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import make_stylegan3

MODEL = make_stylegan2()
TARGET = Target("sm_80", 108, 166912, TileTable("sm_80", 108, shared_nbytes_per_block=166912))


def plan_of(precision: Precision = "fp16") -> Plan:
    return build_synthesis_plan(MODEL.spec, "model", precision=precision)


def context_of(target: Target = TARGET) -> LoweringContext:
    return LoweringContext(plan_of(), MODEL.weights, target, {})


def step_of(op: str) -> FusedStep:
    return next(step for step in fuse(plan_of()) if step.main.op == op)


def test_every_step_of_a_fused_plan_has_an_operation() -> None:
    assert {step.main.op for step in fuse(plan_of())} <= GPU_OPS.keys()


def test_a_launch_names_its_operation() -> None:
    schedule = lower(plan_of(), MODEL.weights, TARGET)
    steps = {(step.layer, step.op) for step in schedule.plan.steps}
    assert all((launch.layer, launch.op) in steps for launch in schedule.launches)


def test_flags_lie_right_behind_the_pixels() -> None:
    for everything_plain in (False, True):
        schedule = lower(plan_of(), MODEL.weights, TARGET, everything_plain=everything_plain)
        regions = {region.name: region for region in schedule.regions}
        end = regions["pixels"].offset + math.prod(regions["pixels"].shape)
        assert regions["flags"].offset == -(-end // ALIGNMENT) * ALIGNMENT


@pytest.mark.parametrize("everything_plain", [False, True])
@pytest.mark.parametrize("model", [MODEL, make_stylegan1(), make_stylegan3(num_layers=4)], ids=["2", "1", "3"])
def test_regions_that_live_at_the_same_time_lie_apart_within_the_allocation(
    model: Model, everything_plain: bool
) -> None:
    plan = build_plan(model.spec, PlanKey("model", "synthesis", 2, model.spec.resolution, "fp16"))
    schedule = lower(plan, model.weights, TARGET, everything_plain=everything_plain)
    spans = {item.name: range(item.offset, item.offset + item.nbytes) for item in schedule.regions}
    assert all(span.start % ALIGNMENT == 0 and span.stop <= schedule.nbytes for span in spans.values())
    scratch = {item.name for item in schedule.regions if item.role == "scratch"}
    lasting = spans.keys() - scratch
    used: dict[str, list[int]] = {}
    for number, launch in enumerate(schedule.launches):
        for name in launch.region_names:
            used.setdefault(name, []).append(number)
    for one, other in itertools.combinations(spans, 2):
        live = one in lasting or other in lasting
        live = live or (min(used[one]) <= max(used[other]) and min(used[other]) <= max(used[one]))
        if live:
            assert spans[one].stop <= spans[other].start or spans[other].stop <= spans[one].start, (one, other)


def test_a_convolution_is_fused_and_a_failed_kernel_is_refused_with_its_reason() -> None:
    step = step_of("modulated_conv")
    choice = choose(step, context_of())
    assert isinstance(choice, Fused)
    (recipe,) = choice.recipes
    assert choose(step, replace(context_of(), failed={recipe.digest: "it was off"})) == Refused("it was off")
    assert isinstance(choose(step, replace(context_of(), failed={"another": "it was off"})), Fused)


def test_an_operation_of_one_kernel_refuses_without_a_reason() -> None:
    assert choose(step_of("styles"), context_of()) == Refused("")


def test_steps_without_a_fused_kernel_are_refused_with_a_reason() -> None:
    step = step_of("modulated_conv")
    large = replace(step.main, attributes=replace(step.main.attributes, kernel=5))
    choice = choose(replace(step, main=large), context_of())
    assert isinstance(choice, Refused)
    assert "5 x 5" in choice.reason


def test_a_bug_in_choosing_a_tile_is_not_taken_for_a_refusal() -> None:
    class BrokenTable(TileTable):
        def choose(
            self, shape: ConvShape, *, taps: int = 4, picture_channels: int = 0, has_moments: bool = False
        ) -> ConvTile:
            raise ValueError("a bug")

    broken = replace(TARGET, tiles=BrokenTable("sm_80", 108))
    with pytest.raises(ValueError, match="a bug"):
        choose(step_of("modulated_conv"), context_of(broken))


CONVS = ("modulated_conv", "modulated_up_conv")


@pytest.mark.parametrize("precision", ["tf32", "bf16x3"])
def test_fp32_activations_are_multiplied_on_tensor_cores_and_stored_as_they_are(precision: Precision) -> None:
    schedule = lower(plan_of(precision), MODEL.weights, TARGET)
    convs = [launch for launch in schedule.launches if launch.op in CONVS]
    assert convs
    macros = [dict(launch.recipe.defines) for launch in convs]
    assert all(launch.is_fused for launch in convs)
    assert {(one["HALF"], one["BF16X3"]) for one in macros} == {("0", str(int(precision == "bf16x3")))}
    assert {region.dtype for region in schedule.regions} == {"float32", "uint8", "uint32"}


def test_fp32_is_the_exact_reference_and_fuses_nothing() -> None:
    launches = lower(plan_of("fp32"), MODEL.weights, TARGET).launches
    assert {launch.label for launch in launches if launch.op in CONVS} >= {f"plain_{name}" for name in CONVS}
    assert not {launch.label for launch in launches} & set(CONVS)
    assert not any(launch.reason for launch in launches)


@pytest.mark.parametrize(("precision", "missing"), [("tf32", "tf32"), ("bf16x3", "bf16")])
def test_a_gpu_without_the_products_names_the_reason_of_its_plain_kernels(precision: Precision, missing: str) -> None:
    target = Target("sm_75", 40, 65536, TileTable("sm_75", 40))
    convs = [launch for launch in lower(plan_of(precision), MODEL.weights, target).launches if launch.op in CONVS]
    assert {launch.reason for launch in convs} == {f"the tensor cores of this GPU have no {missing}"}


@pytest.mark.parametrize("precision", ["tf32", "bf16x3"])
@pytest.mark.parametrize(
    ("model", "op"), [(make_stylegan1(), "adain_conv"), (make_stylegan3(), "filtered_lrelu")], ids=["adain", "filter"]
)
def test_steps_that_are_fused_in_fp16_alone_give_the_reason_elsewhere(
    model: Model, op: str, precision: Precision
) -> None:
    plan = build_plan(model.spec, PlanKey("model", "synthesis", 1, model.spec.resolution, precision))
    launches = [launch for launch in lower(plan, model.weights, TARGET).launches if launch.op == op]
    assert launches
    assert all("fp16 alone" in launch.reason for launch in launches if not launch.is_fused)
    assert not any(launch.is_fused for launch in launches)


HOPPER = Target("sm_90a", 132, 232448, TileTable("sm_90a", 132, shared_nbytes_per_block=232448))
LARGE = make_stylegan2(resolution=64, channel_base=2048, channel_max=32)


@pytest.mark.parametrize("everything_plain", [False, True])
def test_in_fp8_a_convolution_multiplies_what_the_up_convolution_before_stored(everything_plain: bool) -> None:
    plan = build_synthesis_plan(LARGE.spec, "model", precision="fp8")
    schedule = lower(plan, LARGE.weights, HOPPER, everything_plain=everything_plain)
    recipes = {launch.layer: launch.recipe for launch in schedule.launches if launch.label.endswith("_conv")}
    macros = {layer: dict(recipe.defines) for layer, recipe in recipes.items()}
    assert {layer for layer, one in macros.items() if one["FP8_X"] != "0"} == {"synthesis.b64.conv1"}
    assert {layer for layer, one in macros.items() if one["FP8_Y"] != "0"} == {"synthesis.b64.conv0"}
    assert {region.name for region in schedule.regions if region.dtype == E4M3} == {"b64.conv0"}
    assert {recipe.stem.startswith("plain") for recipe in recipes.values()} == {everything_plain}
    assert not any(launch.reason for launch in schedule.launches)


WIDE = make_stylegan2(resolution=64, channel_base=64 * 64, channel_max=128)


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("everything_plain", [False, True])
def test_an_up_convolution_reads_e4m3_where_a_kernel_does(everything_plain: bool, streams: bool) -> None:
    plan = build_synthesis_plan(WIDE.spec, "model", precision="fp8")
    schedule = lower(plan, WIDE.weights, replace(HOPPER, streams=streams), everything_plain=everything_plain)
    stored = {region.name for region in schedule.regions if region.dtype == E4M3}
    reads = {"b32.conv1"} if streams else set()
    between = {"b64.conv0/t"} if streams and not everything_plain else set()
    assert stored == {"b64.conv0", *reads, *between}
    launches = [launch for launch in schedule.launches if launch.layer == "synthesis.b64.conv0"]
    labels = {launch.label for launch in launches}
    kept = {"plain_modulated_up_conv"} if everything_plain else {"modulated_up_conv"}
    assert labels == ({"transposed_conv", "up_filter"} if between else kept)
    assert not any(launch.reason for launch in schedule.launches)


def test_the_packed_weight_in_fp8_is_that_of_the_plain_kernel() -> None:
    plan = build_synthesis_plan(LARGE.spec, "model", precision="fp8")
    weights = []
    for everything_plain in (False, True):
        schedule = lower(plan, LARGE.weights, HOPPER, everything_plain=everything_plain)
        (launch,) = (one for one in schedule.launches if one.layer == "synthesis.b64.conv1" and one.op in CONVS)
        key = launch.arguments["weight"]
        assert isinstance(key, Address)
        weights.append(next(one for one in schedule.constants if one.key == key.name).make())
    fused, plain = weights
    assert fused.dtype == np.dtype(E4M3)
    values, expected = (np.sort(numbers[numbers != 0]) for numbers in (from_e4m3(fused), plain))
    np.testing.assert_array_equal(values, expected)


def test_what_is_observed_of_e4m3_is_what_it_stands_for() -> None:
    plan = build_synthesis_plan(LARGE.spec, "model", precision="fp8")
    schedule = lower(plan, LARGE.weights, HOPPER)
    regions = {region.name: region for region in schedule.regions}
    for layer, dtype in (("synthesis.b64.conv0", E4M3), ("synthesis.b64.conv1", "float16")):
        launch = next(one for one in schedule.launches if one.layer == layer and one.op in CONVS)
        step = next(one for one in plan.steps if one.layer == layer and one.op in CONVS)
        seen = GPU_OPS[step.op].observe(step, launch, regions)
        assert seen is not None
        assert seen.dtype == dtype
        ones = np.full(seen.shape, 1.5, np.float32)
        stored = to_e4m3(ones * ACTIVATION_SCALE) if dtype == E4M3 else ones.astype(dtype)
        assert (seen.finish(stored) == 1.5).all()
