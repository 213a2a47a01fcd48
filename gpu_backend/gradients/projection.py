"""Projection: the rows of w whose picture is nearest to a given one.

1. An encoder's answer where the model has one, and the best of many random latents, compared at a draft resolution,
2. w, one row for all, at draft resolutions and then at the full one,
3. each row by itself at the full resolution, with a pull towards their mean.

Stages as of Karras et al. 2020b (appendix D), the loss of `picture_loss`, without a foreign network. Variables are
coordinates along the principal directions of w, in their deviations, and L-BFGS moves them: on a picture of the bundled
model it comes to 25.9 dB in 60 passes at 64 x 64 and to 33 dB in 40 more at the full resolution, where Adam needs more
passes for 27 dB. Drafts are read off features (`matched_drafts`), since a network's own are too far from its pictures.

The noise stays as it is. The object has no threads; its owner steps it, and may stop at any time: the best latent of
the highest resolution so far stays.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gpu_backend.errors import RequestError
from gpu_backend.gradients.encoder import PictureEncoder
from gpu_backend.gradients.latents import latent_statistics, sample_w
from gpu_backend.gradients.matched_drafts import MatchedDrafts
from gpu_backend.gradients.network import DifferentiableNetwork
from gpu_backend.gradients.picture_loss import picture_loss, psnr
from gpu_backend.gradients.projection_settings import MAX_STEPS, ProjectionReport, ProjectionSettings
from gpu_backend.gradients.quasi_newton import QuasiNewton
from gpu_backend.model.latent_file import stored_latent
from gpu_backend.recipe import StoredLatent

_RANDOM_SIDE = 32
_DRAFT_SIDE = 64
"""Resolutions at which random latents are compared, and at which gradients begin; the full one if it is less."""
_BATCH = {"cpu": 2, "cuda": 16}
"""On a processor larger batches take longer a picture: their activations leave its caches."""
_DRAFT_SHARE = 0.3
"""Share of the steps at draft resolutions."""
_ROWS_SHARE = 0.35
"""Share of the steps for all rows, at the end."""
_PULL = 0.002
"""Of the rows towards their mean; in deviations, squared."""
_PRIOR = 0.02
"""The same of w towards its own mean, at drafts: they look like pictures only where the model's latents usually are."""
_SHORTEST = 0.01
"""Shortest principal direction, relative to the longest: what hardly varies keeps a unit that can be followed."""


