"""Gradients by own kernels' twins on the CPU, and by the kernels on a GPU, against torch in fp64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.driver.interface import Driver, LoadedKernel
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.gradients.gpu.kernels import kernels_of_step
from gpu_backend.gradients.gpu.network import GpuNetwork
from gpu_backend.gradients.network import DifferentiableNetwork, differentiable_network
from gpu_backend.model.model import Model
from gpu_backend.model.spec import Architecture, StyleGAN2Spec
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.golden import CASES, Golden
from tests.helpers.gradient_twins import TwinDriver, twin_kernels
from tests.helpers.networks import make_stylegan2

WIDE: dict[str, Any] = {"channel_max": 32, "channel_base": 512}
"""Wide enough that the sign of one activation, turned by rounding, does not show."""
UGLY: dict[str, dict[str, Any]] = {
    "odd channels": {"channels": {4: 36, 8: 28, 16: 25}},
    "clamp": {"conv_clamp": 2.0} | WIDE,
    "lopsided filter": {"fir": (1, 2, 5, 1)} | WIDE,
    "five taps": {"fir": (1, 4, 6, 4, 1)} | WIDE,
    "orig": {"architecture": "orig"} | WIDE,
    "no noise": {"use_noise": False} | WIDE,
    "two taps, wide w": {"fir": (1, 1), "w_dim": 40} | WIDE,
}


def network_on(
    driver: Driver,
    kernels: Mapping[KernelRecipe, LoadedKernel],
    network: DifferentiableNetwork,
    model: Model,
    side: int,
) -> GpuNetwork:
    noise = {name: picture[0].float().numpy() for name, picture in network.noise.items()}
    spec = model.spec
    assert isinstance(spec, StyleGAN2Spec)
    return GpuNetwork(driver, kernels, spec, model.weights, noise, side, 132)


def gradient_of_a_drag(features: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a drag's loss: a patch is compared with its neighbour, the whole with features before."""
    side = features.shape[-1]
    gradient = 0.3 * (features - before).sign() / features[0].numel()
    at = slice(side // 2, side // 2 + 3)
    there = features[:, :, at, side // 2 + 1 : side // 2 + 4]
    gradient[:, :, at, at] += (there - features[:, :, at, at]).sign() / (9 * features.shape[1])
    return gradient


def compared(own: GpuNetwork, driver: Driver, network: DifferentiableNetwork, block: int) -> tuple[float, list[float]]:
    """Return the features' largest error, and the cosine of each row's gradient, which has the right length."""
    spec, generator = own.spec, np.random.default_rng(1)
    ws = (network.mean_w.numpy() + 0.5 * generator.standard_normal((spec.num_ws, spec.w_dim))).astype(np.float32)
    driver.upload(own.ws, ws)
    own.forward(block)
    address, used, channels = own.features(block)
    features = np.empty((block, block, channels), np.float16)
    driver.download(features, address)
    free = torch.from_numpy(ws).to(network.dtype)[None].requires_grad_()
    wanted = network.features(free, block)
    before = network.features(0.97 * free.detach() + 0.03 * network.mean_w, block)
    gradient = gradient_of_a_drag(wanted.detach(), before.detach())
    (rows,) = torch.autograd.grad((wanted * gradient).sum(), free)
    whole = np.zeros((block, block, channels), np.float32)
    whole[..., :used] = gradient[0].permute(1, 2, 0).numpy()
    place = driver.reserve(whole.nbytes)
    driver.upload(place, whole)
    own.backward(block, place)
    found = np.empty((spec.num_ws, spec.w_dim), np.float32)
    driver.download(found, own.ws_gradient)
    driver.release(place)
    cosines = []
    for mine, theirs in zip(found, rows[0].numpy(), strict=True):
        size = float(np.linalg.norm(theirs))
        if size == 0.0:
            assert not mine.any()
            continue
        assert np.linalg.norm(mine) == pytest.approx(size, rel=0.05)
        cosines.append(float(mine @ theirs) / size / float(np.linalg.norm(mine)))
    expected = wanted[0].detach().permute(1, 2, 0).numpy()
    return float(np.abs(features[..., :used] - expected).max() / np.abs(expected).max()), cosines


@pytest.mark.parametrize("name", UGLY)
def test_the_twins_have_the_features_and_the_gradient_of_torch(name: str) -> None:
    model = make_stylegan2(**UGLY[name])
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    kernels = twin_kernels(len(model.spec.resample_filter))
    own = network_on(driver.as_driver(), kernels, network, model, 16)
    error, cosines = compared(own, driver.as_driver(), network, 16)
    assert error < 3e-3
    assert min(cosines) > 0.998
    own.close()
    assert not driver.memory, "everything is freed"


def test_an_earlier_block_runs_the_layers_up_to_it_alone() -> None:
    model = make_stylegan2(**WIDE)
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4), network, model, 16)
    error, cosines = compared(own, driver.as_driver(), network, 8)
    assert error < 3e-3
    assert min(cosines) > 0.998
    assert driver.launched.count("gradient_layer") == 3


@pytest.mark.parametrize("architecture", ["skip", "orig"])
def test_the_twins_have_the_pictures_of_torch(architecture: Architecture) -> None:
    model = make_stylegan2(architecture=architecture)
    network = differentiable_network(model, dtype=torch.float64)
    driver = TwinDriver()
    own = network_on(driver.as_driver(), twin_kernels(4), network, model, 16)
    ws = np.tile(model.mean_w, (model.spec.num_ws, 1))
    driver.upload(own.ws, ws)
    for side in network.picture_resolutions:
        own.forward(side, with_pictures=True)
        found = np.empty((1, 3, side, side), np.float32)
        driver.download(found, own.picture(side))
        wanted = network.picture(torch.from_numpy(ws).double()[None], side).detach().numpy()
        assert found == pytest.approx(wanted, abs=5e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*CASES, *UGLY])
def test_the_kernels_have_the_gradient_of_torch_in_every_row(gpu: Gpu, name: str) -> None:
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    model = make_stylegan2(**UGLY[name]) if name in UGLY else Golden(name).model
    assert isinstance(model.spec, StyleGAN2Spec)
    network = differentiable_network(model, dtype=torch.float64)
    wanted = kernels_of_step(len(model.spec.resample_filter))
    driver = GpuDriver(gpu.index)
    driver.enter()
    compiled = compile_kernels(wanted, gpu.compile_architecture)
    assert not compiled.failures
    kernels = {recipe: driver.load(kernel.cubin, recipe) for recipe, kernel in compiled.kernels.items()}
    side = model.spec.resolution
    own = network_on(driver, kernels, network, model, side)
    error, cosines = compared(own, driver, network, side)
    own.close()
    driver.close()
    assert error < 3e-3
    print(name, [f"{cosine:.6f}" for cosine in cosines])  # noqa: T201 - kept with the test's result
    assert min(cosines) > (0.998 if name in UGLY else 0.999)
