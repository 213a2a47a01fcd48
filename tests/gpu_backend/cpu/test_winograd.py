"""Winograd's convolution against the direct sum, at ugly channel counts and every place of the border."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from gpu_backend.cpu.winograd import WinogradConvolution, transform_weight


class Copy:
    """An epilogue that keeps what it is given."""

    def finish(self, raw: torch.Tensor, first_row: int, out: torch.Tensor) -> None:
        out.view(raw.shape).copy_(raw)


@pytest.mark.parametrize(
    ("side", "inputs", "outputs"), [(4, 5, 3), (8, 7, 9), (16, 64, 64), (32, 3, 130), (64, 33, 17)]
)
def test_it_equals_the_direct_convolution(side: int, inputs: int, outputs: int) -> None:
    generator = torch.Generator().manual_seed(side)
    weight = torch.randn(outputs, inputs, 3, 3, generator=generator)
    x, style = torch.randn(side, side, inputs, generator=generator), torch.randn(inputs, generator=generator)
    winograd = WinogradConvolution(transform_weight(weight), side)
    winograd.attach(torch.full((winograd.scratch_floats,), float("nan")))
    out = torch.empty(side, side, outputs)
    winograd.run(x, style, Copy(), out)  # type: ignore[arg-type]
    scaled = (x * style).permute(2, 0, 1)[None].double()
    expected = functional.conv2d(scaled, weight.double(), padding=1)[0].permute(1, 2, 0).numpy()
    assert np.abs(out.numpy() - expected).max() < 1e-4 * expected.std()


def test_sides_that_are_no_multiple_of_the_tile_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 4"):
        WinogradConvolution(transform_weight(torch.zeros(1, 1, 3, 3)), 6)
