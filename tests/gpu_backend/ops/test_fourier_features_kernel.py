"""The input of a StyleGAN3 against the reference: sines, and the convolution that mixes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.launches.fourier_features import sines
from gpu_backend.cuda.schedule import Built, Region
from gpu_backend.ops.fourier_features import FourierFeatures
from gpu_backend.plan.plan import Step
from gpu_backend.reference.fourier_features import fourier_features
from tests.helpers.gpu import run_launches
from tests.helpers.kernel_checks import assert_arguments_fit

ROLES = ("affine.weight", "affine.bias", "freqs", "phases", "weight", "transform")
SETTINGS = (
    FourierFeatures(8, 0, 6, 36, 16.0, 2.0),
    FourierFeatures(33, 1, 37, 23, 16.0, 7.5),
    FourierFeatures(512, 0, 1024, 36, 16.0, 2.0),
    FourierFeatures(40, 0, 1030, 5, 16.0, 2.0),
)
MOVED = np.array([[0.8, 0.5, 0.1], [-0.5, 0.8, -0.3], [0, 0, 1]], np.float32)


def step_of(settings: FourierFeatures) -> Step:
    return Step(
        "synthesis.input", "fourier_features", settings, ("ws", "transform"), (), {role: role for role in ROLES}
    )


def weights_of(settings: FourierFeatures) -> dict[str, NDArray[np.float32]]:
    """Weights that mix nothing, so that what comes out of the reference are the sines."""
    random = np.random.default_rng(settings.channels)
    channels = settings.channels
    weights = {
        "affine.weight": random.standard_normal((4, settings.w_dim)) * 0.5,
        "affine.bias": np.array([1, 0.2, 0, 0]),
        "freqs": random.standard_normal((channels, 2)) * settings.bandwidth,
        "phases": random.uniform(-0.5, 0.5, channels),
        "weight": np.eye(channels) * channels**0.5,
    }
    return {name: np.ascontiguousarray(array, np.float32) for name, array in weights.items()}


def built_for(settings: FourierFeatures, batch: int, half: bool) -> Built:
    return sines(step_of(settings), weights_of(settings), batch=batch, num_ws=settings.w_index + 2, half=half, y="y")


def inputs_for(settings: FourierFeatures, batch: int) -> dict[str, NDArray[Any]]:
    shape = (batch, settings.w_index + 2, settings.w_dim)
    return {"ws": np.random.default_rng(batch).standard_normal(shape, np.float32), "transform": MOVED}


def outer(settings: FourierFeatures, batch: int) -> tuple[Region, ...]:
    return tuple(Region(name, array.shape, "float32", "input") for name, array in inputs_for(settings, batch).items())


@pytest.mark.gpu
@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: f"{settings.channels}x{settings.size}")
def test_sines_are_those_of_the_reference(gpu: Gpu, settings: FourierFeatures, batch: int, half: bool) -> None:
    check(settings, batch, half)


def check(settings: FourierFeatures, batch: int, half: bool, run: Any = run_launches) -> None:
    built, inputs = built_for(settings, batch, half), inputs_for(settings, batch)
    found = run(built.launches, (*outer(settings, batch), *built.regions), built.constants, inputs, runs=2)["y"]
    weights = {name: torch.from_numpy(array).double() for name, array in weights_of(settings).items()}
    ws, transform = (torch.from_numpy(array).double() for array in inputs.values())
    expected = fourier_features(ws, transform, weights, settings).permute(0, 2, 3, 1).numpy()
    assert np.abs(found[..., : settings.channels] - expected).max() < (1e-3 if half else 5e-5)
    assert not found[..., settings.channels :].any(), "padding does not hold zeros"


@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
def test_the_launch_fits_the_kernel_and_covers_all_pixels(half: bool) -> None:
    for settings in SETTINGS:
        built = built_for(settings, 2, half)
        (launch,) = built.launches
        assert_arguments_fit(launch, (*built.regions, *outer(settings, 2)), built.constants)
        assert launch.grid[0] * 2 >= settings.size**2
        assert launch.grid[1] == 2
