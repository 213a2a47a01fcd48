"""A plan run with the reference functions gives what they give when they are called one by one."""

from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend import CancelledError
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.plan.executor import BoundPlan
from gpu_backend.plan.mapping import build_mapping_plan
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.reference.mapping import run_mapping
from gpu_backend.reference.synthesis import run_synthesis
from tests.helpers.networks import make_stylegan2, rows_of

NETWORKS: dict[str, dict[str, Any]] = {
    "skip": {"resolution": 32},
    "resnet, rgba, clamp": {"architecture": "resnet", "img_channels": 4, "conv_clamp": 0.8},
    "orig, grey, no noise": {"architecture": "orig", "img_channels": 1, "use_noise": False},
    "4 x 4, four channels": {"resolution": 4, "img_channels": 4},
}


def bind(model: Any, **options: Any) -> BoundPlan:
    plan = build_synthesis_plan(model.spec, "id", **options)
    return CpuExecutor(model.weights, threads=1).bind(plan, use_fused=False)


def tensors(model: Any) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in model.weights.items()}


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_picture_and_its_layers_are_those_of_the_composed_functions(name: str, batch: int) -> None:
    model = make_stylegan2(**NETWORKS[name])
    ws = rows_of(model, batch)
    observed: dict[str, torch.Tensor] = {}
    expected = run_synthesis(model.spec, tensors(model), torch.from_numpy(ws), observed=observed).numpy()
    bound = bind(model, batch=batch)
    outputs = bound.run({"ws": ws}, outputs=("image", "pixels", "flags"))
    shapes = {buffer.name: buffer.shape for buffer in bound.plan.buffers if buffer.role == "output"}
    assert {name: array.shape for name, array in outputs.items()} == shapes
    assert np.abs(outputs["image"].transpose(0, 3, 1, 2) - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())
    found = bound.observe({})
    assert list(found) == list(observed)
    for layer, value in found.items():
        assert value == pytest.approx(observed[layer].numpy(), abs=1e-4)


def test_the_mapping_is_that_of_the_composed_functions() -> None:
    model = make_stylegan2(c_dim=3, embed_dim=5, mapping_widths=(7, 8), z_dim=6)
    z = np.random.default_rng(1).standard_normal((3, 6)).astype(np.float32)
    c = np.eye(3, dtype=np.float32)
    bound = CpuExecutor(model.weights, threads=1).bind(build_mapping_plan(model.spec, "id", batch=3), use_fused=False)
    w = bound.run({"z": z, "c": c}, outputs=("w",))["w"]
    assert w == pytest.approx(run_mapping(model.spec, tensors(model), *map(torch.from_numpy, (z, c))).numpy(), abs=1e-5)


@pytest.mark.parametrize("resolution", [8, 32])
def test_pixels_are_those_of_the_fast_plan_for_every_noise(resolution: int) -> None:
    model = make_stylegan2(resolution=32)
    executor = CpuExecutor(model.weights, threads=1)
    plan = build_synthesis_plan(model.spec, "id", resolution=resolution)
    fast, slow = executor.bind(plan), executor.bind(plan, use_fused=False)
    gains = np.ones(next(b.shape for b in plan.buffers if b.name == "noise_gain"), np.float32)
    for source, gain in (([0, 0, 0, 0], 1.0), ([1, 7, 0, 0], 1.5), ([1, 7, 0, 0], 0.0), ([0, 0, 0, 0], 1.0)):
        inputs = {
            "ws": rows_of(model, 1),
            "noise_source": np.array(source, np.uint32),
            "noise_gain": gains * np.float32(gain),
        }
        found = [bound.run(inputs)["pixels"].astype(int) for bound in (fast, slow)]
        assert np.abs(found[0] - found[1]).max() <= 1


def test_a_run_can_be_measured_and_cancelled() -> None:
    model = make_stylegan2()
    bound = bind(model)
    run = bound.submit({"ws": rows_of(model, 1)}, measure=True)
    assert [step.layer for step in run.steps] == [step.layer for step in bound.plan.steps]
    with pytest.raises(CancelledError):
        bound.submit({}, should_cancel=lambda: True)


def test_a_closed_plan_raises_an_error() -> None:
    bound = bind(make_stylegan2())
    bound.close()
    bound.close()
    with pytest.raises(RuntimeError, match="closed"):
        bound.run({})
