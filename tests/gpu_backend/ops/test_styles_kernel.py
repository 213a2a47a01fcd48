"""The `styles` kernel: it compiles everywhere, and on a GPU it does what the reference does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.style_layout import StyleLayout, pad8
from gpu_backend.cuda.launches.styles import styles_launch
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.cuda.schedule import Region
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.plan import Step
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.reference.styles import styles
from tests.helpers.gpu import run_launches
from tests.helpers.kernel_checks import assert_compiles, one_each
from tests.helpers.networks import StyleGAN2Model, make_stylegan2

NETWORKS: dict[str, dict[str, Any]] = {
    "narrow": {"w_dim": 8, "channels": {4: 12, 8: 5, 16: 3}},
    "odd-w": {"w_dim": 5, "channels": {4: 3, 8: 12, 16: 9}},
    "orig": {"w_dim": 12, "architecture": "orig", "img_channels": 1, "channels": {4: 40, 8: 33, 16: 8}},
    "resnet": {"w_dim": 12, "architecture": "resnet", "img_channels": 4, "channels": {4: 24, 8: 7, 16: 8}},
    "wide": {"w_dim": 512, "resolution": 8, "channels": {4: 520, 8: 131}},
    "long-rows": {"w_dim": 1030, "resolution": 8, "channels": {4: 100, 8: 1040}},
}


def styles_step(model: StyleGAN2Model, batch: int) -> Step:
    steps = build_synthesis_plan(model.spec, model.facts.model_id, batch=batch).steps
    return next(step for step in steps if step.op == "styles")


def run_kernel(model: StyleGAN2Model, ws: np.ndarray, half: bool, runs: int = 1) -> dict[str, np.ndarray]:
    batch, num_ws, _ = ws.shape
    built = styles_launch(styles_step(model, batch), model.weights, batch=batch, num_ws=num_ws, half=half)
    outer = (Region("ws", ws.shape, "float32", "input"), Region("flags", (batch,), "uint32", "output"))
    return run_launches(built.launches, (*outer, *built.regions), built.constants, {"ws": ws}, runs=runs)


def assert_as_reference(model: StyleGAN2Model, ws: np.ndarray, half: bool, found: dict[str, np.ndarray]) -> None:
    attributes = styles_step(model, len(ws)).attributes
    layout = StyleLayout(attributes)
    prefix = "synthesis."
    tensors = {name.removeprefix(prefix): torch.from_numpy(array) for name, array in model.weights.items()}
    expected, coefficients = (item.numpy() for item in styles(torch.from_numpy(ws), tensors, attributes))
    worst = {"style": 0.0, "toRGB": 0.0, "demod": 0.0, "x0": 0.0}
    for slot in attributes.slots:
        channels = slot.in_channels
        start = layout.style_offset(slot.layer)
        style = found["styles"][:, start : start + channels]
        assert not found["styles"][:, start + channels : start + pad8(channels)].any(), f"padding of {slot.layer}"
        s = expected[:, slot.style_offset : slot.style_offset + channels]
        # What fp16 affines may be off by: 2^-11 of each product; fp32 by a few roundings of the sum.
        affine = model.weights[f"{prefix}{slot.layer}.affine.weight"] / np.sqrt(attributes.w_dim)
        products = (np.abs(ws[:, slot.w_index]) @ np.abs(affine).T + 1) * slot.style_gain
        bound = (2.0**-11 if half else 1e-6) * products.max(1, keepdims=True) + 1e-7
        if slot.demod_offset < 0:
            worst["toRGB"] = max(worst["toRGB"], float((np.abs(style - s) / bound).max()))
            continue
        peak = np.abs(s).max(1, keepdims=True)
        worst["style"] = max(worst["style"], float((np.abs(style - s / peak) * peak / (2 * bound)).max()))
        start = layout.demod_offset(slot.layer)
        demod = found["demod"][:, start : start + slot.out_channels]
        assert not found["demod"][:, start + slot.out_channels : start + pad8(slot.out_channels)].any(), slot.layer
        weight = model.weights[f"{prefix}{slot.layer}.weight"]
        squares = np.square(weight.astype(np.float64)).sum((2, 3))
        # Of the styles that the kernel itself made: the two must fit each other.
        own = 1 / np.sqrt(np.square(style.astype(np.float64)) @ squares.T + 1e-8 / peak**2)
        own *= 2.0 ** (weight_exponent(weight) if half else 0)
        worst["demod"] = max(worst["demod"], float(np.abs(demod / own - 1).max() / (1e-3 if half else 2e-6)))
        if not half:
            d = coefficients[:, slot.demod_offset : slot.demod_offset + slot.out_channels] * peak
            assert np.allclose(demod, d, rtol=1e-3), slot.layer
    first = attributes.slots[0].in_channels
    const = model.weights["synthesis.b4.const"].transpose(1, 2, 0)
    x0 = const * found["styles"][:, None, None, :first]
    error = np.abs(found["b4.const"][..., :first].astype(np.float64) - x0)
    worst["x0"] = float((error / (np.abs(x0) * (2.0**-11 if half else 1e-6) + 1e-7)).max())
    assert not found["b4.const"][..., first:].any(), "padding of x0"
    assert not found["flags"].any(), "flags are cleared"
    assert max(worst.values()) <= 1, f"errors as parts of what is allowed: {worst}"


@pytest.mark.parametrize(
    ("recipe", "architecture"),
    one_each([KernelRecipe("styles", (("HALF", half), ("BATCH", str(batch)))) for batch in (4, 2) for half in "01"]),
)
def test_batches_that_no_plan_of_the_tests_asks_for_compile_without_spills(
    recipe: KernelRecipe, architecture: str
) -> None:
    assert_compiles(recipe, architecture, 256)


@pytest.mark.gpu
@pytest.mark.parametrize("half", [True, False], ids=["fp16", "fp32"])
@pytest.mark.parametrize("batch", [1, 2, 7, 33])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_styles_demodulation_and_first_input_are_those_of_the_reference(
    gpu: Gpu, name: str, batch: int, half: bool
) -> None:
    model = make_stylegan2(seed=3, **NETWORKS[name])
    ws = np.random.default_rng(batch).standard_normal((batch, model.spec.num_ws, model.spec.w_dim), np.float32)
    assert_as_reference(model, ws, half, run_kernel(model, ws, half, runs=3))


@pytest.mark.gpu
@pytest.mark.parametrize("half", [True, False], ids=["fp16", "fp32"])
@pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
def test_weights_far_from_one_keep_their_precision(gpu: Gpu, factor: float, half: bool) -> None:
    model = make_stylegan2(seed=4, **NETWORKS["orig"])
    weights = {
        name: array * np.float32(factor) if name.endswith(("conv0.weight", "conv1.weight")) else array
        for name, array in model.weights.items()
    }
    model = replace(model, weights=weights)
    ws = np.random.default_rng(1).standard_normal((3, model.spec.num_ws, model.spec.w_dim), np.float32)
    assert_as_reference(model, ws, half, run_kernel(model, ws, half))


@pytest.mark.gpu
@pytest.mark.parametrize("half", [True, False], ids=["fp16", "fp32"])
def test_a_layer_whose_style_is_all_zero_gives_zeros(gpu: Gpu, half: bool) -> None:
    model = make_stylegan2(seed=5, **NETWORKS["narrow"])
    weights = {name: array * np.float32("b4.conv1.affine" not in name) for name, array in model.weights.items()}
    model = replace(model, weights=weights)
    layout = StyleLayout(styles_step(model, 2).attributes)
    ws = np.random.default_rng(1).standard_normal((2, model.spec.num_ws, model.spec.w_dim), np.float32)
    found = run_kernel(model, ws, half)
    start, end = layout.style_offset("b4.conv1"), layout.style_offset("b4.torgb")
    assert not found["styles"][:, start:end].any()
    assert found["styles"][:, end:].any()
    start, end = layout.demod_offset("b4.conv1"), layout.demod_offset("b8.conv0")
    assert not found["demod"][:, start:end].any()
    assert not found["b4.const"].any()


@pytest.mark.gpu
def test_nan_is_not_hidden(gpu: Gpu) -> None:
    model = make_stylegan2(seed=6, **NETWORKS["narrow"])
    ws = np.zeros((2, model.spec.num_ws, model.spec.w_dim), np.float32)
    ws[1] = np.nan
    found = run_kernel(model, ws, half=True)
    for name in ("styles", "demod", "b4.const"):
        assert np.isfinite(found[name][0]).all(), name
        assert not np.isfinite(found[name][1]).all(), name
