"""Differentiable networks against the reference functions in float64: values, gradients of w rows and of noise."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from gpu_backend import CancelledError, Model, Noise, RequestError
from gpu_backend.gradients.network import NoisePictures, cancelled_by, differentiable_network
from gpu_backend.model.spec import StyleGAN1Spec, StyleGAN2Spec
from gpu_backend.reference.stylegan1 import run_stylegan1
from gpu_backend.reference.stylegan3 import run_stylegan3
from gpu_backend.reference.synthesis import run_synthesis
from tests.helpers.golden import CASES, Golden
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import StyleGAN3Options, make_stylegan3

SMALL = {
    "skip": make_stylegan2(architecture="skip"),
    "resnet": make_stylegan2(architecture="resnet", seed=1),
    "orig": make_stylegan2(architecture="orig", seed=2),
    "odd channels": make_stylegan2(resolution=32, channels={4: 5, 8: 7, 16: 3, 32: 1}, seed=3),
    "one channel, other filter": make_stylegan2(img_channels=1, fir=(1, 2, 3, 2, 1, 1), seed=4),
    "clamped": make_stylegan2(conv_clamp=0.8, seed=5),
    "clamped resnet": make_stylegan2(architecture="resnet", conv_clamp=0.8, seed=6),
    "swish": make_stylegan2(activation="swish", seed=7),
    "no noise": make_stylegan2(use_noise=False, seed=8),
    "wide": make_stylegan2(channels={4: 2, 8: 192, 16: 200}, seed=10),
    "4 x 4": make_stylegan2(resolution=4, seed=9),
}
OTHERS = {
    "stylegan1": make_stylegan1(),
    "stylegan3 T": make_stylegan3(StyleGAN3Options(num_layers=4)),
    "stylegan3 R": make_stylegan3(StyleGAN3Options(num_layers=4, kernel=1, is_radial=True)),
}


def random_rows(model: Model, batch: int = 2) -> Tensor:
    shape = (batch, model.spec.num_ws, model.spec.w_dim)
    return torch.from_numpy(np.random.default_rng(5).standard_normal(shape))


def reference_layers(model: Model, ws: Tensor, noise: NoisePictures | None = None) -> dict[str, Tensor]:
    """Every layer's output by the reference in the precision of ws, and the picture under an empty name."""
    observed: dict[str, Tensor] = {}
    weights = {name: torch.from_numpy(array).to(ws.dtype) for name, array in model.weights.items()}
    if isinstance(model.spec, StyleGAN2Spec):
        observed[""] = run_synthesis(model.spec, weights, ws, noise, observed=observed)
    elif isinstance(model.spec, StyleGAN1Spec):
        observed[""] = run_stylegan1(model.spec, weights, ws, noise, observed=observed)
    else:
        observed[""] = run_stylegan3(model.spec, weights, ws, observed=observed)
    return observed


def reference_features(model: Model, ws: Tensor, block: int) -> Tensor:
    observed = reference_layers(model, ws)
    features = observed[f"synthesis.b{block}.conv1"]
    skipped = observed.get(f"synthesis.b{block}.skip")
    return features if skipped is None else features + skipped


def gradient(ws: Tensor, value: Tensor) -> Tensor:
    """The gradient of a sum with weights that differ from element to element."""
    weights = torch.from_numpy(np.random.default_rng(1).standard_normal(tuple(value.shape))).to(value.dtype)
    (found,) = torch.autograd.grad((value * weights).sum(), ws)
    return found


def assert_rows_agree(found: Tensor, expected: Tensor, least: float = 0.9999) -> None:
    for sample in range(expected.shape[0]):
        largest = float(expected[sample].norm(dim=1).max())
        for row in range(expected.shape[1]):
            ours, theirs = found[sample, row].double(), expected[sample, row]
            # Demodulation cancels the style of a single input channel, and leaves rounding errors.
            if float(theirs.norm()) <= 1e-5 * largest:
                assert float(ours.norm()) <= 1e-4 * largest, f"row {row} should have no gradient"
                continue
            cosine = float(ours @ theirs / (ours.norm() * theirs.norm()))
            assert cosine >= least, f"row {row}: cosine {cosine}"
            assert float(ours.norm() / theirs.norm()) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("name", SMALL)
def test_gradients_of_features_of_every_block_are_those_of_the_reference_in_double_precision(name: str) -> None:
    model = SMALL[name]
    network = differentiable_network(model)
    rows = random_rows(model)
    for block in network.blocks:
        exact = rows.clone().requires_grad_()
        ours = rows.float().requires_grad_()
        expected, found = reference_features(model, exact, block), network.features(ours, block)
        torch.testing.assert_close(found.detach().double(), expected.detach(), rtol=1e-4, atol=1e-4)
        assert_rows_agree(gradient(ours, found), gradient(exact, expected))


@pytest.mark.parametrize("name", [*SMALL, *OTHERS])
def test_gradients_of_the_picture_are_those_of_the_reference_in_double_precision(name: str) -> None:
    model = (SMALL | OTHERS)[name]
    rows = random_rows(model)
    exact, ours = rows.clone().requires_grad_(), rows.float().requires_grad_()
    expected, found = reference_layers(model, exact)[""], differentiable_network(model).picture(ours)
    torch.testing.assert_close(found.detach().double(), expected.detach(), rtol=1e-3, atol=1e-3)
    assert_rows_agree(gradient(ours, found), gradient(exact, expected), 0.999)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_the_golden_networks_are_those_of_the_reference_in_double_precision(name: str) -> None:
    model = Golden(name).model
    rows = torch.from_numpy(Golden(name).mixed_rows).double()
    exact, ours = rows.clone().requires_grad_(), rows.float().requires_grad_()
    expected, found = reference_layers(model, exact)[""], differentiable_network(model).picture(ours)
    assert_rows_agree(gradient(ours, found), gradient(exact, expected))


