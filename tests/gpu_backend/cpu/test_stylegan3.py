"""StyleGAN3 plans on the CPU: whole networks against the reference, and what belongs to this family alone."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import gpu_backend.cpu.modulated_conv as choice
from gpu_backend import Transform
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.plan.stylegan3 import build_synthesis_plan
from gpu_backend.reference.stylegan3 import run_stylegan3
from tests.helpers.networks import rows_of
from tests.helpers.selection import in_turn
from tests.helpers.stylegan3 import R, StyleGAN3Model, make_stylegan3

NETWORKS: dict[str, dict[str, Any]] = {
    "T": {},
    "R": {**R, "conv_clamp": 0.7},
    "T, 64 px, RGBA": {"resolution": 64, "channel_base": 256, "channel_max": 9, "img_channels": 4},
    "R, 64 px, grey": {**R, "resolution": 64, "channel_base": 300, "channel_max": 21, "img_channels": 1},
    "small margin": {"margin": 3, "num_layers": 5, "resolution": 32},
    "wide enough for Winograd": {"num_layers": 3, "channel_base": 4096, "channel_max": 66},
}


def reference(
    model: StyleGAN3Model,
    ws: np.ndarray,
    transform: np.ndarray | None = None,
    observed: dict[str, torch.Tensor] | None = None,
) -> np.ndarray:
    weights = {name: torch.from_numpy(array).double() for name, array in model.weights.items()}
    user = None if transform is None else torch.from_numpy(transform).double()
    with torch.inference_mode():
        image = run_stylegan3(model.spec, weights, torch.from_numpy(ws).double(), user, observed=observed)
    return image.permute(0, 2, 3, 1).numpy()


@functools.cache
def network(name: str, batch: int) -> tuple[StyleGAN3Model, np.ndarray, np.ndarray]:
    """One of `NETWORKS`, w rows, and what the reference computes of them in double precision."""
    model = make_stylegan3(**NETWORKS[name])
    ws = rows_of(model, batch)
    return model, ws, reference(model, ws)


def assert_near(found: np.ndarray, expected: np.ndarray, tolerance: float = 2e-5) -> None:
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * max(1.0, float(np.abs(expected).max()))


@pytest.fixture
def executors() -> Iterator[list[CpuExecutor]]:
    opened: list[CpuExecutor] = []
    yield opened
    for executor in opened:
        executor.close()


@pytest.mark.parametrize(
    ("name", "way"), in_turn(NETWORKS, [(1, 1, True), (2, 2, True), (2, 1, False), (1, 3, True)], each=2)
)
def test_the_picture_equals_the_reference(name: str, way: tuple[int, int, bool], executors: list[CpuExecutor]) -> None:
    batch, threads, use_fused = way
    model, ws, expected = network(name, batch)
    executors.append(CpuExecutor(model.weights, threads=threads))
    bound = executors[0].bind(build_synthesis_plan(model.spec, "id", batch=batch), use_fused=use_fused)
    outputs = bound.run({"ws": ws}, outputs=("image", "pixels", "flags"))
    assert_near(outputs["image"], expected)
    channel = 0 if model.spec.img_channels == 1 else 2
    shown = np.clip(expected[..., channel] * 127.5 + 128, 0, 255)
    assert np.abs(outputs["pixels"][..., 0].astype(float) - shown).max() <= 1.01
    assert outputs["flags"].tolist() == [0] * batch


def test_one_of_the_networks_uses_winograd() -> None:
    plan = build_synthesis_plan(make_stylegan3(**NETWORKS["wide enough for Winograd"]).spec, "id")
    assert any(choice.suits_winograd(step.attributes) for step in plan.steps if step.op == "modulated_conv")


@pytest.mark.parametrize("use_fused", [True, False])
@pytest.mark.parametrize("config", [{}, R])
def test_every_layer_gives_what_the_reference_does(
    config: dict[str, Any], use_fused: bool, executors: list[CpuExecutor]
) -> None:
    model = make_stylegan3(resolution=32, **config)
    ws, expected = rows_of(model, 1), dict[str, torch.Tensor]()
    reference(model, ws, observed=expected)
    executors.append(CpuExecutor(model.weights, threads=2))
    found = executors[0].bind(build_synthesis_plan(model.spec, "id"), use_fused=use_fused).observe({"ws": ws})
    assert list(found) == list(expected) == ["synthesis.input", *(f"synthesis.{la.name}" for la in model.spec.layers)]
    for layer, value in found.items():
        assert_near(value, expected[layer].numpy())


@pytest.mark.parametrize("use_fused", [True, False])
def test_the_transform_is_an_input_and_starts_as_it_is_stored(use_fused: bool, executors: list[CpuExecutor]) -> None:
    model = make_stylegan3(**R)
    stored = np.reshape(Transform(0.2, 0.1, 20.0, 1.2).matrix, (3, 3)).astype(np.float32)
    model.weights["synthesis.input.transform"][...] = stored
    executors.append(CpuExecutor(model.weights, threads=1))
    bound = executors[0].bind(build_synthesis_plan(model.spec, "id"), use_fused=use_fused)
    ws = rows_of(model, 1)
    assert_near(bound.run({"ws": ws}, outputs=("image",))["image"], reference(model, ws, stored))
    other = np.reshape(Transform(-0.3, 0.0, -75.0, 0.8).matrix, (3, 3)).astype(np.float32)
    moved = np.array(bound.run({"ws": ws, "transform": other}, outputs=("image",))["image"])
    assert_near(moved, reference(model, ws, other))
    assert np.abs(moved - reference(model, ws, stored)).max() > 0.01


def test_a_picture_depends_on_nothing_but_its_own_row(executors: list[CpuExecutor]) -> None:
    """The official networks bring styles to unit size over a whole batch, which shows in the last digits alone."""
    model = make_stylegan3()
    executors.append(CpuExecutor(model.weights, threads=1))
    ws = rows_of(model, 3)
    one, three = (executors[0].bind(build_synthesis_plan(model.spec, "id", batch=batch)) for batch in (1, 3))
    together = np.array(three.run({"ws": ws}, outputs=("image",))["image"])
    for sample in range(3):
        alone = one.run({"ws": ws[sample : sample + 1]}, outputs=("image",))["image"]
        assert_near(together[sample : sample + 1], np.array(alone), 2e-6)


def test_equal_inputs_give_equal_bytes_whatever_ran_before(executors: list[CpuExecutor]) -> None:
    model = make_stylegan3(**R)
    executors.append(CpuExecutor(model.weights, threads=2))
    bound = executors[0].bind(build_synthesis_plan(model.spec, "id"))
    ws = rows_of(model, 2)
    first = np.array(bound.run({"ws": ws[:1]}, outputs=("image",))["image"])
    bound.run({"ws": np.full_like(ws[:1], np.nan)})
    bound.run({"ws": ws[1:]})
    assert np.array_equal(bound.run({"ws": ws[:1]}, outputs=("image",))["image"], first)


def test_a_picture_that_is_not_finite_is_flagged(executors: list[CpuExecutor]) -> None:
    model = make_stylegan3()
    executors.append(CpuExecutor(model.weights, threads=1))
    bound = executors[0].bind(build_synthesis_plan(model.spec, "id"))
    ws = rows_of(model, 1)
    ws[0, 9] = np.inf
    assert bound.run({"ws": ws})["flags"].tolist() == [1]