class Projection:
    """A projection under way.

    Parameters
    ----------
    network
        Of the model.
    target
        (img_channels, side, side) float32 in -1..1, of the network's full resolution.
    settings
        How long to search.
    encoder
        Of the model; None begins with random latents alone.

    Raises
    ------
    RequestError
        If the target does not have the shape of the network's pictures, or the settings are out of range.
    """

    def __init__(
        self,
        network: DifferentiableNetwork,
        target: NDArray[np.float32],
        settings: ProjectionSettings | None = None,
        encoder: PictureEncoder | None = None,
    ) -> None:
        self._network = network
        self._settings = settings = settings or ProjectionSettings()
        spec = network.spec
        shape = (spec.img_channels, spec.resolution, spec.resolution)
        if target.shape != shape or not np.isfinite(target).all():
            raise RequestError(f"A picture to project must be {shape} finite numbers, but one is {target.shape}.")
        if not (1 <= settings.steps <= MAX_STEPS and 1 <= settings.candidates <= MAX_STEPS):
            raise RequestError(f"A projection has 1 to {MAX_STEPS:,} steps and random latents.")
        self._target = network.tensor(target)[None]
        self._encoder = encoder
        directions = latent_statistics(network, directions=spec.w_dim).directions
        lengths = directions.norm(dim=1, keepdim=True).clamp(min=1e-30)
        self._axes = directions * ((_SHORTEST * lengths.max()).clamp(min=1e-12) / lengths).clamp(min=1.0)
        """(w_dim, w_dim): w = mean + coordinates @ axes."""
        self._drafts = MatchedDrafts(network, tuple({self._random_side, *self._draft_sides}))
        self._best = network.mean_w[None].expand(spec.num_ws, -1)
        self._best_loss = math.inf
        self._best_side = 0
        self._work = self._steps()
        self.report = ProjectionReport("random", 0, settings.candidates, math.inf, self._random_side)

    @property
    def rows(self) -> NDArray[np.float32]:
        """The best rows so far, (num_ws, w_dim)."""
        found: NDArray[np.float32] = self._best.detach().float().cpu().contiguous().numpy()
        return found

    @property
    def has_found(self) -> bool:
        """Whether `rows` are those of a picture that was compared, not just the mean of w."""
        return self._best_side > 0

    @property
    def latent(self) -> StoredLatent:
        """The best rows so far as a stored latent."""
        return stored_latent(self.rows)

    def step(self) -> ProjectionReport:
        """Do one bounded piece of work: a batch of random latents, or one pass forward and backward."""
        self.report = next(self._work, self.report)
        return self.report

    @torch.no_grad()
    def psnr(self) -> float:
        """Return the PSNR in dB of the best picture so far, at the full resolution."""
        return psnr(self._network.picture(self._best[None]), self._target)

    def _steps(self) -> Iterator[ProjectionReport]:
        for _ in self._drafts.fit():
            yield self.report
        yield from self._try_candidates()
        start = self._coordinates(self._best[:1])
        total = self._settings.steps
        ends = [round(total * share) for share in self._shares()]
        first = 0
        for side, end in zip(self._sides, ends, strict=True):
            if end > first:
                start = yield from self._descend("w", start, side, first, end)
            first = max(first, end)
        start = start.expand(self._network.spec.num_ws, -1)
        yield from self._descend("rows", start, self._sides[-1], first, total)

    def _try_candidates(self) -> Iterator[ProjectionReport]:
        """Compare the encoder's answer and random latents, truncated to 0.7, where pictures look right."""
        total, side = self._settings.candidates, self._random_side
        mean = self._network.mean_w
        candidates = mean + 0.7 * (sample_w(self._network, total, self._settings.seed) - mean)
        if self._encoder is not None:
            # It comes first and takes the place of a random one.
            candidates = torch.cat([self._encoder.encode(self._target), candidates[: total - 1]])
        batch = _BATCH.get(self._network.device.type, 1)
        for first in range(0, total, batch):
            some = candidates[first : first + batch]
            with torch.no_grad():
                rows = some[:, None].expand(-1, self._network.spec.num_ws, -1)
                losses = picture_loss(self._drafts.picture(rows, side), self._target_at(side))
            place = int(losses.argmin())
            self._keep(rows[place], float(losses[place]), side)
            yield ProjectionReport("random", min(first + batch, total), total, self._best_loss, side)

    def _descend(
        self, stage: str, start: Tensor, side: int, first: int, end: int
    ) -> Generator[ProjectionReport, None, Tensor]:
        """Follow gradients from `start` (rows, w_dim), rows 1 for one that all share; steps `first` to `end`.

        Returns the best coordinates of these steps.
        """
        steps, num_ws = self._settings.steps, self._network.spec.num_ws
        search = QuasiNewton(start)
        best, best_loss = start, math.inf
        for step in range(first, end):
            free = search.point.clone().requires_grad_()
            rows = (self._network.mean_w + free @ self._axes).expand(num_ws, -1)
            loss = picture_loss(self._drafts.picture(rows[None], side), self._target_at(side)).mean()
            total = loss + _PULL * (free - free.mean(0)).square().mean()
            if side < self._full:
                total = total + _PRIOR * free.square().mean()
            (gradient,) = torch.autograd.grad(total, free)
            found, value = rows.detach(), float(loss.detach())
            self._keep(found, value, side)
            if value < best_loss:
                best, best_loss = free.detach(), value
            search.take(float(total.detach()), gradient)
            yield ProjectionReport(stage, step + 1, steps, self._best_loss, side, is_done=step + 1 == steps)
        return best

    def _coordinates(self, rows: Tensor) -> Tensor:
        """Return the coordinates (n, w_dim) of rows (n, w_dim)."""
        found: Tensor = (rows - self._network.mean_w) @ self._axes.t() / self._axes.square().sum(1)
        return found

    def _keep(self, rows: Tensor, loss: float, side: int) -> None:
        """Remember rows that are the best so far; losses of different resolutions are not compared."""
        if math.isfinite(loss) and (side != self._best_side or loss < self._best_loss):
            self._best, self._best_loss, self._best_side = rows, loss, side

    @property
    def _random_side(self) -> int:
        return next(side for side in self._network.picture_resolutions if side >= min(_RANDOM_SIDE, self._full))

    @property
    def _draft_sides(self) -> tuple[int, ...]:
        """One of 64 and one of a quarter of the full resolution, where they are below it."""
        wanted = {_DRAFT_SIDE, self._full // 4}
        return tuple(
            side for side in self._network.picture_resolutions if _DRAFT_SIDE <= side < self._full and side in wanted
        )

    @property
    def _full(self) -> int:
        return self._network.spec.resolution

    @property
    def _sides(self) -> tuple[int, ...]:
        """Resolutions at which w is searched, ascending."""
        return (*self._draft_sides, self._full)

    def _shares(self) -> list[float]:
        """Return for each of `_sides` the share of the steps after which w goes on at the next, or all rows do."""
        drafts = len(self._draft_sides)
        return [_DRAFT_SHARE * (number + 1) / drafts for number in range(drafts)] + [1.0 - _ROWS_SHARE]

    def _target_at(self, side: int) -> Tensor:
        factor = self._target.shape[-1] // side
        return self._target if factor == 1 else functional.avg_pool2d(self._target, factor)
