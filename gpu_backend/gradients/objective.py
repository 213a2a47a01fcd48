"""What a drag minimises: differences of one block's features, at handles, at pins and where the picture should stay."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gpu_backend.gradients.feature_grid import FeatureGrid
from gpu_backend.gradients.motion import HandleMotion
from gpu_backend.gradients.network import DifferentiableNetwork
from gpu_backend.gradients.sampling import feature_scale

_POOLED = 8
"""Side of the grid on which Gauss-Newton compares what should stay."""


@dataclass(frozen=True, slots=True, eq=False)
class DragTerms:
    """What a drag compares, and what may change.

    Attributes
    ----------
    block, grid
        Of the features.
    start
        (num_ws, w_dim).
    rows
        Rows that may change.
    deviation
        Of each dimension of w, (w_dim,).
    mask
        (side, side) at the features' resolution, 0..1: 1 keeps; None keeps nothing.
    keep, faint
        Weights of the difference under the mask and of that everywhere.
    """

    block: int
    grid: FeatureGrid
    start: NDArray[np.float32]
    rows: slice
    deviation: NDArray[np.float32]
    mask: NDArray[np.float32] | None
    keep: float
    faint: float


class DragObjective:
    """Rows of w to the loss of a drag.

    Rows are start + shift * deviation, where the shift (rows that may change, w_dim) is what solvers change.
    """

    def __init__(self, network: DifferentiableNetwork, terms: DragTerms) -> None:
        self._network, self._block = network, terms.block
        self._start, self._rows, self._deviation = (
            network.tensor(terms.start),
            terms.rows,
            network.tensor(terms.deviation),
        )
        self._keep, self._faint = terms.keep, terms.faint
        with torch.no_grad():
            self.first = network.features(self._start[None], self._block)
        self.scale = feature_scale(self.first)
        self._mask = None if terms.mask is None else network.tensor(terms.mask)[None, None]
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


def mask_at_features(mask: NDArray[np.float32], grid: FeatureGrid) -> NDArray[np.float32]:
    """Return a mask (height, width) at the features' resolution, (side, side); margins outside the picture are free."""
    rate, side = grid.rate, grid.side
    whole = torch.from_numpy(np.array(mask, np.float32))[None, None]
    small = functional.interpolate(whole, size=(rate, rate), mode="bilinear", antialias=True)
    low = (side - rate) // 2
    found: NDArray[np.float32] = functional.pad(small, (low, side - rate - low, low, side - rate - low))[0, 0].numpy()
    return found
