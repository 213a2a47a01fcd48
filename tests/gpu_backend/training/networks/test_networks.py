"""The generator is the one of model files; the discriminator judges each picture."""

import pytest
import torch

from gpu_backend.model.stylegan2 import tensor_shapes
from gpu_backend.reference.mapping import run_mapping
from gpu_backend.reference.synthesis import run_synthesis
from gpu_backend.training.networks.discriminator import Discriminator, with_deviation
from gpu_backend.training.networks.generator import Generator
from gpu_backend.training.networks.shape import NetworkShape

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE = NetworkShape(32, channel_base=256, channel_max=16, z_dim=12, w_dim=10)


def generator() -> Generator:
    torch.manual_seed(1)
    made = Generator(SHAPE.spec())
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.endswith(("noise_strength", "bias")):
                parameter.add_(torch.randn_like(parameter) * 0.3)
        made.mapping.w_avg.normal_()
    return made


def test_the_state_dict_holds_the_tensors_of_model_files_and_no_others() -> None:
    shapes = {name: tuple(value.shape) for name, value in generator().state_dict().items()}
    assert shapes == tensor_shapes(SHAPE.spec())


@torch.no_grad()
def test_pictures_are_those_of_the_reference() -> None:
    network = generator()
    weights, spec = network.state_dict(), network.spec
    z = torch.randn(3, 12)
    w = run_mapping(spec, weights, z)
    torch.testing.assert_close(network.mapping(z), w)
    ws = network.mapping.w_avg.lerp(w, 0.5)[:, None].expand(-1, spec.num_ws, -1)
    torch.testing.assert_close(network(z, psi=0.5), run_synthesis(spec, weights, ws), atol=1e-4, rtol=1e-4)
    without = run_synthesis(spec, weights, ws, noise={})
    torch.testing.assert_close(network(z, psi=0.5, noise="none"), without, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_half_precision_gives_nearly_the_same_picture_and_judgement(low: torch.dtype) -> None:
    network, judge = generator(), Discriminator(SHAPE)
    z = torch.randn(4, 12)
    exact, rough = network(z), network(z, low=low)
    assert rough.dtype == torch.float32
    assert (exact - rough).square().mean() < 1e-3 * exact.square().mean()
    assert (judge(exact) - judge(exact, low)).abs().max() < 0.1


def test_large_styles_do_not_overflow_half_precision() -> None:
    network = generator()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if ".conv" in name and "affine.bias" in name:
                parameter.mul_(1e5)
    assert network(torch.randn(2, 12), low=torch.float16).isfinite().all()


def test_pictures_of_two_resolutions_have_their_sizes_and_judgements_one_number() -> None:
    for resolution in (8, 64):
        shape = NetworkShape(resolution, channel_base=128, channel_max=8, z_dim=8, w_dim=8)
        pictures = Generator(shape.spec())(torch.randn(2, 8))
        assert pictures.shape == (2, 3, resolution, resolution)
        assert Discriminator(shape)(pictures).shape == (2,)


def test_the_deviation_is_that_of_a_group_and_zero_among_equal_pictures() -> None:
    x = torch.randn(8, 3, 4, 4)
    came = with_deviation(x)
    first = torch.stack([x[0], x[2], x[4], x[6]])
    expected = first.var(0, unbiased=False).add(1e-8).sqrt().mean()
    torch.testing.assert_close(came[2, 3], expected.expand(4, 4))
    assert with_deviation(x[:1].expand(4, -1, -1, -1))[:, 3].max() < 1e-3
    assert with_deviation(x[:5]).shape == (5, 4, 4, 4)
