"""Every layer of small networks, shown by the GPU and by the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.model.model import Model
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import R, make_stylegan3

pytestmark = pytest.mark.gpu

OUTPUTS = ("pixels", "flags", "statistics", "values")
WORST = {"fp16": 4, "tf32": 4, "bf16x3": 1, "fp32": 1}
"""Of 255, at a pixel of a normalised channel."""
ERROR = {"fp16": 3e-2, "tf32": 3e-2, "bf16x3": 1e-4, "fp32": 1e-5}
"""Of the largest magnitude."""
WIDE: dict[str, Any] = {"conv_clamp": 256.0, "resolution": 32, "channel_base": 2048, "channel_max": 72}
MODELS: dict[str, Callable[[], Model]] = {
    "skip": lambda: make_stylegan2(**WIDE),
    "resnet": lambda: make_stylegan2(architecture="resnet", **WIDE),
    "orig": lambda: make_stylegan2(architecture="orig", **WIDE),
    "T": lambda: make_stylegan3(conv_clamp=256.0, w_dim=20),
    "R": lambda: make_stylegan3(conv_clamp=256.0, w_dim=20, **R),
    "AdaIN": lambda: make_stylegan1(resolution=128, channel_base=1024, channel_max=12),
}


def inputs_for(model: Model, places: tuple[int, ...], batch: int) -> dict[str, NDArray[Any]]:
    ws = np.random.default_rng(batch).standard_normal((batch, model.spec.num_ws, model.spec.w_dim))
    return {"ws": ws.astype(np.float32), "tap": np.array((*places, 1, 1), np.float32)}


@pytest.mark.parametrize("precision", ["fp16", "tf32", "bf16x3", "fp32"])
@pytest.mark.parametrize(
    ("name", "batch"), [("skip", 1), ("skip", 3), ("resnet", 2), ("orig", 1), ("T", 2), ("R", 1), ("AdaIN", 2)]
)
def test_every_layer_is_shown_as_by_the_processor(gpu: Gpu, name: str, batch: int, precision: Any) -> None:
    model = MODELS[name]()
    executor, processor = CudaExecutor(model, gpu.index, precision), CpuExecutor(model.weights)
    for layer in model.facts.layers:
        places = (layer.channels - 1, 0, layer.channels // 2)
        inputs = inputs_for(model, places, batch)
        bound = executor.bind(
            build_plan(model.spec, PlanKey("small", "synthesis", batch, layer.side, precision, layer.name))
        )
        expected = processor.bind(
            build_plan(model.spec, PlanKey("small", "synthesis", batch, layer.side, tap=layer.name))
        )
        wanted = expected.run(inputs, outputs=OUTPUTS)
        found = {key: array.copy() for key, array in bound.run(inputs, outputs=OUTPUTS).items()}
        apart = np.abs(found["pixels"].astype(np.int32) - wanted["pixels"].astype(np.int32))
        assert apart.max() <= WORST[precision], f"{layer.name}: {apart.max()} of 255"
        for key in ("values", "statistics"):
            error = np.abs(found[key] - wanted[key]).max() / np.abs(wanted[key]).max()
            assert error <= ERROR[precision], f"{layer.name}: {key} off by {error:.1e}"
        assert not found["flags"].any()
        without = bound.run({}, outputs=OUTPUTS, use_graph=False)
        for key, array in without.items():
            assert array.tobytes() == found[key].tobytes(), f"{layer.name}: {key} with a graph and without"
        assert bound.captures == 1
        bound.close()
        expected.close()
    assert not executor.fallbacks
    executor.close()
    processor.close()


def test_a_gesture_on_channels_and_gain_captures_nothing_and_shows_what_it_asks_for(gpu: Gpu) -> None:
    model = MODELS["skip"]()
    executor = CudaExecutor(model, gpu.index, "fp16")
    bound = executor.bind(build_plan(model.spec, PlanKey("small", "synthesis", 1, 32, "fp16", "b32.conv0")))
    bound.run(inputs_for(model, (0, 0, 0), 1), outputs=OUTPUTS)
    first = bound.run({"tap": np.array((5, 9, 9, 1, 0), np.float32)}, outputs=OUTPUTS)["pixels"]
    swapped = bound.run({"tap": np.array((9, 5, 5, 1, 0), np.float32)}, outputs=OUTPUTS)["pixels"]
    assert not np.array_equal(first, swapped)
    np.testing.assert_array_equal(first[..., 2], swapped[..., 1])
    np.testing.assert_array_equal(first[..., 0], swapped[..., 2])
    dark = bound.run({"tap": np.array((9, 5, 5, 1e-10, 0), np.float32)}, outputs=OUTPUTS)["pixels"]
    assert (dark[..., :3] == 128).all()
    assert bound.captures == 1
    executor.close()
