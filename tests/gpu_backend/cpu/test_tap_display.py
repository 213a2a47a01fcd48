"""A layer on show: statistics, bytes and numbers, whatever the lanes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.model.model import Model
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from tests.helpers.networks import make_stylegan2, rows_of
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import make_stylegan3

OUTPUTS = ("pixels", "flags", "statistics", "values")
MODELS = {
    "skip": make_stylegan2(resolution=16),
    "resnet": make_stylegan2(resolution=16, architecture="resnet"),
    "StyleGAN1": make_stylegan1(),
    "StyleGAN3": make_stylegan3(),
}


def layers_of(model: Model) -> list[str]:
    """The input, one of each kind, and the last."""
    names = [layer.name for layer in model.facts.layers]
    return list(dict.fromkeys([names[0], names[2], *names[-3:]]))


CASES = [pytest.param(model, tap, id=f"{name}-{tap}") for name, model in MODELS.items() for tap in layers_of(model)]


@pytest.fixture(params=[1, 3])
def executor(request: Any) -> Iterator[Any]:
    opened: list[CpuExecutor] = []

    def make(model: Model) -> CpuExecutor:
        opened.append(CpuExecutor(model.weights, threads=request.param))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def shown(executor: CpuExecutor, model: Model, tap: str, numbers: tuple[float, ...], ws: NDArray[Any]) -> Any:
    """Outputs, and the layer (batch, side, side, channels) that they are about."""
    batch = len(ws)
    bound = executor.bind(build_plan(model.spec, PlanKey("id", "synthesis", batch, 0, tap=tap)))
    inputs = {"ws": ws, "tap": np.array(numbers, np.float32)}
    return bound.run(inputs, outputs=OUTPUTS), bound.observe(inputs)[f"synthesis.{tap}"].transpose(0, 2, 3, 1)


@pytest.mark.parametrize(("model", "tap"), CASES)
def test_figures_are_those_of_the_layers_own_numbers(model: Model, tap: str, executor: Any) -> None:
    found, layer = shown(executor(model), model, tap, (2, 0, 1, 0.3, 1), rows_of(model, 2))
    parts = [layer[..., channel] for channel in (2, 0, 1)] + [layer.reshape(*layer.shape[:2], -1)]
    for place, part in enumerate(parts):
        values = part.astype(np.float64)
        expected = [values.mean((1, 2)), values.std((1, 2)), values.min((1, 2)), values.max((1, 2))]
        np.testing.assert_allclose(found["statistics"][:, place], np.transpose(expected), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found["values"], layer[..., 2])
    assert not found["flags"].any()


@pytest.mark.parametrize("is_normalized", [0, 1])
def test_bytes_follow_the_rule(is_normalized: int, executor: Any) -> None:
    model = MODELS["skip"]
    found, layer = shown(executor(model), model, "b16.conv0", (3, 1, 1, 1.5, is_normalized), rows_of(model, 2))
    chosen = layer[..., [3, 1, 1]].astype(np.float64)
    if is_normalized:
        chosen /= np.abs(chosen).max((1, 2), keepdims=True)
    expected = np.floor(np.clip(chosen * 1.5 * 127.5 + 128, 0, 255))
    assert np.abs(found["pixels"][..., 2::-1] - expected).max() <= 1
    assert (found["pixels"][..., 3] == 255).all()


def test_only_channels_that_are_shown_raise_the_flag_and_their_figures_tell() -> None:
    model = MODELS["skip"]
    name = "synthesis.b16.conv1.bias"
    bias = model.weights[name].copy()
    bias[1] = np.nan
    broken = CpuExecutor({**model.weights, name: bias}, threads=2)
    for numbers, flag in (((0, 2, 2, 1, 1), 0), ((0, 2, 1, 1, 1), 1)):
        found, _ = shown(broken, model, "b16.conv1", numbers, rows_of(model, 1))
        assert found["flags"].tolist() == [flag]
        assert np.isfinite(found["statistics"][0, :2]).all()
        assert np.isfinite(found["statistics"][0, 2]).all() == (not flag)
        assert not np.isfinite(found["statistics"][0, 3]).any()
    broken.close()


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_a_single_number_that_is_not_finite_raises_the_flag(value: float, executor: Any) -> None:
    model = MODELS["skip"]
    name = "synthesis.b16.conv1.noise_const"
    noise = model.weights[name].copy()
    noise[3, 5] = value
    broken = executor(replace(model, weights={**model.weights, name: noise}))
    found, _ = shown(broken, model, "b16.conv1", (0, 1, 2, 1, 1), rows_of(model, 1))
    assert found["flags"].tolist() == [1]
    least_and_largest = np.isfinite(found["statistics"][0, 0, 2:])
    assert sorted(least_and_largest) == [False, True]


def test_the_reference_gives_the_same(executor: Any) -> None:
    model = MODELS["resnet"]
    plan = build_plan(model.spec, PlanKey("id", "synthesis", 2, 0, tap="b16.conv0"))
    inputs = {"ws": rows_of(model, 2), "tap": np.array((2, 0, 1, 0.3, 1), np.float32)}
    runs = executor(model)
    fast, plain = (
        {name: np.array(array) for name, array in bound.run(inputs, outputs=OUTPUTS).items()}
        for bound in (runs.bind(plan), runs.bind(plan, use_fused=False))
    )
    np.testing.assert_allclose(fast["statistics"], plain["statistics"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fast["values"], plain["values"], rtol=1e-4, atol=1e-5)
    assert np.abs(fast["pixels"].astype(int) - plain["pixels"]).max() <= 1
