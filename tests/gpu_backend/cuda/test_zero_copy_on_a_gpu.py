"""Pictures whose bytes the last kernel writes to the host itself are those that are copied, byte for byte."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.cuda.running.bound_plan import CudaBoundPlan
from gpu_backend.ops.kernels import streaming_conv_tile
from gpu_backend.plan.plan import Precision
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.networks import make_stylegan2

pytestmark = pytest.mark.gpu


def opened(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, width: int, side: int, precision: Precision = "fp16"
) -> tuple[CudaExecutor, CudaBoundPlan]:
    if gpu.compile_architecture != "sm_90a":
        pytest.skip("the kernel is for Hopper")
    monkeypatch.setattr(streaming_conv_tile, "_LEAST_SIDE", 256)
    model = make_stylegan2(resolution=side, channel_base=width * side, channel_max=width, conv_clamp=256.0)
    executor = CudaExecutor(model, gpu.index, precision)
    bound = executor.bind(build_synthesis_plan(model.spec, "model", batch=1, precision=precision))
    assert bound.schedule.zero_copy is not None
    assert not executor.fallbacks
    return executor, bound


def inputs_of(bound: CudaBoundPlan, seed: int, noise: tuple[int, ...] = (0, 0, 0, 0)) -> dict[str, Any]:
    shape = next(region.shape for region in bound.schedule.regions if region.name == "ws")
    ws = 2.0 * np.random.default_rng(seed).standard_normal(shape)
    return {"ws": ws.astype(np.float32), "noise_source": np.array(noise, np.uint32)}


@pytest.mark.parametrize("precision", ["fp16", "fp8"])
@pytest.mark.parametrize(("width", "side"), [(16, 256), (32, 256), (64, 256), (24, 512), (32, 1024)])
def test_the_bytes_are_those_that_are_copied(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, width: int, side: int, precision: Precision
) -> None:
    executor, bound = opened(gpu, monkeypatch, width, side, precision)
    for seed, noise in enumerate([(0, 0, 0, 0), (1, 7, 0, 0), (0, 0, 0, 0)]):
        inputs = inputs_of(bound, seed, noise)
        alone = bound.run(inputs)
        copied = bound.run(inputs, outputs=("pixels", "image", "flags"))
        assert len(np.unique(alone["pixels"])) > 64
        assert np.array_equal(alone["pixels"], copied["pixels"])
        assert np.array_equal(bound.run(inputs, use_graph=False)["pixels"], alone["pixels"])
        assert not alone["flags"].any()
    assert bound.captures == 2
    executor.close()


def test_two_in_flight_and_one_by_one_give_the_same_and_pictures_stay(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, bound = opened(gpu, monkeypatch, 32, 512)
    inputs = [inputs_of(bound, seed) for seed in range(30)]
    alone = [bound.run(one)["pixels"] for one in inputs]
    runs = [bound.submit(one) for one in inputs]
    for picture, run in zip(alone, runs, strict=True):
        assert np.array_equal(run.wait()["pixels"], picture)
    del runs, alone, picture, run
    gc.collect()
    expected = bound.run(inputs[0])["pixels"].copy()
    for _ in range(2000):
        assert bound.run(inputs[0])["pixels"][0, 100, 100].tolist() == expected[0, 100, 100].tolist()
    assert np.array_equal(bound.run({})["pixels"], expected)
    executor.close()


def test_a_picture_that_is_not_finite_is_flagged_and_the_next_one_is_not(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, bound = opened(gpu, monkeypatch, 32, 256)
    good, bad = inputs_of(bound, 0), inputs_of(bound, 1)
    bad["ws"][..., 3] = np.nan
    for _ in range(20):
        assert bound.run(bad)["flags"].tolist() == [1]
        assert bound.run(good)["flags"].tolist() == [0]
    executor.close()
