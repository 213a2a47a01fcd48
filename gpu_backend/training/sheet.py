"""Sample sheets with fixed latents, so that sheets show the progress of training."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from gpu_backend.latent.seeds import seed_to_z
from gpu_backend.training.networks.generator import Generator
from gpu_backend.whole_file import write_whole

_SIDE_PX = 2048
_MOST = 8
_BATCH = 8


@torch.no_grad()
def sample_sheet(generator: Generator, device: torch.device) -> Image.Image:
    """Return a sheet of seeds 0, 1, ... without truncation, with the stored noise."""
    count = grid_side(generator.spec.resolution) ** 2
    z = torch.from_numpy(np.stack([seed_to_z(seed, generator.spec.mapping.z_dim) for seed in range(count)])).to(device)
    images = torch.cat([generator(part) for part in torch.split(z, _BATCH)])
    return sheet_of((images * 127.5 + 128).clamp(0, 255).to(torch.uint8))


def sheet_of(pictures: Tensor) -> Image.Image:
    """Arrange (n, 3, R, R) uint8 in a square grid; surplus pictures are dropped."""
    side = min(grid_side(pictures.shape[-1]), int(len(pictures) ** 0.5))
    pixels = pictures[: side * side].cpu().permute(0, 2, 3, 1)
    shown = pixels.reshape(side, side, *pixels.shape[1:]).permute(0, 2, 1, 3, 4)
    return Image.fromarray(shown.reshape(side * pictures.shape[-2], side * pictures.shape[-1], 3).numpy())


def write_sheet(path: Path, sheet: Image.Image) -> None:
    """Write a PNG."""
    target = io.BytesIO()
    sheet.save(target, "PNG")
    write_whole(path, target.getvalue())


def grid_side(resolution: int) -> int:
    """Return the number of pictures in a row, which equals that in a column."""
    return max(2, min(_MOST, _SIDE_PX // resolution))
