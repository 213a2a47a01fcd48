"""Projection: the rows of w whose picture is nearest to a given one.

As Karras et al. 2020b (appendix D), with a loss that needs no foreign network (`picture_loss`):

1. the best of many random latents, compared at a draft resolution,
2. w, one row for all, at draft resolutions,
3. w rows, with a pull towards their mean that fades, the last steps at the full resolution.

The noise stays as it is. The object has no threads; its owner steps it, and may stop at any time: the best latent of
the highest resolution so far stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from gpu_backend.errors import RequestError
from gpu_backend.gradients.latents import latent_statistics, sample_w
from gpu_backend.gradients.network import DifferentiableNetwork
from gpu_backend.gradients.picture_loss import picture_loss, psnr
from gpu_backend.gradients.projection_settings import MAX_STEPS, ProjectionReport, ProjectionSettings
from gpu_backend.model.latent_file import stored_latent
from gpu_backend.recipe import StoredLatent

_DRAFT = 64
"""Random latents are compared at this resolution, where the network can leave at it."""
_BATCH = 8
_W_SHARE = 0.3
"""Share of the steps for one row; the rest are for all rows."""
_FULL_SHARE = 0.25
"""Share of the steps at the full resolution."""
_RATE = 0.05
"""Largest length of a step, in deviations of each dimension of w."""
_PULL = 0.02


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

    Raises
    ------
    RequestError
        If the target does not have the shape of the network's pictures, or the settings are out of range.
    """

    def __init__(
        self, network: DifferentiableNetwork, target: NDArray[np.float32], settings: ProjectionSettings | None = None
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
        self._deviation = latent_statistics(network, count=1024, directions=1).deviation
        self._best = network.mean_w[None].expand(spec.num_ws, -1)
        self._best_loss = math.inf
        self._best_side = 0
        self._work = self._steps()
        self.report = ProjectionReport("random", 0, settings.candidates, math.inf, self._side_at(0.0))

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
        yield from self._try_random()
        row = self._best[:1].clone()
        count = max(1, round(self._settings.steps * _W_SHARE))
        yield from self._descend("w", row, 0, count)
        yield from self._descend("rows", self._best.clone(), count, self._settings.steps)

    def _try_random(self) -> Iterator[ProjectionReport]:
        """Compare random latents, half of the way to the mean, where pictures are most like what was trained on."""
        total = self._settings.candidates
        side = self._side_at(0.0)
        wanted = self._target_at(side)
        mean = self._network.mean_w
        candidates = mean + 0.7 * (sample_w(self._network, total, self._settings.seed) - mean)
        for first in range(0, total, _BATCH):
            some = candidates[first : first + _BATCH]
            with torch.no_grad():
                rows = some[:, None].expand(-1, self._network.spec.num_ws, -1)
                losses = picture_loss(self._network.picture(rows, side), wanted)
            place = int(losses.argmin())
            self._keep(rows[place], float(losses[place]), side)
            yield ProjectionReport("random", min(first + _BATCH, total), total, self._best_loss, side)

    def _descend(self, stage: str, start: Tensor, first: int, end: int) -> Iterator[ProjectionReport]:
        """Follow gradients from `start` (rows, w_dim), rows 1 for one that all share; steps `first` to `end`."""
        steps = self._settings.steps
        num_ws = self._network.spec.num_ws
        shift = torch.zeros_like(start)
        mean, square = torch.zeros_like(shift), torch.zeros_like(shift)
        for step in range(first, end):
            share = (step + 1) / steps
            side = self._side_at(share)
            free = shift.clone().requires_grad_()
            rows = (start + free * self._deviation).expand(num_ws, -1)
            loss = picture_loss(self._network.picture(rows[None], side), self._target_at(side)).mean()
            spread = (rows - rows.mean(0)) / self._deviation
            (gradient,) = torch.autograd.grad(loss + _PULL * (1 - share) * spread.square().mean(), free)
            self._keep(rows.detach(), float(loss.detach()), side)
            count = step - first + 1
            mean.lerp_(gradient, 0.1)
            square.lerp_(gradient.square(), 0.01)
            # The rate grows over the first steps and falls like a cosine towards the end of the stage.
            inside = count / (end - first)
            rate = _RATE * min(1.0, count / 10) * (0.5 + 0.5 * math.cos(math.pi * inside))
            unbiased = mean / (1 - 0.9**count) / ((square / (1 - 0.99**count)).sqrt() + 1e-12)
            shift = shift - rate * unbiased
            yield ProjectionReport(stage, step + 1, steps, self._best_loss, side, is_done=step + 1 == steps)

    def _keep(self, rows: Tensor, loss: float, side: int) -> None:
        """Remember rows that are the best so far; losses of different resolutions are not compared."""
        if math.isfinite(loss) and (side != self._best_side or loss < self._best_loss):
            self._best, self._best_loss, self._best_side = rows, loss, side

    def _side_at(self, share: float) -> int:
        """Return the resolution at which pictures are compared after a share of the steps."""
        sides = self._network.picture_resolutions
        if share > 1.0 - _FULL_SHARE:
            return sides[-1]
        drafts = [side for side in sides if side >= min(_DRAFT, sides[-1])]
        return drafts[min(len(drafts) - 1, int(share / (1.0 - _FULL_SHARE) * len(drafts)))]

    def _target_at(self, side: int) -> Tensor:
        factor = self._target.shape[-1] // side
        return self._target if factor == 1 else functional.avg_pool2d(self._target, factor)
