"""Upsampled rows of pictures."""

import numpy as np
import pytest
import torch

from gpu_backend.cpu.fir import PictureDoubling
from gpu_backend.ops.upfirdn import doubling_left_pad, resampling_matrix


@pytest.mark.parametrize("rows", [(0, 100), (13, 46), (99, 100)])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("taps", [(1.0,), (0.25, 0.5, 0.25), (0.1, 0.2, 0.3, 0.4)])
def test_rows_of_a_doubled_picture_equal_those_of_the_formula(
    taps: tuple[float, ...], channels: int, rows: tuple[int, int]
) -> None:
    picture = torch.randn(50, 50, channels, generator=torch.Generator().manual_seed(0))
    matrix = resampling_matrix(50, 100, taps, up=2, left=doubling_left_pad(len(taps)), gain=2.0)
    expected = np.einsum("uy,vx,yxc->uvc", matrix, matrix, picture.double().numpy())[slice(*rows)]
    count = rows[1] - rows[0]
    out = torch.full((count, 100, channels), float("nan"))
    PictureDoubling(taps, 50, channels, rows).run(picture, torch.full((count, 50 * channels), float("nan")), out)
    assert np.abs(out.numpy() - expected).max() < 1e-5
