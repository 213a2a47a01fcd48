"""Features of a discriminator by own kernels: their twins on the CPU, and the kernels on a GPU, do what torch does."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch

from gpu_backend.bench.random_discriminator import random_discriminator
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.gradients.discriminator_layers import DiscriminatorLayers
from gpu_backend.gradients.gpu.convs import choice
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
HIGH = {128: 32, 64: 64, 32: 136, 16: 8, 8: 8, 4: 8}


def pictures(count: int, side: int, channels: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.rand((count, channels, side, side), generator=torch.Generator().manual_seed(seed)) * 2 - 1


def assert_features_are_those_of(stored: DiscriminatorWeights, features: PictureFeatures, x: torch.Tensor) -> None:
    """Distances and gradients are those of the plain formula, where samples count differently."""
    wanted = pictures(len(x), x.shape[-1], x.shape[1], seed=7).to(x)
    plain = PictureFeatures(lambda free: plain_maps(stored, free))
    if isinstance(features, GpuFeatures):
        for mine, theirs in zip(features.run(x), plain_maps(stored, x.double()), strict=True):
            channels = theirs.shape[1]
            assert not mine[..., channels:].any()
            error = mine[..., :channels].permute(0, 3, 1, 2) - theirs
            assert float(error.norm()) < 5e-3 * float(theirs.norm())
    results = []
    for one, start, target in ((features, x, wanted), (plain, x.double(), wanted.double())):
        free = start.clone().requires_grad_()
        distances = one.distance(free, one.wanted(target))
        total = (distances * torch.logspace(-3, 2, len(x)).to(distances)).sum()
        (gradient,) = torch.autograd.grad(total, free)
        results.append((distances.detach(), gradient))
    (found, gradient), (exact, expected) = results
    torch.testing.assert_close(found.double(), exact, rtol=5e-3, atol=0.0)
    cosines = torch.nn.functional.cosine_similarity(gradient.double().flatten(1), expected.flatten(1))
    assert float(cosines.min()) > 0.995, "rounding turns the sign of an activation here and there"
    for mine, theirs in zip(gradient, expected, strict=True):
        assert float(mine.norm()) == pytest.approx(float(theirs.norm()), rel=2e-2)


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


def test_wide_pictures_of_few_channels_are_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_LEAST_STREAMED", 16**2)
    driver = TwinDriver()
    features = twin_features(random_discriminator(CHANNELS), driver, architecture="sm_90a", multiprocessors=4)
    for count in (2, 1):
        driver.recipes.clear()
        assert_features_are_those_of(random_discriminator(CHANNELS), features, pictures(count, 32))
        streams = [dict(recipe.defines) for recipe in driver.recipes if recipe.stem == "gradient_streaming_conv"]
        assert sum("LAYER_END" in macros for macros in streams) == 2 * 3, (
            "two blocks' first convolutions, of three runs"
        )
        assert sum(macros.get("TAPS") == "4" for macros in streams) == 2, "and on the way back"


def test_convolutions_on_hopper_end_where_a_block_has_all_of_k() -> None:
    stored = random_discriminator(HIGH)
    driver = TwinDriver()
    features = twin_features(stored, driver, architecture="sm_90a", multiprocessors=4)
    for count in (2, 1):
        assert_features_are_those_of(stored, features, pictures(count, max(HIGH)))
    ended = {recipe.stem for recipe in driver.recipes if "DISCRIMINATOR" in dict(recipe.defines)}
    assert ended == {"gradient_up_adjoint", "gradient_patch_conv"}
    assert {"gradient_narrow_up_adjoint", "gradient_narrow_up_conv"} <= {*driver.launched}


def test_one_block_is_enough() -> None:
    stored = random_discriminator({8: 8, 4: 16})
    assert_features_are_those_of(stored, twin_features(stored), pictures(2, 8))


@pytest.mark.parametrize("colours", [1, 4])
def test_pictures_of_other_colours_have_features(colours: int) -> None:
    stored = random_discriminator(ODD, img_channels=colours)
    assert_features_are_those_of(stored, twin_features(stored), pictures(2, 16, colours))


def test_near_the_wanted_picture_the_gradient_is_as_exact() -> None:
    stored = random_discriminator(CHANNELS)
    features, plain = twin_features(stored), PictureFeatures(lambda free: plain_maps(stored, free))
    wanted = pictures(1, 32)
    gradients = []
    for one, start in ((features, wanted), (plain, wanted.double())):
        free = (start + 1e-2 * pictures(1, 32, seed=3)).to(start).requires_grad_()
        distance = one.distance(free, one.wanted(start)).sum()
        gradients.append(torch.autograd.grad(distance, free)[0].double().flatten())
    assert float(torch.nn.functional.cosine_similarity(gradients[0], gradients[1], 0)) > 0.99


def test_one_wanted_picture_is_for_all_samples() -> None:
    features = twin_features(random_discriminator(ODD))
    x, wanted = pictures(2, 16), pictures(1, 16, seed=3)
    one, each = (features.distance(x, features.wanted(target)) for target in (wanted, wanted.expand(2, -1, -1, -1)))
    torch.testing.assert_close(one, each)


def test_memory_is_free_once_features_are_gone() -> None:
    driver = TwinDriver()
    features = twin_features(random_discriminator(ODD), driver)
    x = pictures(1, 16).requires_grad_()
    torch.autograd.grad(features.distance(x, features.wanted(pictures(1, 16, seed=1))).sum(), x)
    assert driver.memory
    del features
    assert not driver.memory, "without a collection"


def test_only_the_newest_distance_can_be_differentiated() -> None:
    features = twin_features(random_discriminator(ODD))
    x = pictures(1, 16).requires_grad_()
    distance = features.distance(x, features.wanted(pictures(1, 16, seed=1)))
    features.run(x.detach())
    with pytest.raises(RuntimeError, match="another one came after it"):
        torch.autograd.grad(distance.sum(), x)


def test_torch_computes_more_samples_and_features_that_are_too_large(caplog: pytest.LogCaptureFixture) -> None:
    x, target = pictures(3, 16), pictures(3, 16, seed=1)
    for scale, count in ((1.0, 3), (30.0, 2)):
        stored, driver = random_discriminator(ODD, scale=scale), TwinDriver()
        features, in_torch = twin_features(stored, driver), PictureFeatures(DiscriminatorLayers(stored, x))
        with caplog.at_level(logging.INFO):
            wanted = features.wanted(target[:count])
        found = features.distance(x[:count], wanted)
        assert torch.equal(found, in_torch.distance(x[:count], in_torch.wanted(target[:count])))
        assert ("fp32" in caplog.text) == (scale > 1.0)
        assert "discriminator_distance" not in driver.launched


def test_the_check_finds_wrong_features() -> None:
    stored, other = random_discriminator(ODD), random_discriminator(ODD, seed=1)
    features = twin_features(stored)
    exact, wrong = (DiscriminatorLayers(weights, torch.zeros(1)) for weights in (stored, other))
    assert features.check(PictureFeatures(exact)) == ""
    assert "4 x 4" in features.check(PictureFeatures(lambda x: [*exact(x)[:-1], wrong(x)[-1]]))


def test_the_gradient_at_the_wanted_picture_is_finite() -> None:
    features = twin_features(random_discriminator(ODD))
    x = pictures(1, 16).requires_grad_()
    distance = features.distance(x, features.wanted(x.detach()))
    (gradient,) = torch.autograd.grad(distance.sum(), x)
    assert float(distance.detach()) == pytest.approx(0.0, abs=1e-6)
    assert bool(gradient.isfinite().all())
    assert float(gradient.norm()) < 1e-3


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
    assert isinstance(features, GpuFeatures), caplog.text
    for one in (features, in_torch):
        assert_features_are_those_of(stored, one, pictures(2, side).cuda())


@pytest.mark.gpu
def test_captured_features_are_those_of_single_calls(gpu: Gpu) -> None:
    stored = random_discriminator({32: 16, 16: 24, 8: 40, 4: 32})
    network = differentiable_network(make_stylegan2(), device="cuda")
    for features in (
        in_torch := PictureFeatures.of_discriminator(stored, network.mean_w),
        OwnKernels(gpu).features(network, in_torch, 1),
    ):
        wanted = features.wanted(pictures(1, 32).cuda())
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
