"""Networks filled by a rule, and pictures that the public implementations gave for them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.model.spec import StyleGAN2Spec
from gpu_backend.model.stylegan2 import tensor_shapes
from gpu_backend.plan.mapping import build_mapping_plan
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.networks import NetworkOptions, make_spec

ROWS = {
    "skip": (-4.557636, 1.437308, 4.483002, -0.310642, -0.353463, 2.748119, 13.559152),
    "resnet": (-2.597077, 0.816592, 1.787521, -0.195681, -0.186576, 1.173216, 4.864677),
    "orig": (-5.130474, 1.786113, 3.408828, -0.356281, -0.315109, 2.279155, 9.575654),
    "conditional": (0.238526, -1.444318, 0.770172, -0.524978, -0.168677, 0.724870, 1.696942),
}


def filled(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """A * sin(1 + 0.7 k + h), h the sum of the name's characters mod 97."""
    if name.startswith("mapping.fc"):
        a = 100.0 if name.endswith("weight") else 10.0
    else:
        a = 0.1 if name.endswith(("bias", "noise_strength")) else 1.0
    k = np.arange(math.prod(shape))
    values = a * np.sin(1 + 0.7 * k + sum(map(ord, name)) % 97) + (1.0 if name.endswith("affine.bias") else 0.0)
    return values.astype(np.float32).reshape(shape)


def picture(spec: StyleGAN2Spec, c: np.ndarray | None, cutoff: int | None) -> tuple[np.ndarray, np.ndarray]:
    weights = {name: filled(name, shape) for name, shape in tensor_shapes(spec).items()}
    executor = CpuExecutor(weights, threads=1)
    z = np.random.RandomState(0).randn(1, 8).astype(np.float32)
    inputs = {"z": z} if c is None else {"z": z, "c": c}
    w = executor.bind(build_mapping_plan(spec, "filled")).run(inputs, outputs=("w",))["w"]
    ws = np.repeat(w[:, None], spec.num_ws, axis=1)
    average = weights["mapping.w_avg"]
    ws[:, :cutoff] = average + np.float32(0.7) * (ws[:, :cutoff] - average)
    outputs = executor.bind(build_synthesis_plan(spec, "filled")).run({"ws": ws}, outputs=("image",))
    image = outputs["image"].transpose(0, 3, 1, 2).copy()
    executor.close()
    return image, ws


def assert_row(image: np.ndarray, expected: tuple[float, ...]) -> None:
    places = (image[0, 0, 0, 0], image[0, 0, 1, 2], image[0, 1, 3, 5], image[0, 2, -1, -1])
    wide = image.astype(np.float64)
    found = (*places, wide.mean(), wide.std(), np.abs(wide).max())
    assert np.allclose(found, expected, atol=2e-5)


def test_the_fill_rule() -> None:
    assert np.allclose(filled("mapping.fc0.weight", (8, 8))[0, :3], (86.00694, 98.64824, 64.89374), atol=1e-4)


@pytest.mark.parametrize("architecture", ["skip", "resnet", "orig"])
def test_each_architecture(architecture: str) -> None:
    spec = make_spec(NetworkOptions(architecture=architecture, conv_clamp=256.0))  # type: ignore[arg-type]
    assert_row(picture(spec, None, None)[0], ROWS[architecture])


def test_the_conditional_network_with_clamp_and_cutoff() -> None:
    spec = make_spec(NetworkOptions(c_dim=3, embed_dim=8, conv_clamp=1.0))
    image, ws = picture(spec, np.array([[0, 1, 0]], np.float32), 2)
    assert_row(image, ROWS["conditional"])
    assert np.allclose(ws[0, 0, :4], (0.188571, 0.011182, -0.169057, -0.257648), atol=2e-6)
    assert np.allclose(ws[0, 5, :4], (0.280767, 0.300673, 0.182611, -0.003996), atol=2e-6)


def test_a_wrong_orientation_of_the_up_convolution_would_show() -> None:
    """The rows above pin the orientation only if flipping changes them."""
    spec = make_spec(NetworkOptions(conv_clamp=256.0))
    reversed_taps = replace(spec, resample_filter=(0.375, 0.375, 0.125, 0.125))
    assert np.abs(picture(reversed_taps, None, None)[0] - picture(spec, None, None)[0]).max() > 0.1
