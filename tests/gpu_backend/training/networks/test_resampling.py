"""Convolutions that change the resolution are the formula of the paper, gradients of gradients included."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.reference.upfirdn import upfirdn
from gpu_backend.training.networks.resampling import DownConvolution, UpConvolution

pytestmark = pytest.mark.usefixtures("one_thread")

TAPS = (0.125, 0.375, 0.375, 0.125)


def made(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def doubled(x: Tensor, weight: Tensor) -> Tensor:
    t = functional.conv_transpose2d(x, weight.transpose(0, 1), stride=2)
    return upfirdn(t, TAPS, up=1, pads=(1, 1), gain=4.0)


def halved(x: Tensor, weight: Tensor) -> Tensor:
    return functional.conv2d(upfirdn(x, TAPS, up=1, pads=(2, 2), gain=1.0), weight, stride=2)


@pytest.mark.parametrize("side", [4, 7])
def test_doubling_is_a_transposed_convolution_and_a_filter(side: int) -> None:
    x, weight = made(2, 5, side, side), made(6, 5, 3, 3)
    torch.testing.assert_close(UpConvolution()(x, weight), doubled(x, weight), atol=1e-5, rtol=1e-5)


def test_halving_is_a_filter_and_a_convolution_of_stride_two() -> None:
    x, weight = made(2, 5, 8, 8), made(6, 5, 3, 3)
    torch.testing.assert_close(DownConvolution()(x, weight), halved(x, weight), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("ours", "formula"), [(UpConvolution(), doubled), (DownConvolution(), halved)])
def test_gradients_of_gradients_are_those_of_the_formula(ours: torch.nn.Module, formula: object) -> None:
    results = []
    for convolution in (ours, formula):
        assert callable(convolution)
        x, weight = (made(*shape).double().requires_grad_() for shape in ((2, 3, 6, 6), (4, 3, 3, 3)))
        y = convolution(x, weight).sin().sum()
        (dx,) = torch.autograd.grad(y, x, create_graph=True)
        results.append((dx, *torch.autograd.grad(dx.square().sum(), (x, weight))))
    for first, second in zip(*results, strict=True):
        torch.testing.assert_close(first, second)
