"""The `fully_connected` kernel: it compiles everywhere, and on a GPU it does what the reference does."""

from __future__ import annotations

import typing

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.mapping import fully_connected_launch
from gpu_backend.cuda.schedule import Region
from gpu_backend.model.spec import Activation
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.plan import Step
from gpu_backend.reference.fully_connected import fully_connected
from tests.helpers.gpu import run_launches
from tests.helpers.kernel_checks import assert_compiles, one_each

ACTIVATIONS = typing.get_args(Activation)


def assert_as_reference(attributes: FullyConnected, batch: int) -> None:
    n, m = attributes.in_features, attributes.out_features
    random = np.random.default_rng(n + m)
    x, weight, bias = (random.standard_normal(shape, np.float32) for shape in ((batch, n), (m, n), (m,)))
    weight, bias = weight / attributes.lr_multiplier, bias * 0.3 / attributes.lr_multiplier
    step = Step(
        "mapping.fc0", "fully_connected", attributes, ("x",), ("y",), {"weight": "fc.weight", "bias": "fc.bias"}
    )
    built = fully_connected_launch(step, {"fc.weight": weight, "fc.bias": bias}, batch)
    regions = (Region("x", (batch, n), "float32", "input"), Region("y", (batch, m), "float32", "output"))
    found = run_launches(built.launches, regions, built.constants, {"x": x}, runs=2)["y"]
    tensors = (torch.from_numpy(x), torch.from_numpy(weight), torch.from_numpy(bias))
    expected = fully_connected(*tensors, attributes).numpy()
    error = np.abs(found - expected).max() / max(1.0, np.abs(expected).max())
    assert error <= 2e-6 * max(1.0, n**0.5 / 8), f"largest error {error:.2e} of the largest value"


def forms() -> list[KernelRecipe]:
    """Every activation with the register-hungriest batch, every batch with the usual activation."""
    usual = ACTIVATIONS.index("lrelu")
    pairs = [(number, 8) for number in range(len(ACTIVATIONS))] + [(usual, batch) for batch in (1, 2, 4)]
    return [
        KernelRecipe("fully_connected", (("ACTIVATION", str(number)), ("BATCH", str(batch)))) for number, batch in pairs
    ]


@pytest.mark.parametrize(("recipe", "architecture"), one_each(forms()))
def test_every_activation_and_batch_compiles_without_spills(recipe: KernelRecipe, architecture: str) -> None:
    assert_compiles(recipe, architecture, 128, is_heavy=recipe in (forms()[0], forms()[-1]))


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [1, 2, 7, 33])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 9), (8, 8), (12, 3), (100, 130), (512, 512), (1024, 512), (2050, 7)])
def test_layers_of_every_width_are_those_of_the_reference(gpu: Gpu, n: int, m: int, batch: int) -> None:
    assert_as_reference(FullyConnected(n, m, 0.01, BiasAct.of_layer("lrelu")), batch)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_with_gain_and_clamp(gpu: Gpu, name: Activation) -> None:
    assert_as_reference(FullyConnected(13, 21, 0.5, BiasAct(name, 1.7)), 3)
    assert_as_reference(FullyConnected(13, 21, 0.5, BiasAct(name, 1.7, 0.8)), 3)
