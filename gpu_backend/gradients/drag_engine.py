"""What computes the steps of a drag: torch here, own kernels in `gpu_backend.gradients.gpu`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.gradients.feature_grid import FeatureGrid
from gpu_backend.gradients.motion import HandleMotion
from gpu_backend.gradients.network import DifferentiableNetwork
from gpu_backend.gradients.objective import DragObjective, DragTerms
from gpu_backend.gradients.solvers import Adam, DragSolver, GaussNewton


class Motion(Protocol):
    """A handle on its way; all lengths are in samples of the features."""

    @property
    def position(self) -> Tensor:
        """Where the optimiser holds it, (2,)."""
        ...

    @property
    def target(self) -> Tensor:
        """Where it goes, (2,)."""
        ...

    @property
    def left(self) -> tuple[float, float]:
        """What is left of the way from the position to the target, (x, y)."""
        ...

    @property
    def has_arrived(self) -> bool:
        """Whether it is at its target, with the features of its template or as near as they come."""
        ...

    @property
    def is_resting(self) -> bool:
        """Whether it is at its target, with the features of its template, or after some steps without."""
        ...

    def aim(self, target: Tensor) -> None:
        """Go to another target (2,) from here."""
        ...


_Motion = TypeVar("_Motion", bound=Motion)


class Progress(NamedTuple):
    """What a call of `DragEngine.step` did.

    Attributes
    ----------
    iterations
        That ended; none after a part of one.
    loss
        Of the latent before the last of them; not a number after none.
    """

    iterations: int
    loss: float


class DragEngine(Protocol[_Motion]):
    """Features, loss, gradient and handles of a drag under way."""

    @property
    def grid(self) -> FeatureGrid:
        """Positions of the feature samples in the picture."""
        ...

    @property
    def first(self) -> Tensor:
        """Features of the start, (1, channels, side, side)."""
        ...

    @property
    def rows(self) -> NDArray[np.float32]:
        """The present rows of w, (num_ws, w_dim)."""
        ...

    def motion(self, source: Tensor, target: Tensor) -> _Motion:
        """Return a new handle, with a template of the features at its source; all are made before the first step."""
        ...

    def choose(self, motions: Sequence[_Motion]) -> None:
        """Say which handles pull."""
        ...

    def hold(self, places: Sequence[tuple[_Motion, Tensor]]) -> None:
        """Let handles take hold of what is at other places (2,) now."""
        ...

    def mark(self) -> None:
        """Remember the present latent."""
        ...

    def go_back(self) -> bool:
        """Return to the latent that was remembered, and take shorter steps from it; false if nothing was done."""
        ...

    def step(self, most: int = 1) -> Progress:
        """Do about one pass forward and backward, or up to `most` iterations if they take a few milliseconds together.

        After each iteration the handles move.
        """
        ...

    def picture(self, side: int) -> Tensor:
        """Return the present picture, (1, channels, side, side)."""
        ...


class TorchEngine:
    """Implements `DragEngine` by torch: Adam on gradients, or Gauss-Newton along `directions` where they are given.

    Parameters
    ----------
    directions
        (count, w_dim), as `GaussNewton` takes them; None for Adam.
    radius, rate
        As in `DragSettings`.
    """

    def __init__(
        self,
        network: DifferentiableNetwork,
        terms: DragTerms,
        *,
        directions: Tensor | None,
        radius: int,
        rate: float,
    ) -> None:
        self._network, self._radius, self.grid = network, radius, terms.grid
        self._objective = DragObjective(network, terms)
        self._solver: DragSolver = (
            Adam(self._objective, rate) if directions is None else GaussNewton(self._objective, directions)
        )
        self._features = self._objective.first
        self._marked = self._objective.no_shift

    @property
    def first(self) -> Tensor:
        """Features of the start."""
        return self._objective.first

    @property
    def rows(self) -> NDArray[np.float32]:
        """The present rows of w."""
        found: NDArray[np.float32] = self._objective.latents(self._solver.shift[None])[0].float().cpu().numpy()
        return found

    def motion(self, source: Tensor, target: Tensor) -> HandleMotion:
        """Return a new handle."""
        return HandleMotion(self.first, source, target, self._radius, self._objective.scale)

    def choose(self, motions: Sequence[HandleMotion]) -> None:
        """Say which handles pull."""
        self._objective.motions = list(motions)

    def hold(self, places: Sequence[tuple[HandleMotion, Tensor]]) -> None:
        """Let handles take hold of what is at other places."""
        for motion, place in places:
            motion.hold(self._features, place)

    def mark(self) -> None:
        """Remember the present latent."""
        self._marked = self._solver.shift

    @torch.no_grad()
    def go_back(self) -> bool:
        """Return to the latent that was remembered; Gauss-Newton takes back by itself what makes things worse."""
        if not isinstance(self._solver, Adam):
            return False
        self._features = self._objective.features(self._marked[None])  # first: it may be cancelled
        self._solver.go_back(self._marked)
        return True

    def step(self, most: int = 1) -> Progress:
        """Do one iteration of the solver, or a part of it."""
        found = self._solver.step()
        if found is None:
            return Progress(0, math.nan)
        loss, self._features = found
        for motion in self._objective.motions:
            motion.advance(self._features)
        return Progress(1, loss)

    @torch.no_grad()
    def picture(self, side: int) -> Tensor:
        """Return the present picture."""
        return self._network.picture(self._objective.latents(self._solver.shift[None]), side)
