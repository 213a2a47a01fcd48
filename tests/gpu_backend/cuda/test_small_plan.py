"""Small plans through every kind of kernel, a few frames each: what compute-sanitizer watches (`make gpu-sanitize`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_backend.bench.accuracy import psnr_db
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.cuda.launches import streaming_up_conv
from gpu_backend.ops.kernels.e4m3 import multiplies_e4m3
from gpu_backend.plan import fusion
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.fusion import multiplies_fp8
from gpu_backend.plan.plan import PlanKey
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.networks import make_stylegan2
from tests.helpers.small_plans import (
    SMALL_STYLEGAN2,
    SMALL_STYLEGAN3,
    let_small_plans_have_the_kernels_of_large_ones,
    small_stylegan2,
)
from tests.helpers.stylegan1 import for_rosinality, make_stylegan1
from tests.helpers.stylegan3 import R, make_stylegan3

pytestmark = pytest.mark.gpu

WORST = {"fp16": 6, "tf32": 6, "bf16x3": 1, "fp32": 1}
"""Of 255, at a pixel."""


@pytest.mark.parametrize("precision", ["fp16", "tf32", "bf16x3", "fp32"])
@pytest.mark.parametrize(("architecture", "batch", "width", "resolution"), SMALL_STYLEGAN2)
def test_a_small_plan_gives_the_picture_of_the_processor(
    gpu: Gpu,
    monkeypatch: pytest.MonkeyPatch,
    architecture: str,
    batch: int,
    width: int,
    resolution: int,
    precision: Any,
) -> None:
    let_small_plans_have_the_kernels_of_large_ones(monkeypatch)
    model = small_stylegan2(architecture, width, resolution)
    generator = np.random.default_rng(batch)
    executor = CudaExecutor(model, gpu.index, precision)
    bound = executor.bind(build_synthesis_plan(model.spec, "small", batch=batch, precision=precision))
    processor = CpuExecutor(model.weights)
    expected = processor.bind(build_synthesis_plan(model.spec, "small", batch=batch))
    assert not executor.fallbacks
    for source in ((0, 0, 0, 0), (1, 7, 0, 0)):
        inputs = {
            "ws": generator.standard_normal((batch, model.spec.num_ws, model.spec.w_dim)).astype(np.float32),
            "noise_source": np.array(source, np.uint32),
        }
        pixels = bound.run(inputs)["pixels"].astype(np.int32)
        apart = np.abs(pixels - expected.run(inputs)["pixels"].astype(np.int32))
        assert apart.max() <= WORST[precision], f"{apart.max()} of 255 at worst, {apart.mean():.3f} on average"
    executor.close()
    processor.close()


@pytest.mark.parametrize(("architecture", "batch"), [("skip", 2), ("resnet", 1), ("orig", 1)])
def test_a_small_plan_in_fp8_is_near_the_picture_of_the_processor(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, architecture: str, batch: int
) -> None:
    """With an up-convolution in two kernels that reads e4m3 and, in the last block, a streaming one."""
    if not multiplies_e4m3(gpu.compile_architecture):
        pytest.skip("this GPU has no kernels for fp8")
    monkeypatch.setattr(streaming_up_conv, "_LEAST_POSITIONS", 0)
    model = make_stylegan2(
        architecture=architecture, resolution=128, channel_base=4096, channel_max=160, conv_clamp=256.0
    )
    ws = np.random.default_rng(batch).standard_normal((batch, model.spec.num_ws, model.spec.w_dim)).astype(np.float32)
    executor, processor = CudaExecutor(model, gpu.index, "fp8"), CpuExecutor(model.weights)
    plan = build_synthesis_plan(model.spec, "small", batch=batch, precision="fp8")
    fused, plain = (executor.bind(plan, use_fused=use_fused) for use_fused in (True, False))
    assert not executor.fallbacks
    expected = processor.bind(build_synthesis_plan(model.spec, "small", batch=batch)).run({"ws": ws})["pixels"]
    found, exact = (np.array(bound.run({"ws": ws})["pixels"]) for bound in (fused, plain))
    # Quantised in torch, the pictures are 28.6 to 37 dB from those in single precision. On Hopper, t between the two
    # kernels of an up-convolution is e4m3, too: 35.2 to 41 dB from pictures where it is not.
    assert psnr_db(found, expected) >= 27.0
    assert psnr_db(found, exact) >= psnr_db(found, expected), "the plain kernels quantise alike"
    assert psnr_db(found, exact) >= 33.0
    executor.close()
    processor.close()


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("changes", [{}, R], ids=["T", "R"])
def test_a_small_stylegan3_in_fp8_is_near_the_picture_of_the_processor(
    gpu: Gpu, changes: dict[str, Any], batch: int
) -> None:
    if not multiplies_e4m3(gpu.compile_architecture):
        pytest.skip("this GPU has no kernels for fp8")
    model = make_stylegan3(resolution=64, channel_base=16 * 40, channel_max=40, w_dim=20, conv_clamp=256.0, **changes)
    executor, processor = CudaExecutor(model, gpu.index, "fp8"), CpuExecutor(model.weights)
    plan = build_plan(model.spec, PlanKey("small", "synthesis", batch, 64, "fp8"))
    assert multiplies_fp8(plan)
    fused, plain = (executor.bind(plan, use_fused=use_fused) for use_fused in (True, False))
    assert not executor.fallbacks
    ws = np.random.default_rng(batch).standard_normal((batch, model.spec.num_ws, model.spec.w_dim)).astype(np.float32)
    expected = processor.bind(build_plan(model.spec, PlanKey("small", "synthesis", batch, 64))).run({"ws": ws})[
        "pixels"
    ]
    found, exact = (np.array(bound.run({"ws": ws})["pixels"]) for bound in (fused, plain))
    # Quantised in torch, the pictures are 33 to 46 dB from those in single precision.
    assert psnr_db(found, expected) >= 28.0
    assert psnr_db(found, exact) >= 28.0, "the plain kernels quantise alike"
    executor.close()
    processor.close()


@pytest.mark.parametrize("precision", ["fp16", "tf32", "bf16x3", "fp32"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("changes", [{}, R], ids=["T", "R"])
@pytest.mark.parametrize(("resolution", "width"), SMALL_STYLEGAN3)
def test_a_small_stylegan3_gives_the_picture_of_the_processor(
    gpu: Gpu, changes: dict[str, Any], batch: int, resolution: int, width: int, precision: Any
) -> None:
    model = make_stylegan3(
        resolution=resolution, channel_base=16 * width, channel_max=width, w_dim=20, conv_clamp=256.0, **changes
    )
    key = PlanKey("small", "synthesis", batch, resolution, precision)
    executor, processor = CudaExecutor(model, gpu.index, precision), CpuExecutor(model.weights)
    bound = executor.bind(build_plan(model.spec, key))
    expected = processor.bind(build_plan(model.spec, PlanKey("small", "synthesis", batch, resolution)))
    assert not executor.fallbacks
    ws = np.random.default_rng(batch).standard_normal((batch, model.spec.num_ws, model.spec.w_dim))
    moved = np.array([[0.9, 0.3, 0.1], [-0.3, 0.9, -0.2], [0, 0, 1]], np.float32)
    for inputs in ({"ws": ws.astype(np.float32)}, {"transform": moved}):
        found = {name: array.copy() for name, array in bound.run(inputs, outputs=("pixels", "image", "flags")).items()}
        wanted = expected.run(inputs, outputs=("pixels", "image", "flags"))
        apart = np.abs(found["pixels"].astype(np.int32) - wanted["pixels"].astype(np.int32))
        assert apart.max() <= WORST[precision], f"{apart.max()} of 255 at worst, {apart.mean():.3f} on average"
        error = np.linalg.norm(found["image"] - wanted["image"]) / np.linalg.norm(wanted["image"])
        assert error <= {"fp16": 1e-2, "tf32": 1e-2, "bf16x3": 5e-5, "fp32": 1e-5}[precision]
        assert not found["flags"].any()
        without = bound.run({}, outputs=("pixels", "image"), use_graph=False)
        for name, array in without.items():
            assert array.tobytes() == found[name].tobytes(), f"{name} with a graph and without"
    assert bound.captures == 1
    executor.close()
    processor.close()


@pytest.mark.parametrize("precision", ["fp16", "tf32", "bf16x3", "fp32"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("make", [make_stylegan1, for_rosinality], ids=["official", "rosinality"])
@pytest.mark.parametrize(("resolution", "width"), [(16, 6), (128, 40)])
def test_a_small_stylegan1_gives_the_picture_of_the_processor(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, make: Any, batch: int, resolution: int, width: int, precision: Any
) -> None:
    """The widest has a streaming up-convolution in fp16, on GPUs that have one."""
    monkeypatch.setattr(fusion, "LEAST_FOLDED_SIDE", 8)
    monkeypatch.setattr(streaming_up_conv, "_LEAST_POSITIONS", 0)
    model = make(resolution=resolution, channel_base=16 * width, channel_max=width, w_dim=20, contrast=0.2)
    executor, processor = CudaExecutor(model, gpu.index, precision), CpuExecutor(model.weights)
    ws = np.random.default_rng(batch).standard_normal((batch, model.spec.num_ws, model.spec.w_dim)).astype(np.float32)
    gains = np.linspace(0.5, 1.5, len(model.spec.noise_layers), dtype=np.float32)
    for side in (resolution, resolution // 2):
        bound = executor.bind(build_plan(model.spec, PlanKey("small", "synthesis", batch, side, precision)))
        expected = processor.bind(build_plan(model.spec, PlanKey("small", "synthesis", batch, side)))
        for source in ((0, 0, 0, 0), (1, 7, 0, 0)):
            noise = gains[: 2 * int(np.log2(side)) - 2]
            inputs = {"ws": ws, "noise_source": np.array(source, np.uint32), "noise_gain": noise}
            with_graph = bound.run(inputs)["pixels"].copy()
            assert np.array_equal(bound.run(inputs, use_graph=False)["pixels"], with_graph)
            apart = np.abs(with_graph.astype(np.int32) - expected.run(inputs)["pixels"].astype(np.int32))
            assert apart.max() <= WORST[precision], f"{apart.max()} of 255 at worst, {apart.mean():.3f} on average"
    assert not executor.fallbacks
    executor.close()
    processor.close()
