"""Random latents of a step."""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_backend.training.networks.generator import Generator


class Latents:
    """Draws rows of w.

    Parameters
    ----------
    mixing
        Probability of style mixing of two latents.
    """

    def __init__(self, generator: Generator, mixing: float, device: torch.device) -> None:
        self._generator, self._mixing, self._device = generator, mixing, device

    def rows(self, count: int, *, follow_average: bool = False) -> Tensor:
        """Return rows of w, (count, num_ws, w_dim), with style mixing at a random row."""
        mapping, num_ws, device = self._generator.mapping, self._generator.spec.num_ws, self._device
        w = mapping(self._z(count))
        if follow_average:
            mapping.follow(w)
        rows: Tensor = w[:, None].expand(-1, num_ws, -1)
        if self._mixing == 0:
            return rows
        other = mapping(self._z(count))
        cut = torch.randint(1, num_ws, (count, 1), device=device)
        is_mixed = torch.rand(count, 1, device=device) < self._mixing
        is_other = is_mixed & (torch.arange(num_ws, device=device) >= cut)
        return torch.where(is_other[:, :, None], other[:, None], rows)

    def _z(self, count: int) -> Tensor:
        return torch.randn(count, self._generator.spec.mapping.z_dim, device=self._device)
