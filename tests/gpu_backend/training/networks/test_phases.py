"""Folded convolutions compute what the two-step forms do, and their gradients have gradients."""

import pytest
import torch
from torch.nn import functional

from gpu_backend.reference.upfirdn import double, upfirdn
from gpu_backend.training.networks.phases import (
    doubled,
    down_phases,
    fold_down,
    fold_up,
    gather,
    halved,
    spread,
    up_phases,
)

pytestmark = pytest.mark.usefixtures("one_thread")

TAPS = (0.125, 0.375, 0.375, 0.125)


def made(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("side", [4, 7])
def test_the_way_up_is_a_transposed_convolution_and_a_filter(side: int) -> None:
    x, weight = made(2, 5, side, side), made(6, 5, 3, 3)
    t = functional.conv_transpose2d(x, weight.transpose(0, 1), stride=2)
    expected = upfirdn(t, TAPS, up=1, pads=(1, 1), gain=4.0)
    came = spread(functional.conv2d(x, fold_up(weight, up_phases()), padding=1))
    torch.testing.assert_close(came, expected, atol=1e-5, rtol=1e-5)


def test_the_way_down_is_a_filter_and_a_convolution_of_stride_two() -> None:
    x, weight = made(2, 5, 8, 8), made(6, 5, 3, 3)
    filtered = upfirdn(x, TAPS, up=1, pads=(2, 2), gain=1.0)
    expected = functional.conv2d(filtered, weight, stride=2)
    came = functional.conv2d(gather(x), fold_down(weight, down_phases()), padding=1)
    torch.testing.assert_close(came, expected, atol=1e-5, rtol=1e-5)


def test_doubling_and_halving_are_the_filters_of_the_paper() -> None:
    x = made(2, 3, 8, 8)
    torch.testing.assert_close(doubled(x), double(x, TAPS), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(halved(x), upfirdn(x, TAPS, up=1, pads=(1, 1), gain=1.0)[:, :, ::2, ::2])


def test_spreading_undoes_gathering() -> None:
    x = made(2, 3, 6, 6)
    torch.testing.assert_close(spread(gather(x)), x, atol=0, rtol=0)
