"""Networks whose small plans run every kind of kernel: what compute-sanitizer watches takes a hundred times as long."""

from __future__ import annotations

import pytest

from gpu_backend.cuda.launches import streaming_up_conv
from gpu_backend.ops.kernels import streaming_conv_tile, unfused_tile
from tests.helpers.networks import StyleGAN2Model, make_stylegan2

SMALL_STYLEGAN2 = (
    ("skip", 1, 72, 32),
    ("skip", 3, 20, 32),
    ("resnet", 2, 40, 32),
    ("orig", 1, 24, 32),
    ("skip", 2, 24, 128),
    ("skip", 1, 128, 32),
    ("skip", 1, 8, 256),
    ("skip", 2, 128, 64),
)
"""Architecture, batch, most channels and side."""

SMALL_STYLEGAN3 = ((16, 72), (64, 40))
"""Side and most channels."""


def let_small_plans_have_the_kernels_of_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose streaming convolutions, and up-convolutions in two kernels, however little they gain."""
    monkeypatch.setattr(streaming_up_conv, "_LEAST_POSITIONS", 0)
    monkeypatch.setattr(streaming_conv_tile, "_LEAST_SIDE", 64)
    for limit in ("_LEAST_CHANNELS", "_MANY_CHANNELS", "_LEAST_SHARE"):
        monkeypatch.setattr(unfused_tile, limit, 0)


def small_stylegan2(architecture: str, width: int, resolution: int) -> StyleGAN2Model:
    """Return one of `SMALL_STYLEGAN2`."""
    return make_stylegan2(
        architecture=architecture,
        resolution=resolution,
        channel_base=64 * resolution,
        channel_max=width,
        conv_clamp=256.0,
    )
