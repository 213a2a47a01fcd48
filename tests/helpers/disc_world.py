"""A world of three factors that is fast to draw: a disc's position and size, and the grey of the ground."""

from __future__ import annotations

import torch
from torch import Tensor


class DiscWorld:
    """Implements `gpu_backend.training.quality.world_source.World`."""

    factors = ("across", "size", "ground")

    def sample_factors(self, count: int, generator: torch.Generator) -> Tensor:
        """Return factors, each uniform in 0..1."""
        return torch.rand((count, 3), generator=generator)

    def draw(self, factors: Tensor, seeds: Tensor, resolution: int, device: torch.device) -> Tensor:
        """Return pictures; the seed moves the disc vertically, which is no factor."""
        across, size, ground = (column[:, None, None] for column in factors.to(device).unbind(1))
        places = torch.linspace(-1.0, 1.0, resolution, device=device)
        down = ((seeds * 2654435761) % 1000).to(device)[:, None, None] / 1000 - 0.5
        far = (places[None, None, :] - (across - 0.5)).square() + (places[None, :, None] - down).square()
        disc = torch.sigmoid(((0.15 + 0.4 * size) - far.sqrt()) * resolution / 2)
        grey = 1.2 * ground - 1.0
        return (grey + (1.0 - grey) * disc)[:, None].expand(-1, 3, -1, -1).contiguous()
