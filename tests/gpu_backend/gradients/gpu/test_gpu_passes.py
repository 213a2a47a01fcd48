"""Searches by own kernels: their twins on the CPU, and the kernels on a GPU, do what torch does."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend.bench.random_discriminator import random_discriminator
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.errors import DeviceError, DeviceMemoryError
from gpu_backend.gradients.encoder import PictureEncoder
from gpu_backend.gradients.gpu.features import GpuFeatures
from gpu_backend.gradients.gpu.open_network import GpuGradients, packed_network
from gpu_backend.gradients.gpu.packed_network import PackedNetwork
from gpu_backend.gradients.gpu.passes import GpuPasses
from gpu_backend.gradients.network import DifferentiableNetwork, differentiable_network
from gpu_backend.gradients.own_kernels import OwnKernels
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.gradients.picture_loss import PictureLoss
from gpu_backend.gradients.projection import Projection
from gpu_backend.gradients.projection_settings import ProjectionSettings
from gpu_backend.model.model import Model
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.gradient_twins import TwinDriver, twin_kernels
from tests.helpers.networks import make_stylegan2
from tests.helpers.twin_features import twin_features


@pytest.fixture(scope="module")
def model() -> Model:
    return make_stylegan2(resolution=16, channel_max=20, channel_base=320, w_dim=12)


@pytest.fixture(scope="module")
def network(model: Model) -> DifferentiableNetwork:
    return differentiable_network(model)


def twin_passes(network: DifferentiableNetwork, driver: TwinDriver | None = None, samples: int = 2) -> GpuPasses:
    driver = driver or TwinDriver()
    side = network.spec.resolution
    gpu = GpuGradients(packed_network(network, side), driver.as_driver(), twin_kernels(4), FAKE_GPU, samples=samples)
    return GpuPasses(gpu, network.device)


def rows_of(network: DifferentiableNetwork, count: int = 2) -> torch.Tensor:
    shape = count, network.spec.num_ws, network.spec.w_dim
    return torch.from_numpy(np.random.default_rng(3).standard_normal(shape).astype(np.float32)).to(network.device)


def cosines(found: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cosine_similarity(found.flatten(1), wanted.flatten(1))


def assert_passes_are_those_of(network: DifferentiableNetwork, passes: GpuPasses) -> None:
    results = []
    for run in (passes, network):
        for of_picture in (True, False):
            rows = rows_of(network).requires_grad_()
            found = run.picture(rows) if of_picture else run.features(rows, 8)
            factor = torch.linspace(-1, 1, found.numel()).view(found.shape).sin().to(found)
            (gradient,) = torch.autograd.grad((found * factor).sum(), rows)
            results.append((found.detach(), gradient))
    for (found, gradient), (wanted, wanted_gradient) in zip(results[:2], results[2:], strict=True):
        assert found.shape == wanted.shape
        assert float((found - wanted).abs().max()) < 1e-2 * float(wanted.abs().max())
        assert float(cosines(gradient, wanted_gradient).min()) > 0.999


def test_torch_differentiates_passes_of_own_kernels(network: DifferentiableNetwork) -> None:
    assert_passes_are_those_of(network, twin_passes(network))


def test_channels_that_are_padded_are_not_seen() -> None:
    odd = differentiable_network(make_stylegan2(resolution=16, channels={4: 18, 8: 18, 16: 12}))
    assert_passes_are_those_of(odd, twin_passes(odd))


def test_memory_is_free_once_passes_are_gone(network: DifferentiableNetwork) -> None:
    driver = TwinDriver()
    passes = twin_passes(network, driver)
    rows = rows_of(network).requires_grad_()
    torch.autograd.grad(passes.picture(rows).sum(), rows)
    assert driver.memory
    del passes
    assert not driver.memory, "without a collection"


def test_only_the_newest_pass_can_be_differentiated(network: DifferentiableNetwork) -> None:
    passes = twin_passes(network)
    rows = rows_of(network).requires_grad_()
    picture = passes.picture(rows)
    with torch.no_grad():
        passes.picture(rows)
    with pytest.raises(RuntimeError, match="another one came after it"):
        torch.autograd.grad(picture.sum(), rows)


def features_of(network: DifferentiableNetwork) -> PictureFeatures:
    w = network.mean_w
    return PictureFeatures.of_encoder(PictureEncoder.fresh(64, w, torch.ones_like(w)))


def assert_loss_is_that_of_torch(network: DifferentiableNetwork, passes: GpuPasses, side: int) -> None:
    generator = np.random.default_rng(side)
    wanted, found = (
        torch.from_numpy(generator.uniform(-1, 1, (2, 3, side, side)).astype(np.float32)).to(network.device)
        for _ in range(2)
    )
    near = (wanted + 0.2 * found).requires_grad_()
    features = features_of(network) if side >= 64 else None
    results = []
    for terms in (None, passes.terms):
        loss, factors = PictureLoss(wanted, features, terms), torch.tensor([1.0, 3.0]).to(near)
        losses = loss(near)
        (gradient,) = torch.autograd.grad((losses * factors).sum(), near)
        results.append((losses.detach().cpu().numpy(), gradient))
        same, alone = loss.with_gradient(near.detach())
        torch.testing.assert_close(same, losses.detach())
        assert float((alone * factors[:, None, None, None] - gradient).norm()) < 1e-3 * float(gradient.norm())
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-3)
    assert float(cosines(results[1][1], results[0][1]).min()) > 0.9999
    assert float(results[1][1].norm()) == pytest.approx(float(results[0][1].norm()), rel=1e-2)


@pytest.mark.parametrize("side", [4, 16, 45, 64])
def test_the_loss_and_its_gradient_are_those_of_torch(network: DifferentiableNetwork, side: int) -> None:
    assert_loss_is_that_of_torch(network, twin_passes(network), side)


def test_maps_with_channels_last_are_compared_alike(network: DifferentiableNetwork) -> None:
    terms = twin_passes(network).terms
    x, wanted = torch.from_numpy(np.random.default_rng(1).standard_normal((2, 2, 10, 5, 7)).astype(np.float32))
    found = []
    for order in (torch.contiguous_format, torch.channels_last):
        free = x.contiguous(memory_format=order).requires_grad_()
        losses = terms.map(free, wanted, 1e-3)
        (gradient,) = torch.autograd.grad(losses.sum(), free)
        found.append((losses.detach().numpy(), gradient.numpy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


class Scripted:
    """Own kernels that open twins."""

    def __init__(self) -> None:
        self.driver = TwinDriver()
        self.problem = ""
        self.opened: list[tuple[int, int, int]] = []

    def passes(self, network: DifferentiableNetwork, samples: int, *, draft_side: int, draft_samples: int) -> GpuPasses:
        self.opened.append((samples, draft_side, draft_samples))
        return twin_passes(network, self.driver, samples)

    def features(self, network: DifferentiableNetwork, features: PictureFeatures, samples: int) -> PictureFeatures:
        assert features.discriminator is not None
        return twin_features(features.discriminator, self.driver, samples)


def gains(projection: Projection) -> np.ndarray[Any, Any]:
    """Return how many dB nearer each picture is at the end than the best random latent."""
    before = projection.psnr()
    while not projection.step().is_done:
        if projection.report.stage == "random":
            before = projection.psnr()
    return np.subtract(projection.psnr(), before)


def test_a_search_by_own_kernels_finds_what_torch_finds(model: Model) -> None:
    network = differentiable_network(model)
    with torch.no_grad():
        targets = network.picture(rows_of(network)).clamp(-1, 1).numpy()

    settings = ProjectionSettings(steps=40, candidates=8)
    by_torch = gains(Projection(network, targets, settings))
    network.own_kernels = kernels = Scripted()  # type: ignore[assignment]
    assert (gains(Projection(network, targets, settings)) > 0.5 * by_torch).all()
    assert kernels.opened == [(2, 0, 2)]
    assert {"gradient_picture_adjoint", "gradient_pixels"} <= set(kernels.driver.launched)


def test_a_search_by_features_of_own_kernels_finds_what_torch_finds(model: Model) -> None:
    network = differentiable_network(model)
    with torch.no_grad():
        targets = network.picture(rows_of(network)).clamp(-1, 1).numpy()

    settings = ProjectionSettings(steps=40, candidates=8)
    stored = random_discriminator({16: 12, 8: 20, 4: 24})
    features = PictureFeatures.of_discriminator(stored, network.mean_w)
    by_torch = gains(Projection(network, targets, settings, None, features))
    network.own_kernels = kernels = Scripted()  # type: ignore[assignment]
    assert (gains(Projection(network, targets, settings, None, features)) > 0.5 * by_torch).all()
    assert {"discriminator_rgb_adjoint", "discriminator_distance"} <= set(kernels.driver.launched)


def test_torch_searches_where_kernels_fail(
    network: DifferentiableNetwork, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    on_gpu = differentiable_network(make_stylegan2())
    errors: list[DeviceError] = [DeviceMemoryError("No memory is left."), DeviceError("It computes other gradients.")]
    asked: list[bool] = []

    def fail(*_: object, is_checked: bool, **_more: object) -> GpuGradients:
        asked.append(is_checked)
        raise errors[len(asked) - 1]

    monkeypatch.setattr("gpu_backend.gradients.gpu.open_network.open_gpu_gradients", fail)
    kernels = OwnKernels(FAKE_GPU)
    assert kernels.passes(on_gpu, 1, draft_side=0, draft_samples=1) is None
    assert not asked, "torch is on the processor"
    on_gpu.device = torch.device("cuda")
    with caplog.at_level(logging.INFO):
        for _ in range(4):
            assert kernels.passes(on_gpu, 1, draft_side=0, draft_samples=1) is None
    assert asked == [False, False], "memory may be free later; a wrong gradient stays wrong"
    assert "It computes other gradients." in caplog.text
    assert not kernels.problem, "drags are checked by themselves"


def test_a_second_search_neither_checks_kernels_nor_packs_weights_again(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    placed: list[PackedNetwork] = []

    def opened(
        network: DifferentiableNetwork, gpu: Gpu, packed: PackedNetwork, *, is_checked: bool, **_more: object
    ) -> GpuGradients:
        seen.append(is_checked)
        placed.append(packed)
        return GpuGradients(packed, TwinDriver().as_driver(), twin_kernels(4), gpu)

    monkeypatch.setattr("gpu_backend.gradients.gpu.open_network.open_gpu_gradients", opened)
    monkeypatch.setattr("gpu_backend.gradients.gpu.passes.GpuPasses.__init__", lambda *_: None)
    on_gpu = differentiable_network(make_stylegan2())
    on_gpu.device = torch.device("cuda")
    kernels = OwnKernels(FAKE_GPU)
    for _ in range(2):
        assert kernels.passes(on_gpu, 1, draft_side=0, draft_samples=1) is not None
    assert seen == [False, True]
    assert placed[0] is placed[1]
    assert placed[0].side == on_gpu.spec.resolution


def test_the_check_finds_a_wrong_gradient_of_pictures(network: DifferentiableNetwork) -> None:
    gpu = GpuGradients(packed_network(network, 16), TwinDriver().as_driver(), twin_kernels(4), FAKE_GPU)
    assert gpu.check(network, of_picture=True) == ""
    wrong = differentiable_network(make_stylegan2(resolution=16, channel_max=20, channel_base=320, w_dim=12, seed=5))
    assert "cosine" in gpu.check(wrong, of_picture=True)


def test_the_check_leaves_out_a_gradient_of_which_only_rounding_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of the two channels of a layer, which demodulation makes all but independent of their style.
    network = differentiable_network(make_stylegan2(resolution=64, w_dim=16))
    gpu = GpuGradients(packed_network(network, 64), TwinDriver().as_driver(), twin_kernels(4), FAKE_GPU)
    assert gpu.check(network, of_picture=True) == ""
    monkeypatch.setattr("gpu_backend.gradients.gpu.open_network._LEAST_SIZE", 0.0)
    assert "row 6" in gpu.check(network, of_picture=True)


@pytest.mark.gpu
def test_passes_and_losses_on_a_gpu_are_those_of_torch(gpu: Gpu) -> None:
    network = differentiable_network(
        make_stylegan2(resolution=64, channel_max=40, channel_base=1280, w_dim=24), device="cuda"
    )
    passes = OwnKernels(gpu).passes(network, 2, draft_side=8, draft_samples=4)
    assert passes is not None
    assert_passes_are_those_of(network, passes)
    for side in (4, 16, 45, 64):
        assert_loss_is_that_of_torch(network, passes, side)


@pytest.mark.parametrize("is_fatal", [True, False])
def test_torch_computes_features_where_kernels_fail(
    is_fatal: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    on_gpu = differentiable_network(make_stylegan2())
    stored = random_discriminator({16: 8, 8: 8, 4: 8})
    features = PictureFeatures.of_discriminator(stored, on_gpu.mean_w)
    checked: list[bool] = []

    def fail(*arguments: object) -> GpuFeatures:
        checked.append(arguments[-1] is not None)
        raise (DeviceError if is_fatal else DeviceMemoryError)("It computes other features.")

    monkeypatch.setattr("gpu_backend.gradients.gpu.features.open_gpu_features", fail)
    kernels = OwnKernels(FAKE_GPU)
    assert kernels.features(on_gpu, features, 1) is features
    assert not checked, "torch is on the processor"
    on_gpu.device = torch.device("cuda")
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            assert kernels.features(on_gpu, features, 1) is features
    assert checked == [True] * (1 if is_fatal else 2), "memory may be free later; wrong features stay wrong"
    assert "It computes other features." in caplog.text
    encoder = features_of(on_gpu)
    assert kernels.features(on_gpu, encoder, 1) is encoder


def test_features_that_passed_their_check_are_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu = differentiable_network(make_stylegan2())
    on_gpu.device = torch.device("cuda")
    stored = random_discriminator({16: 8, 8: 8, 4: 8})
    features = PictureFeatures.of_discriminator(stored, on_gpu.mean_w)
    seen: list[tuple[object, bool]] = []

    def opened(*arguments: object) -> GpuFeatures:
        seen.append((arguments[0], arguments[-1] is not None))
        return twin_features(stored)

    monkeypatch.setattr("gpu_backend.gradients.gpu.features.open_gpu_features", opened)
    kernels = OwnKernels(FAKE_GPU)
    for _ in range(2):
        assert isinstance(kernels.features(on_gpu, features, 2), GpuFeatures)
    assert [is_checked for _, is_checked in seen] == [True, False]
    assert seen[0][0] is seen[1][0], "weights are packed once"


@pytest.mark.gpu
def test_a_search_on_a_gpu_finds_what_torch_finds(gpu: Gpu) -> None:
    network = differentiable_network(make_stylegan2(resolution=64, w_dim=16, conv_clamp=256.0), device="cuda")
    with torch.no_grad():
        targets = network.picture(rows_of(network)).clamp(-1, 1).cpu().numpy()

    settings, features = ProjectionSettings(steps=60, candidates=16), features_of(network)
    by_torch = gains(Projection(network, targets, settings, None, features))
    network.own_kernels = OwnKernels(gpu)
    assert (gains(Projection(network, targets, settings, None, features)) > 0.5 * by_torch).all()
    assert not network.own_kernels._searches
