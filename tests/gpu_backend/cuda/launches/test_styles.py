"""The launch of all styles, as data: its items, carried out in NumPy as the kernel says, give the formula's numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.cuda.launches import shared_work
from gpu_backend.cuda.launches.style_layout import StyleLayout, pad8
from gpu_backend.cuda.launches.style_table import StyleTable
from gpu_backend.cuda.launches.styles import style_items, styles_launch
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.cuda.schedule import Region
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey, Step
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.reference.styles import styles
from tests.helpers.kernel_checks import assert_arguments_fit
from tests.helpers.networks import StyleGAN2Model, make_stylegan2
from tests.helpers.stylegan3 import make_stylegan3

NETWORKS: dict[str, dict[str, Any]] = {
    "narrow": {"w_dim": 8, "channels": {4: 12, 8: 5, 16: 3}},
    "odd-w": {"w_dim": 5, "channels": {4: 3, 8: 40, 16: 9}},
    "resnet": {"w_dim": 12, "architecture": "resnet", "channels": {4: 70, 8: 7, 16: 8}},
}


def styles_step(model: StyleGAN2Model, batch: int = 1) -> Step:
    steps = build_synthesis_plan(model.spec, model.facts.model_id, batch=batch).steps
    return next(step for step in steps if step.op == "styles")


def carried_out(table: StyleTable, made: np.ndarray, ws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One sample's styles and demod, by the items; every number of either must be written exactly once."""
    layout = table.layout
    rows = made[: table.weights_nbytes].view(np.float16 if table.half else np.float32)
    terms = made[table.weights_nbytes :].view(np.float32).reshape(-1, 2)
    raw, style = np.full(layout.style_width, np.nan), np.full(layout.style_width, np.nan)
    demod = np.full(layout.demod_width, np.nan)
    group = 16 // table.itemsize
    for item in style_items(table):
        kind, groups, count, first, term, source, columns, to = (int(value) for value in item[:8])
        weights = rows[first * group :][: count * groups * group].reshape(count, groups * group).astype(np.float64)
        assert not weights[:, columns:].any()
        factor, second = terms[term : term + count].T.astype(np.float64)
        if kind < 2:
            target = raw if kind else style
            assert np.isnan(target[to : to + count]).all()
            target[to : to + count] = weights[:, :columns] @ ws.reshape(-1)[source : source + columns] * factor + second
            continue
        s = raw[source : source + columns]
        peak = np.abs(s).max()
        assert np.isfinite(peak), "a layer's style is whole before its demodulation"
        assert np.isnan(demod[to : to + count]).all()
        demod[to : to + count] = peak * second / np.sqrt(weights[:, :columns] @ s**2 * factor + 1e-8)
        style[source : source + columns] = s / peak
    return style, demod


@pytest.mark.parametrize("half", [True, False], ids=["fp16", "fp32"])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_items_over_the_packed_table_give_normalised_styles_and_demodulation(name: str, half: bool) -> None:
    model = make_stylegan2(seed=3, **NETWORKS[name])
    step = styles_step(model)
    attributes: Styles = step.attributes
    layout = StyleLayout(attributes)
    table = StyleTable(layout, half)
    made = table.make(model.weights, step.weights)
    assert made.nbytes == table.nbytes
    ws = np.random.default_rng(0).standard_normal((model.spec.num_ws, model.spec.w_dim))
    style, demod = carried_out(table, made, ws)
    assert np.isfinite(style).all()
    assert np.isfinite(demod).all()
    tolerance = 2e-3 if half else 1e-5
    for slot in attributes.slots:
        weight = {role: model.weights[f"synthesis.{slot.layer}.{role}"] for role in ("affine.weight", "affine.bias")}
        s = weight["affine.weight"] @ ws[slot.w_index] / np.sqrt(model.spec.w_dim) + weight["affine.bias"]
        start, channels = layout.style_offset(slot.layer), slot.in_channels
        assert start % 8 == 0
        assert not style[start + channels : start + pad8(channels)].any()
        if slot.demod_offset < 0:
            assert np.allclose(style[start : start + channels], s * slot.style_gain, atol=tolerance)
            continue
        peak = np.abs(s).max()
        assert np.allclose(style[start : start + channels], s / peak, atol=tolerance)
        weights = model.weights[f"synthesis.{slot.layer}.weight"]
        d = 1 / np.sqrt(np.einsum("i,oiyx->o", s**2, weights.astype(np.float64) ** 2) + 1e-8)
        scale = 2.0 ** weight_exponent(weights) if half else 1.0
        start, channels = layout.demod_offset(slot.layer), slot.out_channels
        assert np.allclose(demod[start : start + channels], d * peak * scale, rtol=tolerance)
        assert not demod[start + channels : start + pad8(channels)].any()


