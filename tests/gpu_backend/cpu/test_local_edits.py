"""Bent channels and offsets of styles on the CPU, against the reference and against what they should do."""

import numpy as np
import pytest

from gpu_backend import NO_EDITS, Bend, BendKind, LocalEdits, Model, StyleOffset, Tap
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.plan.edit_inputs import bendable_layers, edit_inputs, plan_edits, style_lengths
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import Plan, PlanKey
from gpu_backend.plan.tap_input import tap_input
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import R, make_stylegan3

MODELS: dict[str, Model] = {
    "skip": make_stylegan2(resolution=16),
    "resnet": make_stylegan2(resolution=16, architecture="resnet"),
    "AdaIN": make_stylegan1(resolution=16),
    "T": make_stylegan3(num_layers=5),
    "R": make_stylegan3(num_layers=5, **R),
}
FAMILIES = pytest.mark.parametrize("name", MODELS)


def plan_for(model: Model, edits: LocalEdits, tap: str = "", batch: int = 1) -> Plan:
    side = next((item.side for item in model.facts.layers if item.name == tap), model.spec.resolution)
    return build_plan(model.spec, PlanKey("id", "synthesis", batch, side, tap=tap, edits=plan_edits(edits)))


def rows_of(model: Model, batch: int = 1) -> np.ndarray:
    shape = (batch, model.spec.num_ws, model.spec.w_dim)
    return np.random.default_rng(2).standard_normal(shape).astype(np.float32)


def picture(model: Model, edits: LocalEdits = NO_EDITS, *, use_fused: bool = True, batch: int = 1) -> np.ndarray:
    executor, plan = CpuExecutor(model.weights, threads=2), plan_for(model, edits, batch=batch)
    inputs = {"ws": rows_of(model, batch), **edit_inputs(plan, edits)}
    image = np.array(executor.bind(plan, use_fused=use_fused).run(inputs, outputs=("image",))["image"])
    executor.close()
    return image


def every_kind(model: Model) -> LocalEdits:
    layers = list(bendable_layers(model.spec))
    last = layers[-1]
    bends = (
        Bend(layers[0], "gain", -1.5),
        Bend(layers[1], "move", 0.2, (0, 1), -0.3),
        Bend(layers[1], "turn", 30.0, (1,)),
        Bend(last, "scale", 0.6, (0, 2)),
        Bend(last, "threshold", 0.2),
        Bend(last, "ablate", 0.5, (1,)),
    )
    styled = list(style_lengths(model.spec).items())
    offsets = tuple(StyleOffset(layer, length - 1, 0.7) for layer, length in (styled[0], styled[-1]))
    return LocalEdits(bends, (*offsets, StyleOffset(styled[0][0], 0, -0.4)))


@FAMILIES
def test_every_edit_gives_what_the_reference_gives(name: str) -> None:
    model = MODELS[name]
    edits = every_kind(model)
    got, expected = picture(model, edits, batch=2), picture(model, edits, use_fused=False, batch=2)
    assert np.abs(expected - picture(model, batch=2)).max() > 1e-2
    np.testing.assert_allclose(got, expected, atol=2e-4 * np.abs(expected).max())


@FAMILIES
@pytest.mark.parametrize("use_fused", [True, False])
def test_edits_at_rest_change_nothing(name: str, use_fused: bool) -> None:
    model = MODELS[name]
    at_rest: dict[BendKind, float] = {
        "gain": 1.0,
        "ablate": 0.0,
        "threshold": 0.0,
        "move": 0.0,
        "turn": 0.0,
        "scale": 1.0,
    }
    bends = tuple(
        Bend(layer, kind, amount) for layer in bendable_layers(model.spec) for kind, amount in at_rest.items()
    )
    offsets = tuple(StyleOffset(layer, 0, 0.0) for layer in style_lengths(model.spec))
    got = picture(model, LocalEdits(bends, offsets), use_fused=use_fused)
    np.testing.assert_array_equal(got, picture(model, use_fused=use_fused))


@FAMILIES
def test_a_plan_with_edits_starts_at_rest(name: str) -> None:
    model = MODELS[name]
    executor, plan = CpuExecutor(model.weights, threads=2), plan_for(model, every_kind(model))
    got = executor.bind(plan).run({"ws": rows_of(model)}, outputs=("image",))["image"]
    np.testing.assert_array_equal(got, picture(model))
    executor.close()


