"""Winograd convolutions and their gradients against direct ones in float64."""

import pytest
import torch
from torch.nn import functional

from gpu_backend.gradients.winograd import WinogradConvolution


@pytest.mark.parametrize(("inputs", "outputs", "height", "width"), [(5, 7, 16, 16), (3, 1, 17, 22), (8, 8, 4, 3)])
def test_values_and_gradients_are_those_of_a_direct_convolution(
    inputs: int, outputs: int, height: int, width: int
) -> None:
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(outputs, inputs, 3, 3, generator=generator)
    exact = torch.randn(2, inputs, height, width, generator=generator, dtype=torch.float64).requires_grad_()
    x = exact.detach().float().requires_grad_()
    expected, found = functional.conv2d(exact, weight.double(), padding=1), WinogradConvolution(weight)(x)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-4)
    upstream = torch.randn(expected.shape, generator=generator, dtype=torch.float64)
    (wanted,) = torch.autograd.grad(expected, exact, upstream)
    (gradient,) = torch.autograd.grad(found, x, upstream.float())
    torch.testing.assert_close(gradient.double(), wanted, rtol=0, atol=2e-4)


def test_only_wide_layers_of_middle_sides_in_single_precision_use_it() -> None:
    wide = torch.empty(256, 256, 3, 3)
    assert WinogradConvolution.pays_off(wide, 64)
    assert not WinogradConvolution.pays_off(wide, 128)
    assert not WinogradConvolution.pays_off(wide, 8)
    assert not WinogradConvolution.pays_off(wide[:128], 64)
    assert not WinogradConvolution.pays_off(wide.double(), 64)
    assert not WinogradConvolution.pays_off(wide[:, :, :1, :1], 64)
