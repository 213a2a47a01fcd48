"""Both ways of a convolution that changes the resolution are the formula of the paper, gradients included."""

import pytest
import torch
from torch.nn import functional

from gpu_backend.reference.upfirdn import upfirdn
from gpu_backend.training.networks.resampling import DownConvolution, UpConvolution, Way

pytestmark = pytest.mark.usefixtures("one_thread")

TAPS = (0.125, 0.375, 0.375, 0.125)
WAYS = pytest.mark.parametrize("way", ["steps", "phases"])


def made(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@WAYS
@pytest.mark.parametrize("side", [4, 7])
def test_the_way_up_is_a_transposed_convolution_and_a_filter(side: int, way: Way) -> None:
    x, weight = made(2, 5, side, side), made(6, 5, 3, 3)
    t = functional.conv_transpose2d(x, weight.transpose(0, 1), stride=2)
    expected = upfirdn(t, TAPS, up=1, pads=(1, 1), gain=4.0)
    torch.testing.assert_close(UpConvolution(way)(x, weight), expected, atol=1e-5, rtol=1e-5)


@WAYS
def test_the_way_down_is_a_filter_and_a_convolution_of_stride_two(way: Way) -> None:
    x, weight = made(2, 5, 8, 8), made(6, 5, 3, 3)
    expected = functional.conv2d(upfirdn(x, TAPS, up=1, pads=(2, 2), gain=1.0), weight, stride=2)
    torch.testing.assert_close(DownConvolution(way)(x, weight), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [UpConvolution, DownConvolution])
def test_gradients_of_gradients_are_the_same_both_ways(kind: type[UpConvolution | DownConvolution]) -> None:
    results = []
    ways: tuple[Way, ...] = ("steps", "phases")
    for way in ways:
        x, weight = made(2, 3, 6, 6).requires_grad_(), made(4, 3, 3, 3).requires_grad_()
        y = kind(way)(x, weight).sin().sum()
        (dx,) = torch.autograd.grad(y, x, create_graph=True)
        results.append((dx, *torch.autograd.grad(dx.square().sum(), (x, weight))))
    for first, second in zip(*results, strict=True):
        torch.testing.assert_close(first, second, atol=1e-4, rtol=1e-4)