def test_gradients_of_noise_are_those_of_the_reference_in_double_precision() -> None:
    model = SMALL["resnet"]
    network = differentiable_network(model)
    rows = random_rows(model)
    exact = {name: picture.double().requires_grad_() for name, picture in network.noise.items()}
    ours = {name: picture.clone().requires_grad_() for name, picture in network.noise.items()}
    expected = torch.autograd.grad(reference_layers(model, rows, exact)[""].square().sum(), list(exact.values()))
    found = torch.autograd.grad(network.picture(rows.float(), noise=ours).square().sum(), list(ours.values()))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-3)


def test_drafts_leave_the_network_early_with_the_picture_of_the_smaller_network() -> None:
    model = make_stylegan2(resolution=32, seed=4)
    network = differentiable_network(model, dtype=torch.float64)
    assert network.picture_resolutions == (4, 8, 16, 32)
    part = replace(model.spec, layers=tuple(layer for layer in model.spec.layers if layer.resolution <= 16))
    weights = {name: torch.from_numpy(array).double() for name, array in model.weights.items()}
    rows = random_rows(model)
    torch.testing.assert_close(network.picture(rows, 16), run_synthesis(part, weights, rows))


def test_features_of_the_other_families_are_those_of_a_blocks_last_layer() -> None:
    for model, name in ((OTHERS["stylegan1"], "b8.conv1"), (OTHERS["stylegan3 T"], None)):
        network = differentiable_network(model, dtype=torch.float64)
        block = network.blocks[min(1, len(network.blocks) - 1)]
        rows = random_rows(model)
        layer = name or [layer.name for layer in model.spec.layers if layer.kind == "conv"][-1]
        expected = reference_layers(model, rows)[f"synthesis.{layer}"]
        torch.testing.assert_close(network.features(rows, block), expected)
        assert network.grid(block).side == expected.shape[-1]


@pytest.mark.parametrize("noise", [Noise(), Noise("none"), Noise("random", seed=3, gain=2.0, phase=40.0)])
@pytest.mark.parametrize("name", OTHERS)
def test_the_other_families_compute_the_same_where_nothing_is_differentiated(name: str, noise: Noise) -> None:
    network = differentiable_network(OTHERS[name], noise)
    rows = random_rows(OTHERS[name]).float()
    differentiated = rows.clone().requires_grad_()
    found = [network.features(rows, block) for block in network.blocks]
    pictures = [network.picture(rows, side) for side in network.picture_resolutions]
    for block, values in zip(network.blocks, found, strict=True):
        torch.testing.assert_close(values, network.features(differentiated, block).detach(), rtol=1e-3, atol=1e-3)
    for side, picture in zip(network.picture_resolutions, pictures, strict=True):
        torch.testing.assert_close(picture, network.picture(differentiated, side).detach(), rtol=1e-3, atol=1e-3)
    assert not found[0].is_inference(), "what was found can be compared with what is differentiated"


@pytest.mark.parametrize("name", OTHERS)
def test_a_pass_ends_early_if_it_is_cancelled_and_the_next_one_is_whole(name: str) -> None:
    network = differentiable_network(OTHERS[name])
    rows = random_rows(OTHERS[name]).float()
    block = network.blocks[0]
    expected = network.features(rows, block), network.picture(rows)
    answers = iter([False, True])
    with cancelled_by(lambda: next(answers)), pytest.raises(CancelledError):
        network.features(rows, block)
    with cancelled_by(lambda: True), pytest.raises(CancelledError):
        network.picture(rows)
    torch.testing.assert_close((network.features(rows, block), network.picture(rows)), expected)


def test_noise_settings_are_those_of_the_renderer() -> None:
    model = SMALL["skip"]
    name = model.spec.noise_layers[2]
    strength = float(model.weights[f"synthesis.{name}.noise_strength"])
    stored = torch.from_numpy(model.weights[f"synthesis.{name}.noise_const"])
    assert not differentiable_network(model, Noise("none")).noise
    halved = differentiable_network(model, Noise(gain=0.5, layer_gains=(1.0, 1.0, 3.0))).noise[name]
    torch.testing.assert_close(halved[0], stored * (strength * 1.5))
    random = differentiable_network(model, Noise("random", seed=7)).noise[name]
    assert not torch.allclose(random[0], stored * strength)


def test_samples_of_a_block_lie_over_the_picture_with_their_centres_aligned() -> None:
    grid = differentiable_network(SMALL["skip"]).grid(8)
    ends = torch.tensor([-0.5, 15.5, 0.5])  # left edge, right edge, the boundary between the first two pixels
    torch.testing.assert_close(grid.to_samples(ends), torch.tensor([-0.5, 7.5, 0.0]))
    wide = differentiable_network(OTHERS["stylegan3 T"])
    grid = wide.grid(wide.blocks[-1])
    assert float(grid.to_samples(torch.tensor(7.5))) == pytest.approx((grid.side - 1) / 2)


def test_a_block_or_resolution_that_the_network_lacks_is_refused_by_name() -> None:
    network = differentiable_network(SMALL["resnet"])
    with pytest.raises(RequestError, match=r"4, 8, 16, but 32 is none"):
        network.features(random_rows(SMALL["resnet"]).float(), 32)
    with pytest.raises(RequestError, match=r"side of 16, but not 8"):
        network.picture(random_rows(SMALL["resnet"]).float(), 8)