@FAMILIES
def test_amounts_reach_a_bound_plan_as_inputs(name: str) -> None:
    model = MODELS[name]
    layer = list(bendable_layers(model.spec))[1]
    first, second = LocalEdits((Bend(layer, "turn", 10.0),)), LocalEdits((Bend(layer, "gain", 0.0, (0,)),))
    assert plan_edits(first) == plan_edits(second)
    executor, plan = CpuExecutor(model.weights, threads=2), plan_for(model, first)
    bound = executor.bind(plan)
    for edits in (first, second, first):
        image = bound.run({"ws": rows_of(model), **edit_inputs(plan, edits)}, outputs=("image",))["image"]
        np.testing.assert_allclose(image, picture(model, edits), atol=1e-5)
    executor.close()


@pytest.mark.parametrize("name", ["skip", "AdaIN", "T"])
def test_a_layer_that_is_shown_is_shown_bent(name: str) -> None:
    model = MODELS[name]
    layer = list(bendable_layers(model.spec))[2]
    edits = LocalEdits((Bend(layer, "gain", 3.0, (1,)),))
    executor = CpuExecutor(model.weights, threads=2)

    def values(edits: LocalEdits, channel: int) -> np.ndarray:
        plan = plan_for(model, edits, tap=layer)
        inputs = {"ws": rows_of(model), "tap": tap_input(Tap(layer, (channel,))), **edit_inputs(plan, edits)}
        return executor.bind(plan).run(inputs, outputs=("pixels", "values"))["values"]

    np.testing.assert_allclose(values(edits, 1), 3.0 * values(NO_EDITS, 1), rtol=1e-6)
    np.testing.assert_array_equal(values(edits, 0), values(NO_EDITS, 0))
    executor.close()


def test_a_draft_leaves_out_edits_of_later_layers() -> None:
    model = MODELS["skip"]
    edits = LocalEdits(
        (Bend("b16.conv1", "gain", 2.0), Bend("b8.conv1", "gain", 2.0)), (StyleOffset("b16.conv0", 0, 1.0),)
    )
    plan = build_plan(model.spec, PlanKey("id", "synthesis", 1, 8, edits=plan_edits(edits)))
    assert set(edit_inputs(plan, edits)) == {"bend/b8.conv1", "style_offsets"}
    assert not edit_inputs(plan, edits)["style_offsets"].any()


def test_an_offset_of_a_style_is_that_of_its_affine_layers_bias() -> None:
    model = MODELS["skip"]
    weights = {name: np.array(value) for name, value in model.weights.items()}
    weights["synthesis.b8.conv0.affine.bias"][2] += 0.8
    executor, plan = CpuExecutor(weights, threads=1), plan_for(model, NO_EDITS)
    expected = executor.bind(plan).run({"ws": rows_of(model)}, outputs=("image",))["image"]
    got = picture(model, LocalEdits(style_offsets=(StyleOffset("b8.conv0", 2, 0.8),)))
    np.testing.assert_allclose(got, expected, atol=1e-5)
    executor.close()


def test_a_move_by_whole_pixels_shifts_and_mirrors() -> None:
    model = MODELS["skip"]
    executor = CpuExecutor(model.weights, threads=2)
    edits = LocalEdits((Bend("b8.conv1", "move", 2 / 8, (), 1 / 8),))
    plan = plan_for(model, edits, tap="b8.conv1")
    bound = executor.bind(plan)
    tap = {"ws": rows_of(model), "tap": tap_input(Tap("b8.conv1", (3,)))}
    straight = bound.run(tap, outputs=("pixels", "values"))["values"][0]
    moved = bound.run({**tap, **edit_inputs(plan, edits)}, outputs=("pixels", "values"))["values"][0]
    np.testing.assert_allclose(moved[1:, 2:], straight[:-1, :-2], atol=1e-5)
    np.testing.assert_allclose(moved[0, 2:], straight[0, :-2], atol=1e-5)
    np.testing.assert_allclose(moved[1:, :2], straight[:-1, 1::-1], atol=1e-5)
    executor.close()
