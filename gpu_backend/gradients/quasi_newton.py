"""L-BFGS (Liu and Nocedal 1989) that evaluates its function once a step, so that its owner can stop in between."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor

_HISTORY = 30
_FIRST = 0.05
"""Root mean square of the first step, in the units of the variables."""
_LONGEST = 0.5
"""The same of the longest step."""
_DECREASE = 1e-4
"""Share of the predicted decrease that a step must bring (Armijo)."""
_MOST_HALVINGS = 8


class QuasiNewton:
    """Minimises a function whose value and gradient its owner computes.

    ``while ...: value, gradient = f(search.point); search.take(value, gradient)``

    Attributes
    ----------
    point
        Where the owner evaluates next.
    """

    def __init__(self, start: Tensor) -> None:
        self.point = start.clone()
        self._base = start.clone()
        """The last point that was accepted."""
        self._value = float("inf")
        self._gradient = torch.zeros_like(start)
        self._direction = torch.zeros_like(start)
        self._length = 0.0
        self._halvings = 0
        self._pairs: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=_HISTORY)
        """Steps, changes of the gradient over them, and 1 / their product."""

    def take(self, value: float, gradient: Tensor) -> None:
        """Take the value and the gradient at `point`, and move `point`."""
        slope = float((self._gradient * self._direction).sum())
        is_enough = value <= self._value + _DECREASE * self._length * slope
        if not is_enough and self._halvings < _MOST_HALVINGS:
            self._halvings += 1
            # The minimum of the parabola through both values and the slope, kept within a tenth and a half.
            curve = value - self._value - self._length * slope
            best = -0.5 * slope * self._length**2 / curve if curve > 0.0 else 0.0
            self._length = min(max(best, 0.1 * self._length), 0.5 * self._length)
            self.point = self._base + self._length * self._direction
            return
        if is_enough:
            step, change = self.point - self._base, gradient - self._gradient
            product = float((step * change).sum())
            if product > 1e-10 * float(change.square().sum()):
                self._pairs.append((step, change, 1.0 / product))
            self._base, self._value, self._gradient = self.point, value, gradient
        else:
            self._pairs.clear()  # what it knows of the curvature misleads; steepest descent from the last good point
        self._halvings = 0
        self._direction = self._descent()
        self._length = 1.0
        self.point = self._base + self._direction

    def _descent(self) -> Tensor:
        """Return the next step: two loops over the pairs; without any, a short one down the gradient."""
        if not self._pairs:
            return -self._gradient * (_FIRST / max(_size(self._gradient), 1e-30))
        direction = -self._gradient
        shares = []
        for step, change, inverse in reversed(self._pairs):
            share = inverse * float((step * direction).sum())
            direction = direction - share * change
            shares.append(share)
        _, change, inverse = self._pairs[-1]
        direction = direction / (inverse * float(change.square().sum()))
        for (step, change, inverse), share in zip(self._pairs, reversed(shares), strict=True):
            direction = direction + (share - inverse * float((change * direction).sum())) * step
        size = _size(direction)
        return direction if size <= _LONGEST else direction * (_LONGEST / size)


def _size(x: Tensor) -> float:
    return float(x.square().mean().sqrt())
