"""L-BFGS (Liu and Nocedal 1989) on several functions at once, one evaluation of each a step.

The product of the inverse Hessian and the gradient is computed in its compact form (Byrd, Nocedal and Schnabel 1994,
equation 3.1), so a step is a fixed sequence of batched operations that never reads a number back: a CUDA graph can hold
it. With steps S and changes of the gradient Y, (pairs, variables), R the upper triangle of S Y' and D its diagonal::

    H g = c g + S' p - c Y' u,   u = R^-1 S g,   p = R^-T ((D + c Y Y') u - c Y g),   c = s y / y y of the last pair
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

HISTORY = 30
"""Pairs that are kept."""
FIRST = 0.05
"""Root mean square of the first step, in the units of the variables."""
LONGEST = 0.5
"""The same of the longest step."""
DECREASE = 1e-4
"""Share of the predicted decrease that a step must bring (Armijo)."""
MOST_HALVINGS = 8


class Minimiser(Protocol):
    """Minimises a function for each sample, whose values and gradients its owner computes.

    ``while ...: values, gradients = f(search.point); search.take(values, gradients)``

    Attributes
    ----------
    point
        Where the owner evaluates next, (samples, ...). `take` changes it in place.
    """

    point: Tensor

    def take(self, values: Tensor, gradients: Tensor) -> None:
        """Take the values (samples,) and the gradients at `point`, and move `point`."""
        ...


class QuasiNewton:
    """Implements `Minimiser` in torch.

    Parameters
    ----------
    start
        (samples, ...).
    """

    def __init__(self, start: Tensor) -> None:
        self.point = start.clone()
        flat = self.point.flatten(1)
        count, size = flat.shape
        self._base = flat.clone()
        """The last points that were accepted."""
        self._values = flat.new_full((count,), float("inf"))
        self._gradients = torch.zeros_like(flat)
        self._directions = torch.zeros_like(flat)
        self._lengths = flat.new_zeros(count)
        self._halvings = torch.zeros(count, dtype=torch.int64, device=flat.device)
        self._steps = flat.new_zeros(count, HISTORY, size)
        """The oldest first; a pair that is missing is zeros."""
        self._changes = torch.zeros_like(self._steps)

    @torch.no_grad()
    def take(self, values: Tensor, gradients: Tensor) -> None:
        """Take the values (samples,) and the gradients at `point`, and move `point`."""
        point, gradient = self.point.flatten(1), gradients.flatten(1)
        slopes = (self._gradients * self._directions).sum(1)
        is_enough = values <= self._values + DECREASE * self._lengths * slopes
        is_enough &= gradient.isfinite().all(1)
        is_halved = ~is_enough & (self._halvings < MOST_HALVINGS)
        # The minimum of the parabola through both values and the slope, kept within a tenth and a half.
        curve = values - self._values - self._lengths * slopes
        best = torch.where(curve > 0.0, -0.5 * slopes * self._lengths.square() / curve, 0.0)
        shorter = torch.minimum(torch.maximum(best, 0.1 * self._lengths), 0.5 * self._lengths)
        self._remember(point - self._base, gradient - self._gradients, is_enough)
        # After too many halvings the curvature misleads: steepest descent from the last good point.
        is_lost = ~is_enough & ~is_halved
        for pairs in (self._steps, self._changes):
            pairs.masked_fill_(is_lost[:, None, None], 0.0)
        self._base.copy_(torch.where(is_enough[:, None], point, self._base))
        self._gradients.copy_(torch.where(is_enough[:, None], gradient, self._gradients))
        self._values.copy_(torch.where(is_enough, values, self._values))
        self._halvings.copy_(torch.where(is_halved, self._halvings + 1, 0))
        self._directions.copy_(torch.where(is_halved[:, None], self._directions, self._descent()))
        self._lengths.copy_(torch.where(is_halved, shorter, 1.0))
        point = self._base + self._lengths[:, None] * self._directions
        self.point.copy_(point.view_as(self.point))

    def _remember(self, step: Tensor, change: Tensor, is_accepted: Tensor) -> None:
        """Append the pairs of the samples that moved along a positive curvature."""
        is_curved = is_accepted & ((step * change).sum(1) > 1e-10 * change.square().sum(1))
        for pairs, new in ((self._steps, step), (self._changes, change)):
            longer = torch.cat([pairs[:, 1:], new[:, None]], 1)
            pairs.copy_(torch.where(is_curved[:, None, None], longer, pairs))

    def _descent(self) -> Tensor:
        """Return the next step, (samples, variables); without a pair, a short one down the gradient."""
        gradient = self._gradients
        plain = gradient * (FIRST / _size(gradient).clamp(min=1e-30))[:, None]
        last = (self._steps[:, -1] * self._changes[:, -1]).sum(1)
        has_pair = last > 0.0
        scale = (last / self._changes[:, -1].square().sum(1).clamp(min=1e-30)).double()[:, None, None]
        # The triangle of up to 30 pairs is badly conditioned in single precision.
        products = (self._steps @ self._changes.mT).double()
        squares = (self._changes @ self._changes.mT).double()
        diagonal = products.diagonal(dim1=1, dim2=2)
        upper = products.triu() + torch.diag_embed((diagonal == 0.0).to(diagonal))
        along_steps = (self._steps @ gradient[:, :, None]).double()
        along_changes = (self._changes @ gradient[:, :, None]).double()
        u = torch.linalg.solve_triangular(upper, along_steps, upper=True)
        right = diagonal[:, :, None] * u + scale * (squares @ u - along_changes)
        p = torch.linalg.solve_triangular(upper.mT, right, upper=False)
        moved = scale.to(gradient) * (gradient[:, :, None] - self._changes.mT @ u.to(gradient))
        moved = moved + self._steps.mT @ p.to(gradient)
        direction = -torch.where(has_pair[:, None], moved[:, :, 0], plain)
        return direction * (LONGEST / _size(direction).clamp(min=LONGEST))[:, None]


def _size(x: Tensor) -> Tensor:
    return x.square().mean(1).sqrt()
