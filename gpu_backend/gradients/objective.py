"""What a drag minimises: differences of one block's features, at handles, at pins and where the picture should stay."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.gradients.motion import HandleMotion
from gpu_backend.gradients.network import DifferentiableNetwork
from gpu_backend.gradients.sampling import feature_scale

_POOLED = 8
"""Side of the grid on which Gauss-Newton compares what should stay."""


class DragObjective:
    """Rows of w to the loss of a drag.

    Rows are start + shift * deviation, where the shift (rows that may change, w_dim) is what solvers change.

    Parameters
    ----------
    network, block
        The features.
    start
        (num_ws, w_dim).
    rows
        Those that may change.
    deviation
        Of each dimension of w, (w_dim,).
    mask
        (1, 1, height, width), 0..1: 1 keeps; None keeps nothing.
    keep, faint
        Weights of the difference under the mask and of that everywhere.
    """

    def __init__(
        self,
        network: DifferentiableNetwork,
        block: int,
        start: Tensor,
        rows: slice,
        deviation: Tensor,
        *,
        mask: Tensor | None,
        keep: float,
        faint: float,
    ) -> None:
        self._network, self._block = network, block
        self._start, self._rows, self._deviation = start, rows, deviation
        self._keep, self._faint = keep, faint
        self.grid = network.grid(block)
        with torch.no_grad():
            self.first = network.features(start[None], block)
        self.scale = feature_scale(self.first)
        self._mask = None if mask is None else self._at_features(mask)
        self.motions: list[HandleMotion] = []
        """Of the handles and pins that pull."""

    @property
    def no_shift(self) -> Tensor:
        """The shift of the start."""
        return torch.zeros_like(self._start[self._rows])

    @property
    def deviation(self) -> Tensor:
        """The unit of each dimension of a shift, (w_dim,)."""
        return self._deviation

    def latents(self, shifts: Tensor) -> Tensor:
        """Return rows (batch, num_ws, w_dim) of shifts (batch, rows, w_dim)."""
        moved = self._start[self._rows] + shifts * self._deviation
        before, after = self._start[: self._rows.start], self._start[self._rows.stop :]
        batch = len(shifts)
        return torch.cat([before.expand(batch, -1, -1), moved, after.expand(batch, -1, -1)], 1)

    def features(self, shifts: Tensor) -> Tensor:
        """Return the features of shifts (batch, rows, w_dim), (batch, channels, side, side)."""
        return self._network.features(self.latents(shifts), self._block)

    def loss(self, features: Tensor) -> Tensor:
        """Return the loss of (1, channels, side, side), as `drag` has it."""
        loss = features.new_zeros(())
        for motion in self.motions:
            loss = loss + motion.loss(features)
        if not self._faint and self._mask is None:
            return loss
        difference = (features - self.first).abs().mean(1, keepdim=True) / self.scale
        loss = loss + self._faint * difference.mean()
        return loss if self._mask is None else loss + self._keep * (difference * self._mask).mean()

    def residual(self, features: Tensor) -> Tensor:
        """Return the differences whose squares stand for the loss in Gauss-Newton, (n,), of one sample's features.

        What should stay is compared on a coarse grid, so that the directions' columns fit into memory.
        """
        parts = [motion.residual(features) for motion in self.motions]
        weight = self.first.new_full((1, 1, 1, 1), self._faint)
        if self._mask is not None:
            weight = weight + self._keep * self._mask
        difference = (features - self.first) * weight.sqrt() / self.scale
        pooled = functional.adaptive_avg_pool2d(difference, min(_POOLED, difference.shape[-1]))
        parts.append(pooled.reshape(-1) / math.sqrt(pooled.numel()))
        return torch.cat(parts)

    def samples(self, point: Sequence[float]) -> Tensor:
        """Return the place in samples (2,) of a point (x, y) in pixels."""
        return self.grid.to_samples(self.first.new_tensor(list(point)))

    def _at_features(self, mask: Tensor) -> Tensor:
        """Return a mask at the features' resolution; margins outside the picture are free."""
        rate, side = self.grid.rate, self.grid.side
        small = functional.interpolate(mask, size=(rate, rate), mode="bilinear", antialias=True)
        low = (side - rate) // 2
        return functional.pad(small, (low, side - rate - low, low, side - rate - low))
