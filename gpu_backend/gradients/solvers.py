"""Two ways to go downhill in w, one bounded step at a time: by gradients, and by finite differences."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from gpu_backend.gradients.objective import DragObjective

_DIFFERENCE = 0.05
"""Length of finite differences, in deviations of w along a direction."""
_COLUMNS = {"cpu": 1, "cuda": 3}
"""Latents of one step: a GPU takes three at once, about as long as forward and backward; previews wait for a step."""
_FIRST_DAMPING = 0.1
_LONGEST = 0.5
"""Longest step along a direction, in its deviations."""


class DragSolver(Protocol):
    """Moves a shift downhill."""

    @property
    def shift(self) -> Tensor:
        """The present one, (rows, w_dim), in deviations."""
        ...

    def step(self) -> tuple[float, Tensor] | None:
        """Do at most about one pass forward and backward.

        Returns
        -------
        Loss and features of the latent that an iteration began with; None while the iteration is not finished.
        """
        ...


class Adam:
    """Gradients by autograd, steps by Adam (Kingma and Ba 2015).

    The second moment is one number a row: dimensions that matter little should move less than dimensions that matter.

    Parameters
    ----------
    rate
        Length of a step, in deviations of each dimension of w.
    """

    def __init__(self, objective: DragObjective, rate: float) -> None:
        self._objective, self._rate = objective, rate
        self._begin(objective.no_shift)

    def go_back(self, shift: Tensor) -> None:
        """Return to an earlier shift; steps are half as long from there on."""
        self._rate *= 0.5
        self._begin(shift)

    def _begin(self, shift: Tensor) -> None:
        self.shift = shift
        self._mean = torch.zeros_like(shift)
        self._square = torch.zeros_like(shift[:, :1])
        self._steps = 0

    def step(self) -> tuple[float, Tensor] | None:
        """Go one step along the gradient."""
        shift = self.shift.clone().requires_grad_()
        features = self._objective.features(shift[None])
        loss = self._objective.loss(features)
        (gradient,) = torch.autograd.grad(loss, shift)
        self._steps += 1
        self._mean.lerp_(gradient, 0.1)
        self._square.lerp_(gradient.square().mean(1, keepdim=True), 0.05)
        mean = self._mean / (1.0 - 0.9**self._steps)
        square = self._square / (1.0 - 0.95**self._steps)
        self.shift = self.shift - self._rate * mean / (square.sqrt() + 1e-12)
        return float(loss.detach()), features.detach()


class GaussNewton:
    """Finite differences along principal directions of w, steps by Levenberg (1944) and Marquardt (1963).

    With the residual r and its columns J_k = (r(a + e_k) - r(a)) / e over the amounts a of the directions::

        (J^T J + damping * diag(J^T J)) step = -J^T r

    A step that makes things worse is taken back, and the damping grows.

    Parameters
    ----------
    directions
        (count, w_dim), each as long as its deviation; all rows that may change move along them together.
    """

    def __init__(self, objective: DragObjective, directions: Tensor) -> None:
        self._objective = objective
        rows = objective.no_shift.shape[0]
        self._directions = (directions / objective.deviation)[:, None].expand(-1, rows, -1)
        self._at_once = _COLUMNS.get(directions.device.type, 1)
        self._amounts = self._tried = directions.new_zeros(len(directions))
        self._features: Tensor | None = None
        """Of the amounts, once they are known."""
        self._base = torch.empty(0)
        self._columns: list[Tensor] = []
        self._damping = _FIRST_DAMPING
        self._is_begun = False

    @property
    def shift(self) -> Tensor:
        """The present shift."""
        return self._shift_of(self._amounts)

    @torch.no_grad()
    def step(self) -> tuple[float, Tensor] | None:
        """Judge the amounts that were tried, or compute a few columns; after the last column, try a move."""
        if not self._is_begun:
            features = self._judge()
            self._columns, self._is_begun = [], True
            return float(self._objective.loss(features)), features
        assert self._features is not None
        if not self._columns:
            # Not before: handles hop on and templates adapt to the features that `step` returned.
            self._base = self._objective.residual(self._features)
        first = len(self._columns)
        chosen = range(first, min(first + self._at_once, len(self._directions)))
        moved = torch.stack([self._shift_of(self._amounts) + _DIFFERENCE * self._directions[k] for k in chosen])
        for features in self._objective.features(moved).split(1):
            self._columns.append((self._objective.residual(features) - self._base) / _DIFFERENCE)
        if len(self._columns) == len(self._directions):
            self._try_move()
            self._is_begun = False
        return None

    def _judge(self) -> Tensor:
        """Accept the tried amounts, or restore the previous ones; return the features."""
        features = self._objective.features(self._shift_of(self._tried)[None])
        if self._features is not None:
            is_worse = float(self._objective.residual(features).norm()) > float(self._base.norm())
            self._damping = min(1e4, self._damping * 4.0) if is_worse else max(1e-3, self._damping * 0.5)
            if is_worse:
                return self._features
        self._amounts, self._features = self._tried, features
        return features

    def _try_move(self) -> None:
        columns = torch.stack(self._columns, 1).double()
        gram = columns.t() @ columns
        floor = 1e-9 + 1e-4 * gram.diagonal().mean()
        damped = gram + torch.diag(self._damping * gram.diagonal() + floor)
        step = -torch.linalg.solve(damped, columns.t() @ self._base.double())
        self._tried = self._amounts + step.clamp(-_LONGEST, _LONGEST).to(self._amounts)

    def _shift_of(self, amounts: Tensor) -> Tensor:
        return torch.einsum("k,krd->rd", amounts, self._directions)
