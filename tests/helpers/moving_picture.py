"""A network whose w moves a picture: row 0 is its offset, so a drag has one exact answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.gradients.feature_grid import FeatureGrid
from gpu_backend.gradients.latents import LatentStatistics
from gpu_backend.gradients.network import DifferentiableNetwork, NoisePictures

SIDE = 64
BLOCK = 32
NUM_WS, W_DIM = 4, 6
ROW_RESOLUTIONS = (4, 8, 32, 64)


class MovingPicture(DifferentiableNetwork):
    """Smooth random stripes and blobs, moved by (w[0, 0], w[0, 1]) pixels; w[1, 2] brightens the left half.

    Outside a disc in the middle the picture is flat where `is_flat_outside` says so.
    """

    def __init__(self, family: str = "stylegan2", *, is_flat_outside: bool = False) -> None:
        self.dtype, self.device = torch.float32, torch.device("cpu")
        self.noise = {}
        self.spec = cast(
            "Any", SimpleNamespace(family=family, num_ws=NUM_WS, w_dim=W_DIM, resolution=SIDE, img_channels=3)
        )
        self.calls = 0
        generator = torch.Generator().manual_seed(3)
        wide = functional.interpolate(
            torch.randn(1, 3, 24, 24, generator=generator), size=(3 * SIDE, 3 * SIDE), mode="bicubic"
        )
        if is_flat_outside:
            y, x = torch.meshgrid(torch.arange(3.0 * SIDE), torch.arange(3.0 * SIDE), indexing="ij")
            disc = ((x - 1.5 * SIDE).square() + (y - 1.5 * SIDE).square()).sqrt() < 16
            wide = wide * disc
        self._wide = wide

    @property
    def blocks(self) -> tuple[int, ...]:
        return (16, BLOCK)

    @property
    def picture_resolutions(self) -> tuple[int, ...]:
        return (BLOCK, SIDE)

    def grid(self, block: int) -> FeatureGrid:
        self._check_block(block)
        return FeatureGrid(block, block, SIDE)

    def _last_layer(self, block: int) -> str:
        return f"b{block}"

    def features(self, ws: Tensor, block: int, noise: NoisePictures | None = None) -> Tensor:
        return functional.avg_pool2d(self.picture(ws), SIDE // block)

    def picture(self, ws: Tensor, resolution: int | None = None, noise: NoisePictures | None = None) -> Tensor:
        self.calls += 1
        line = torch.arange(SIDE) + 0.5 + SIDE
        y, x = torch.meshgrid(line, line, indexing="ij")
        x, y = x - ws[:, 0, 0, None, None], y - ws[:, 0, 1, None, None]
        grid = torch.stack([x, y], -1) / (1.5 * SIDE) - 1
        found = functional.grid_sample(self._wide.expand(len(ws), -1, -1, -1), grid, align_corners=False)
        left = (torch.arange(SIDE) < SIDE // 2).float()
        found = found + 0.2 * ws[:, 1, 2, None, None, None] * left
        return functional.avg_pool2d(found, SIDE // self._check_resolution(resolution))


def moving_statistics() -> LatentStatistics:
    """A deviation of eight pixels a dimension, and the axes as principal directions."""
    return LatentStatistics(torch.full((W_DIM,), 8.0), torch.eye(W_DIM) * 8.0)
