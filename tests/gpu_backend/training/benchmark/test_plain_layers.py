"""The baseline, and what is between it and the trained networks, compute what these compute, gradients included."""

import pytest
import torch

from gpu_backend.training.benchmark.plain_layers import (
    make_networks_of_one_weight,
    make_networks_of_one_weight_and_pass,
    make_plain_networks,
)
from gpu_backend.training.network_pair import make_networks
from gpu_backend.training.networks.discriminator import Discriminator
from gpu_backend.training.networks.generator import Generator
from gpu_backend.training.networks.shape import NetworkShape
from gpu_backend.training.regularisers import path_lengths, r1_penalty

SHAPE = NetworkShape(32, channel_base=256, channel_max=16, z_dim=12, w_dim=10)
MAKES = (make_plain_networks, make_networks_of_one_weight, make_networks_of_one_weight_and_pass)


def pair(make: object) -> tuple[Generator, Discriminator]:
    assert callable(make)
    torch.manual_seed(1)
    made: tuple[Generator, Discriminator] = make(SHAPE)
    drawn = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for network in made:
            for name, parameter in network.named_parameters():
                if name.endswith(("noise_strength", "bias")):
                    parameter.add_(torch.randn(parameter.shape, generator=drawn) * 0.3)
    return made


@pytest.mark.parametrize("make", MAKES)
def test_parameters_have_the_same_names_and_values(make: object) -> None:
    for ours, plain in zip(pair(make_networks), pair(make), strict=True):
        expected, came = ours.state_dict(), plain.state_dict()
        assert came.keys() == expected.keys()
        assert all(torch.equal(came[name], expected[name]) for name in expected)


@pytest.mark.usefixtures("one_thread")
def test_pictures_logits_and_gradients_are_the_same() -> None:
    results = []
    for make in (make_networks, *MAKES):
        generator, discriminator = pair(make)
        torch.manual_seed(3)
        picture = generator(torch.randn(4, 12), noise="random")
        shown = picture.detach().requires_grad_()
        logits = discriminator(shown)
        rows = generator.rows(torch.randn(4, 12))
        styled = generator.synthesis(rows, "random")
        lengths = path_lengths(styled, rows, torch.randn_like(styled))
        penalty = r1_penalty(shown, logits).mean() + lengths.square().mean()
        (discriminator(picture).sum() + penalty).backward()
        gradients = [p.grad for network in (generator, discriminator) for p in network.parameters()]
        results.append([picture, logits, lengths, penalty, *(g for g in gradients if g is not None)])
    assert len(results[0]) > 50
    for others in results[1:]:
        for ours, plain in zip(results[0], others, strict=True):
            torch.testing.assert_close(plain, ours, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("make", MAKES)
@torch.no_grad()
def test_half_precision_gives_nearly_the_same(make: object) -> None:
    generator, discriminator = pair(make)
    z = torch.randn(4, 12)
    exact, rough = generator(z), generator(z, low=torch.bfloat16)
    assert (exact - rough).square().mean() < 1e-3 * exact.square().mean()
    assert (discriminator(exact) - discriminator(exact, torch.bfloat16)).abs().max() < 0.1