@pytest.mark.parametrize("factor", [1.0, 2.0**-30, 2.0**30])
def test_fp16_tables_keep_demodulation_within_a_thousandth(factor: float) -> None:
    """Also of rows that are far smaller than others of their layer."""
    random = np.random.default_rng(0)
    weight = random.standard_normal((24, 96, 3, 3)) * factor * 2.0 ** np.linspace(-12, 12, 24)[:, None, None, None]
    weight *= 2.0 ** random.uniform(-4, 4, (1, 96, 1, 1))
    slots = (StyleSlot("conv", 0, 96, 24, 0, 0),)
    table = StyleTable(StyleLayout(Styles(8, slots, 96, 24)), half=True)
    weights = {
        "conv.weight": weight.astype(np.float32),
        "conv.affine.weight": np.zeros((96, 8), np.float32),
        "conv.affine.bias": random.uniform(-2, 2, 96).astype(np.float32),
    }
    style, demod = carried_out(table, table.make(weights, {name: name for name in weights}), np.zeros((1, 8)))
    s = weights["conv.affine.bias"].astype(np.float64)
    assert np.allclose(style, s / np.abs(s).max(), rtol=1e-6)
    d = 1 / np.sqrt(np.einsum("i,oiyx->o", s**2, weights["conv.weight"].astype(np.float64) ** 2) + 1e-8)
    d *= np.abs(s).max() * 2.0 ** weight_exponent(weights["conv.weight"])
    assert np.abs(demod[:24] / d - 1).max() < 2.5e-4


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("half", [True, False], ids=["fp16", "fp32"])
def test_a_table_holds_the_sums_of_squares_bit_for_bit(monkeypatch: pytest.MonkeyPatch, half: bool, cores: int) -> None:
    monkeypatch.setattr(shared_work, "core_count", lambda: cores)
    random = np.random.default_rng(0)
    slots = tuple(StyleSlot(f"conv{k}", 0, 24, 40, 24 * k, 40 * k) for k in range(3))
    table = StyleTable(StyleLayout(Styles(8, slots, 72, 120)), half)
    weights = {}
    for slot in slots:
        weights[f"{slot.layer}.weight"] = random.standard_normal((40, 24, 3, 3), np.float32)
        weights[f"{slot.layer}.affine.weight"] = random.standard_normal((24, 8), np.float32)
        weights[f"{slot.layer}.affine.bias"] = random.standard_normal(24, np.float32)
    made = table.make(weights, {name: name for name in weights})
    for slot in slots:
        squares = np.square(weights[f"{slot.layer}.weight"], dtype=np.float64).sum((2, 3)).astype(np.float32)
        if half:
            exponents = np.frexp(squares.max(axis=1))[1] - 15
            squares = np.ldexp(squares, -exponents[:, None]).astype(np.float16)
        start = 16 * table.demod_start(slot)
        assert np.array_equal(made[start : start + squares.nbytes], squares.reshape(-1).view(np.uint8))


