"""Features of a discriminator by own kernels: their twins on the CPU, and the kernels on a GPU, do what torch does."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.bench.random_discriminator import random_discriminator
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.gradients.discriminator_layers import DiscriminatorLayers
from gpu_backend.gradients.gpu.features import GpuFeatures
from gpu_backend.gradients.network import differentiable_network
from gpu_backend.gradients.own_kernels import OwnKernels
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.gradients.step_graph import StepGraph
from gpu_backend.model.discriminator_file import DiscriminatorWeights
from tests.helpers.discriminators import plain_maps
from tests.helpers.gradient_twins import TwinDriver
from tests.helpers.networks import make_stylegan2
from tests.helpers.twin_features import twin_features

CHANNELS = {32: 16, 16: 24, 8: 40, 4: 32}
ODD = {16: 9, 8: 13, 4: 18}
WIDE = {32: 88, 16: 136, 8: 72, 4: 136}


def pictures(count: int, side: int, channels: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.rand((count, channels, side, side), generator=torch.Generator().manual_seed(seed)) * 2 - 1


def assert_features_are_those_of(stored: DiscriminatorWeights, features: Any, x: torch.Tensor) -> None:
    results = []
    for layers, start in ((features, x), (lambda free: plain_maps(stored, free), x.double())):
        free = start.clone().requires_grad_()
        maps = layers(free)
        factors = torch.Generator().manual_seed(1)
        total = sum((y * torch.randn(y.shape, generator=factors).to(y)).mean((1, 2, 3)) for y in maps)
        (gradient,) = torch.autograd.grad((total * torch.logspace(-3, 2, len(x)).to(total)).sum(), free)
        results.append(([y.detach() for y in maps], gradient))
    (found, gradient), (wanted, exact) = results
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.shape == theirs.shape
        assert mine.is_contiguous(memory_format=torch.channels_last)
        assert float((mine - theirs).norm()) < 5e-3 * float(theirs.norm())
    cosines = torch.nn.functional.cosine_similarity(gradient.double().flatten(1), exact.flatten(1))
    assert float(cosines.min()) > 0.997
    for mine, theirs in zip(gradient, exact, strict=True):
        assert float(mine.norm()) == pytest.approx(float(theirs.norm()), rel=1e-2)


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90a"])
@pytest.mark.parametrize("multiprocessors", [1, 4, 132])
@pytest.mark.parametrize("channels", [CHANNELS, ODD, WIDE])
def test_torch_differentiates_features_of_own_kernels(
    channels: dict[int, int], multiprocessors: int, architecture: str
) -> None:
    stored = random_discriminator(channels)
    driver = TwinDriver()
    features = twin_features(stored, driver, architecture=architecture, multiprocessors=multiprocessors)
    for count in (2, 1):
        assert_features_are_those_of(stored, features, pictures(count, max(channels)))
    if architecture == "sm_90a" and channels is WIDE:
        ends = {dict(recipe.defines).get("LAYER_END") for recipe in driver.recipes}
        assert "1" in ends, "a convolution for Hopper ends its layer"
    assert "discriminator_end" in driver.launched, "there are few blocks at 4 x 4"
    assert ("discriminator_conv" in driver.launched) == (multiprocessors < 132)


@pytest.mark.parametrize("colours", [1, 4])
def test_pictures_of_other_colours_have_features(colours: int) -> None:
    stored = random_discriminator(ODD, img_channels=colours)
    assert_features_are_those_of(stored, twin_features(stored), pictures(2, 16, colours))


def test_memory_is_free_once_features_are_gone() -> None:
    driver = TwinDriver()
    features = twin_features(random_discriminator(ODD), driver)
    x = pictures(1, 16).requires_grad_()
    torch.autograd.grad(features(x)[0].sum(), x)
    assert driver.memory
    del features
    assert not driver.memory, "without a collection"


def test_only_the_newest_run_can_be_differentiated() -> None:
    features = twin_features(random_discriminator(ODD))
    x = pictures(1, 16).requires_grad_()
    maps = features(x)
    features(x)
    with pytest.raises(RuntimeError, match="another one came after it"):
        torch.autograd.grad(maps[0].sum(), x)


def test_torch_computes_more_samples_and_features_that_are_too_large(caplog: pytest.LogCaptureFixture) -> None:
    driver = TwinDriver()
    stored = random_discriminator(ODD)
    features = twin_features(stored, driver)
    x = pictures(3, 16)
    assert torch.equal(features(x)[-1], DiscriminatorLayers(stored, x)(x)[-1])
    assert not driver.launched
    large = random_discriminator(ODD, scale=30.0)
    features = twin_features(large, driver)
    with caplog.at_level(logging.INFO):
        maps = PictureFeatures(features, features.prepare).maps(x[:2])
    assert "fp32" in caplog.text
    wanted = PictureFeatures(DiscriminatorLayers(large, x)).maps(x[:2])
    for found, exact in zip(maps, wanted, strict=True):
        assert torch.equal(found, exact)


def test_the_check_finds_wrong_features() -> None:
    stored, other = random_discriminator(ODD), random_discriminator(ODD, seed=1)
    features = twin_features(stored)
    assert features.check(DiscriminatorLayers(stored, torch.zeros(1))) == ""
    assert "4 x 4" in features.check(
        lambda x: [*DiscriminatorLayers(stored, x)(x)[:-1], DiscriminatorLayers(other, x)(x)[-1]]
    )


def test_a_gradient_that_is_zero_stays_zero() -> None:
    features = twin_features(random_discriminator(ODD))
    x = pictures(1, 16).requires_grad_()
    (gradient,) = torch.autograd.grad((0.0 * features(x)[-1]).sum(), x)
    np.testing.assert_array_equal(gradient.numpy(), 0.0)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "channels",
    [
        {16: 9, 8: 13, 4: 18},
        {64: 40, 32: 136, 16: 200, 8: 72, 4: 136},
        {256: 32, 128: 64, 64: 128, 32: 256, 16: 512, 8: 512, 4: 512},
    ],
)
def test_features_on_a_gpu_are_those_of_torch(
    gpu: Gpu, channels: dict[int, int], caplog: pytest.LogCaptureFixture
) -> None:
    stored, side = random_discriminator(channels), max(channels)
    network = differentiable_network(make_stylegan2(), device="cuda")
    in_torch = PictureFeatures.of_discriminator(stored, network.mean_w)
    with caplog.at_level(logging.INFO):
        features = OwnKernels(gpu).features(network, in_torch, 2)
    assert isinstance(features.layers, GpuFeatures), caplog.text
    wanted, found = (pictures(2, side, seed=seed).cuda() for seed in (1, 2))
    assert_features_are_those_of(stored, features.layers, wanted)
    assert_features_are_those_of(stored, in_torch.layers, wanted)
    near = (wanted + 0.1 * found).requires_grad_()
    losses = []
    for one in (features, in_torch):
        loss = one.distance(near, one.maps(wanted))
        losses.append((loss.detach(), torch.autograd.grad(loss.sum(), near)[0].flatten(1)))
    torch.testing.assert_close(losses[0][0], losses[1][0], rtol=1e-2, atol=1e-4)
    assert float(torch.nn.functional.cosine_similarity(losses[0][1], losses[1][1]).min()) > 0.99


@pytest.mark.gpu
def test_captured_features_are_those_of_single_calls(gpu: Gpu) -> None:
    stored = random_discriminator({32: 16, 16: 24, 8: 40, 4: 32})
    network = differentiable_network(make_stylegan2(), device="cuda")
    for features in (
        in_torch := PictureFeatures.of_discriminator(stored, network.mean_w),
        OwnKernels(gpu).features(network, in_torch, 1),
    ):
        wanted = features.maps(pictures(1, 32).cuda())
        picture = pictures(1, 32, seed=1).cuda()

        def gradient(features: PictureFeatures = features, picture: Any = picture, wanted: Any = wanted) -> Any:
            free = picture.clone().requires_grad_()
            return torch.autograd.grad(features.distance(free, wanted).sum(), free)[0]

        expected = gradient()
        step = StepGraph(gradient, captured=True)
        for _ in range(6):
            torch.testing.assert_close(step(), expected, rtol=1e-2, atol=1e-2 * float(expected.abs().max()))
        assert step._graph is not None
        picture.copy_(pictures(1, 32, seed=2))
        torch.testing.assert_close(step(), gradient(), rtol=1e-2, atol=1e-2 * float(expected.abs().max()))
