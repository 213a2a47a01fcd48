"""StyleGAN3 networks filled by a rule, and pictures that the public implementation gave for them."""

from typing import Any

import numpy as np
import pytest

from gpu_backend import Transform
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.model.stylegan3 import tensor_shapes
from gpu_backend.plan.mapping import build_mapping_plan
from gpu_backend.plan.stylegan3 import build_synthesis_plan
from tests.gpu_backend.cpu.test_filled_networks import assert_row, filled
from tests.helpers.stylegan3 import R, StyleGAN3Options, make_spec

ROWS = {
    "T": (0.006244, 0.002595, -0.011572, -0.023648, -0.010972, 0.016688, 0.082721),
    "R": (0.001569, 0.001567, -0.012405, -0.025938, -0.012258, 0.011246, 0.025964),
}
TRANSFORM = np.reshape(Transform(0.1, -0.2, 30.0).matrix, (3, 3)).astype(np.float32)


def filled_weights(options: StyleGAN3Options) -> dict[str, np.ndarray]:
    """The rule of the other filled networks, with frequencies of 1.5, phases of 0.5 and averages around 1."""
    weights = {name: filled(name, shape) for name, shape in tensor_shapes(make_spec(options)).items()}
    weights["synthesis.input.freqs"] *= 1.5
    weights["synthesis.input.phases"] *= 0.5
    for name, values in weights.items():
        if name.endswith("magnitude_ema"):
            weights[name] = np.asarray(1 + 0.5 * values, np.float32)
    return {**weights, **options.design.filters()}


def picture(config: dict[str, Any], transform: np.ndarray) -> np.ndarray:
    options = StyleGAN3Options(conv_clamp=256.0, **config)
    spec, weights = make_spec(options), filled_weights(options)
    executor = CpuExecutor(weights, threads=1)
    z = np.random.RandomState(0).randn(1, 8).astype(np.float32)
    w = executor.bind(build_mapping_plan(spec, "filled")).run({"z": z}, outputs=("w",))["w"]
    average = weights["mapping.w_avg"]
    ws = np.repeat((average + np.float32(0.7) * (w - average))[:, None], spec.num_ws, axis=1)
    bound = executor.bind(build_synthesis_plan(spec, "filled"))
    image = bound.run({"ws": ws, "transform": transform}, outputs=("image",))["image"].transpose(0, 3, 1, 2).copy()
    executor.close()
    return image


@pytest.mark.parametrize(("name", "config"), [("T", {}), ("R", R)])
def test_each_configuration_gives_the_public_picture(name: str, config: dict[str, Any]) -> None:
    assert_row(picture(config, TRANSFORM), ROWS[name])


def test_a_transform_that_is_not_inverted_would_show() -> None:
    turned = picture({}, np.linalg.inv(TRANSFORM).astype(np.float32))
    assert np.abs(turned - picture({}, TRANSFORM)).max() > 0.01
