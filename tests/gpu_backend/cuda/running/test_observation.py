from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.cuda.compiling.compilation import Compilation
from gpu_backend.cuda.compiling.compiler import CompiledKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.cuda.launches.conv_op import upsampled
from gpu_backend.cuda.running.self_check import SelfCheckRecord
from gpu_backend.model.model import Model
from gpu_backend.plan import fusion
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.mapping import build_mapping_plan
from gpu_backend.plan.plan import Plan, PlanKey
from gpu_backend.reference.upfirdn import double
from tests.helpers.fake_gpu import COMPARISON, FAKE_GPU, FakeDriver, FakeKernel
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import R, make_stylegan3

_STEMS = (
    "styles modulated_conv modulated_up_conv plain_modulated_conv plain_modulated_up_conv plain_to_rgb to_rgb "
    "fully_connected normalize_2nd_moment concat empty fourier_features filtered_lrelu plain_filtered_lrelu "
    "adain_input adain fold_adain plain_adain plain_adain_moments"
)


@pytest.fixture(autouse=True)
def _small_layers_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion, "LEAST_FOLDED_SIDE", 128)


def idle_executor(model: Any, folder: Path, precision: Any = "fp16") -> CudaExecutor:
    """An executor whose kernels do nothing, over the real schedules."""
    idle = FakeKernel(lambda *_, **__: None)

    def compiled(recipes: Any, architecture: str) -> Compilation:
        return Compilation({recipe: CompiledKernel(b"", 1, 0, 0) for recipe in recipes}, {})

    return CudaExecutor(
        model,
        precision=precision,
        driver=FakeDriver({"comparison": COMPARISON, **dict.fromkeys(_STEMS.split(), idle)}),
        gpu=FAKE_GPU,
        record=SelfCheckRecord(folder, "idle"),
        compiled=compiled,
    )


def synthesis_plan(model: Any, precision: Any, batch: int = 1) -> Plan:
    return build_plan(model.spec, PlanKey(model.facts.model_id, "synthesis", batch, model.spec.resolution, precision))


NETWORKS: dict[str, Callable[[], Model]] = {
    "skip": make_stylegan2,
    "resnet": lambda: make_stylegan2(architecture="resnet"),
    "orig": lambda: make_stylegan2(architecture="orig"),
    "T": make_stylegan3,
    "R": lambda: make_stylegan3(**R),
    "AdaIN": lambda: make_stylegan1(resolution=128, channel_base=1024, channel_max=12),
    "AdaIN, small": make_stylegan1,
}


@pytest.mark.parametrize("network", list(NETWORKS))
@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_the_same_layers_are_observed_as_on_the_cpu(tmp_path: Path, network: str, precision: str) -> None:
    model = NETWORKS[network]()
    ws = np.zeros((1, model.spec.num_ws, model.spec.w_dim), np.float32)
    cpu = CpuExecutor(model.weights)
    expected = cpu.bind(synthesis_plan(model, "fp32")).observe({"ws": ws})
    executor = idle_executor(model, tmp_path, precision)
    observed = executor.bind(synthesis_plan(model, precision)).observe({"ws": ws})
    assert [(name, array.shape, array.dtype) for name, array in observed.items()] == [
        (name, array.shape, array.dtype) for name, array in expected.items()
    ]
    executor.close()
    cpu.close()


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_real_plans_bind_and_run(tmp_path: Path, precision: str) -> None:
    model = make_stylegan2(c_dim=3)
    executor = idle_executor(model, tmp_path, precision)
    synthesis = executor.bind(synthesis_plan(model, precision, batch=3))
    ws = np.zeros((model.spec.num_ws, model.spec.w_dim), np.float32)
    pending = synthesis.submit({"ws": ws}, measure=True)
    assert pending.wait()["pixels"].shape == (3, 16, 16, 4)
    assert len(pending.steps) == len(synthesis.schedule.launches)
    mapping = executor.bind(
        build_mapping_plan(model.spec, model.facts.model_id, batch=2, precision=precision)  # type: ignore[arg-type]
    )
    inputs = {"z": np.zeros((2, 8), np.float32), "c": np.zeros((2, 3), np.float32)}
    assert mapping.run(inputs, outputs=("w",))["w"].shape == (2, 8)
    assert mapping.observe(inputs) == {}
    executor.close()


@pytest.mark.parametrize("taps", [(0.25, 0.75, 0.75, 0.25), (0.5, 0.5), (1.0,), (0.1, 0.2, 0.4, 0.2, 0.1)])
def test_doubling_is_the_references(taps: tuple[float, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 6)).astype(np.float32)
    assert np.allclose(upsampled(x, taps), double(torch.from_numpy(x), taps).numpy(), atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("network", list(NETWORKS))
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("fp16", 1e-2)])
def test_layers_give_what_they_give_on_the_cpu(
    gpu: Gpu, tmp_path: Path, network: str, precision: Any, tolerance: float
) -> None:
    model = NETWORKS[network]()
    shape = (1, model.spec.num_ws, model.spec.w_dim)
    ws = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    cpu = CpuExecutor(model.weights)
    expected = cpu.bind(synthesis_plan(model, "fp32")).observe({"ws": ws})
    executor = CudaExecutor(model, gpu.index, precision, record=SelfCheckRecord(tmp_path, gpu.uuid))
    observed = executor.bind(synthesis_plan(model, precision)).observe({"ws": ws})
    apart = {
        name: float(np.linalg.norm(observed[name] - value) / np.linalg.norm(value)) for name, value in expected.items()
    }
    assert executor.fallbacks == {}
    assert max(apart.values()) < tolerance, apart
    executor.close()
    cpu.close()