@pytest.mark.parametrize("half", [True, False], ids=["fp16", "fp32"])
@pytest.mark.parametrize("batch", [1, 2, 7, 33])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_the_launch_fits_the_kernel(name: str, batch: int, half: bool) -> None:
    model = make_stylegan2(**NETWORKS[name])
    step = styles_step(model, batch)
    built = styles_launch(step, model.weights, batch=batch, num_ws=model.spec.num_ws, half=half)
    (launch,) = built.launches
    outer = (Region("ws", (), "float32", "input"), Region("flags", (), "uint32", "output"))
    assert_arguments_fit(launch, (*built.regions, *outer), built.constants)
    rows = {1: 1, 2: 2, 7: 8, 33: 8}[batch]
    assert launch.recipe.defines == (("HALF", str(int(half))), ("BATCH", str(rows)))
    items = style_items(StyleTable(StyleLayout(step.attributes), half))
    assert launch.grid == (len(items) * -(-batch // rows), 1, 1)
    assert launch.shared_nbytes % 16 == 0
    assert launch.flops == step.flops
    regions = {region.name: region for region in built.regions}
    assert regions["styles/counters"].shape == (1 + 2 * -(-batch // rows) * len(step.attributes.slots),)
    assert regions["styles/counters"].role == "zeroed"
    assert regions["b4.const"].shape == (batch, 4, 4, pad8(model.spec.layers[0].in_channels))
    assert [constant.make().dtype for constant in built.constants] == [np.uint8, np.int32, np.float32]


def test_items_count_their_layers_items_and_wait_for_earlier_ones_only() -> None:
    model = make_stylegan2(**NETWORKS["resnet"])
    for half in (True, False):
        items = style_items(StyleTable(StyleLayout(styles_step(model).attributes), half))
        assert np.array_equal(np.sort(items[:, 0] == 2), items[:, 0] == 2), "styles come first"
        for demod in items[items[:, 0] == 2]:
            slot = demod[8]
            assert demod[9] == ((items[:, 0] == 1) & (items[:, 8] == slot)).sum()
            same = items[(items[:, 0] == 2) & (items[:, 8] == slot)]
            assert demod[10] == len(same)
            assert same[:, 11].tolist() == list(range(len(same)))
        assert set(items[items[:, 12] == 1, 8]) == {0}


def test_a_plan_that_leaves_earlier_has_a_table_of_its_own() -> None:
    model = make_stylegan2(**NETWORKS["narrow"])
    keys = []
    for resolution in (8, 16):
        plan = build_synthesis_plan(model.spec, model.facts.model_id, resolution=resolution)
        built = styles_launch(plan.steps[0], model.weights, batch=1, num_ws=model.spec.num_ws, half=True)
        keys.append({constant.key for constant in built.constants})
    assert keys[0] & keys[1] == {"styles/const"}


@pytest.mark.parametrize("half", [True, False], ids=["fp16", "fp32"])
@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
def test_layers_of_unit_size_get_the_formulas_numbers_whatever_size_they_are_stored_in(
    factor: float, half: bool
) -> None:
    model = make_stylegan3(channel_max=20, channel_base=320, w_dim=12)
    stored = ("affine.weight", "affine.bias") if factor < 1 else (".weight",)
    scaled = {
        name: array * np.float32(factor) if name.endswith(stored) and "L2" in name else array
        for name, array in model.weights.items()
    }
    plan = build_plan(model.spec, PlanKey("model", "synthesis", 1, model.spec.resolution))
    step = next(step for step in plan.steps if step.op == "styles")
    layout = StyleLayout(step.attributes)
    ws = np.random.default_rng(0).standard_normal((1, model.spec.num_ws, 12)).astype(np.float32)
    table = StyleTable(layout, half)
    style, demod = carried_out(table, table.make(scaled, dict(step.weights)), ws[0])
    tensors = {name.removeprefix("synthesis."): torch.from_numpy(array).double() for name, array in scaled.items()}
    expected, coefficients = (
        item.numpy()[0] for item in styles(torch.from_numpy(ws).double(), tensors, step.attributes)
    )
    for slot in step.attributes.slots:
        start = layout.style_offset(slot.layer)
        made = style[start : start + slot.in_channels]
        wanted = expected[slot.style_offset : slot.style_offset + slot.in_channels]
        tolerance = 1e-3 if half else 1e-6
        if slot.demod_offset < 0:
            assert np.allclose(made, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())
            continue
        # Only the product counts: style, times what a convolution's result is multiplied by.
        start = layout.demod_offset(slot.layer)
        weight = scaled[f"synthesis.{slot.layer}.weight"]
        d = demod[start : start + slot.out_channels] * 2.0 ** -(weight_exponent(weight) if half else 0)
        products = coefficients[slot.demod_offset : slot.demod_offset + slot.out_channels][:, None] * wanted
        error = np.abs(d[:, None] * made - products)
        assert (error <= tolerance * np.abs(products).max(1, keepdims=True)).all(), slot.layer


def test_a_network_without_a_learned_constant_asks_for_none() -> None:
    model = make_stylegan3()
    plan = build_plan(model.spec, PlanKey("model", "synthesis", 1, model.spec.resolution))
    step = next(step for step in plan.steps if step.op == "styles")
    built = styles_launch(step, model.weights, batch=1, num_ws=model.spec.num_ws, half=True, const=None)
    assert [region.name for region in built.regions] == ["styles", "demod", "styles/raw", "styles/counters"]
    items = next(constant.make() for constant in built.constants if "items" in constant.key)
    assert not items[:, 12].any()
    assert list(built.launches[0].arguments.values()).count(None) == 2


def test_a_demodulated_layer_with_a_gain_is_refused() -> None:
    model = make_stylegan2(**NETWORKS["narrow"])
    step = styles_step(model)
    first, *others = step.attributes.slots
    for slot, words in ((replace(first, style_gain=0.5), "gain of 0.5"), (replace(first, demod_offset=-1), "x0")):
        wrong = replace(step, attributes=replace(step.attributes, slots=(slot, *others)))
        with pytest.raises(ValueError, match=words):
            styles_launch(wrong, model.weights, batch=1, num_ws=2, half=True)
