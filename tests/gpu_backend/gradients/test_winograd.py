"""Winograd convolutions and their gradients against direct ones in float64."""

import pytest
import torch
from torch.nn import functional

from gpu_backend.gradients.winograd import WinogradConvolution
from tests.helpers.one_thread import one_thread_of_torch


@pytest.mark.parametrize(
    ("inputs", "outputs", "height", "width"),
    [(5, 7, 16, 16), (3, 1, 17, 22), (8, 8, 4, 3), (6, 4, 50, 67), (2, 3, 9, 150)],
)
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


def test_a_large_picture_is_computed_in_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    strip = WinogradConvolution._strip

    def seen(self: WinogradConvolution, tiles: torch.Tensor, filters: torch.Tensor) -> torch.Tensor:
        rows.append(tiles.shape[4])
        return strip(self, tiles, filters)

    monkeypatch.setattr(WinogradConvolution, "_strip", seen)
    convolution = WinogradConvolution(torch.ones(2, 3, 3, 3))
    with one_thread_of_torch():
        convolution.run(torch.zeros(1, 3, 40, 100), backward=False)
    assert rows == [2, 2, 2, 2, 2], "64 tiles, 25 in a row"


def test_only_wide_layers_in_single_precision_use_it() -> None:
    wide = torch.empty(256, 256, 3, 3)
    assert WinogradConvolution.pays_off(wide, 16)
    assert WinogradConvolution.pays_off(wide, 256)
    assert WinogradConvolution.pays_off(wide[:96, :128], 64)
    assert not WinogradConvolution.pays_off(wide[:96, :128], 32)
    assert not WinogradConvolution.pays_off(wide[:64], 256)
    assert not WinogradConvolution.pays_off(wide, 8)
    assert not WinogradConvolution.pays_off(wide.double(), 64)
    assert not WinogradConvolution.pays_off(wide[:, :, :1, :1], 64)
