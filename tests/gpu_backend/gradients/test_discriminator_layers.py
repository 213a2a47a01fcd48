"""A discriminator's blocks in torch: each form of them computes what the plain formula does."""

from __future__ import annotations

import logging

import pytest
import torch

from gpu_backend.bench.random_discriminator import random_discriminator
from gpu_backend.gradients.discriminator_layers import DiscriminatorLayers
from gpu_backend.gradients.picture_features import PictureFeatures
from tests.helpers.discriminators import plain_maps

CHANNELS = {32: 6, 16: 10, 8: 12, 4: 9}


def pictures(count: int = 2, side: int = 32, channels: int = 3) -> torch.Tensor:
    return torch.rand((count, channels, side, side), generator=torch.Generator().manual_seed(5)) * 2 - 1


def with_gradient(layers: object, x: torch.Tensor, scale: float = 1.0) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The maps, and the gradient of a sum of them with weights."""
    free = x.clone().requires_grad_()
    maps = layers(free)  # type: ignore[operator]
    total = sum((y * torch.linspace(-3, 3, y.numel()).view(y.shape).sin().to(y)).sum() for y in maps)
    (gradient,) = torch.autograd.grad(scale * total, free)
    return [y.detach() for y in maps], gradient


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("img_channels", [1, 3, 4])
def test_maps_and_gradients_are_those_of_the_plain_formula(img_channels: int, folded: bool) -> None:
    stored = random_discriminator(CHANNELS, img_channels=img_channels)
    x = pictures(channels=img_channels)
    wanted, gradient = with_gradient(lambda free: plain_maps(stored, free), x.double())
    exact = with_gradient(DiscriminatorLayers(stored, x.double(), folded=folded), x.double())
    torch.testing.assert_close(exact[1], gradient, rtol=1e-7, atol=1e-7)
    single = with_gradient(DiscriminatorLayers(stored, x, folded=folded), x)
    for found, other, plain in zip(exact[0], single[0], wanted, strict=True):
        torch.testing.assert_close(found, plain, rtol=1e-7, atol=1e-7)
        assert float((other - plain).abs().max()) < 1e-5 * float(plain.abs().max())
    assert float((single[1] - gradient).norm()) < 1e-4 * float(gradient.norm())


def test_the_gradient_is_the_slope_of_the_maps() -> None:
    layers = DiscriminatorLayers(random_discriminator({8: 5, 4: 6}), torch.zeros(1, dtype=torch.float64))
    x = pictures(1, 8).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda free: tuple(layers(free)), x)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_in_half_precision_maps_and_gradients_of_any_size_are_near(scale: float) -> None:
    stored = random_discriminator(CHANNELS)
    x = pictures()
    wanted, gradient = with_gradient(lambda free: plain_maps(stored, free), x.double(), scale)
    maps, found = with_gradient(DiscriminatorLayers(stored, x, in_half=True, folded=True), x, scale)
    for half, plain in zip(maps, wanted, strict=True):
        assert half.dtype == torch.float32
        assert float((half - plain).norm()) < 5e-3 * float(plain.norm())
    assert found.dtype == torch.float32
    cosine = torch.nn.functional.cosine_similarity(found.double().flatten(1), gradient.flatten(1))
    assert float(cosine.min()) > 0.997  # rounding turns the sign of an activation here and there
    assert float(found.norm()) == pytest.approx(float(gradient.norm()), rel=1e-2)


def test_features_that_are_too_large_for_half_precision_are_computed_in_single(
    caplog: pytest.LogCaptureFixture,
) -> None:
    x = pictures()
    for scale, is_logged in ((1.0, False), (30.0, True)):
        stored = random_discriminator(CHANNELS, scale=scale)
        layers = DiscriminatorLayers(stored, x, in_half=True)
        caplog.clear()
        with caplog.at_level(logging.INFO):
            maps = PictureFeatures(layers, layers.prepare).wanted(x)
        assert ("fp32" in caplog.text) == is_logged
        assert all(bool(y.isfinite().all()) for y in maps)
        assert (layers(x)[-1] == DiscriminatorLayers(stored, x)(x)[-1]).all() == is_logged


def test_a_distance_prepares_nothing_since_a_captured_step_can_read_no_number_back() -> None:
    x = pictures()
    layers = DiscriminatorLayers(random_discriminator(CHANNELS), x)
    prepared: list[torch.Tensor] = []
    features = PictureFeatures(layers, prepared.append)
    wanted = features.wanted(x)
    features.distance(x, wanted)
    assert prepared == [x]
