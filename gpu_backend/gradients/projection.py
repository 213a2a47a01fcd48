"""Projection: the rows of w whose pictures are nearest to given ones.

1. An encoder's answer where the model has one, w = E(target) or, if its picture is nearer, w + E(target) - E(G(w)), and
   the best of many random latents, compared at a draft resolution,
2. w, one row for all, from several of these at draft resolutions, and then from the best at the full one,
3. each row by itself, and all rows together, at the full resolution, with a pull of rows towards their mean.

Stages as of Karras et al. 2020b (appendix D), the loss of `picture_loss`, without a foreign network. Variables are
coordinates along the principal directions of w, and L-BFGS moves them: those of one row for all layers in their
deviations, those of each row, and of all rows together, in units in which the picture changes alike (`row_scales`),
learnt with the encoder or measured. An encoder's answer is near already, so from there each row is searched at once,
without drafts. Drafts are read off features (`matched_drafts`), since a network's own are too far from its pictures.

The full picture of a draft may get worse while the draft gets better, for drawings after some 25 passes at 64 x 64; the
full resolution is still reached sooner from the last one. So the best so far is chosen by full pictures, which are
compared now and then at the largest draft resolution: who stops there keeps no worse picture than before.

Several pictures share each pass, and each has its own search: what is found for one does not depend on the others. On a
GPU a step is one CUDA graph. The noise stays as it is. The object has no threads; its owner steps it, and may stop at
any time: the best latents of the highest resolution so far stay.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from threading import Event

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from gpu_backend.errors import CancelledError, RequestError
from gpu_backend.gradients.encoder import PictureEncoder
from gpu_backend.gradients.latents import sample_w, search_axes
from gpu_backend.gradients.matched_drafts import MatchedDrafts
from gpu_backend.gradients.network import DifferentiableNetwork, NetworkPasses, cancelled_by
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.gradients.picture_loss import PictureLoss, psnr
from gpu_backend.gradients.projection_settings import MAX_STEPS, ProjectionReport, ProjectionSettings
from gpu_backend.gradients.row_scales import RowScales
from gpu_backend.gradients.step_graph import StepGraph
from gpu_backend.gradients.time_limit import TimeLimit
from gpu_backend.model.latent_file import stored_latent
from gpu_backend.number_array import number_array
from gpu_backend.recipe import StoredLatent

_RANDOM_SIDE = 32
_DRAFT_SIDE = 64
"""Resolutions at which random latents are compared, and at which gradients begin; the full one if it is less."""
_BATCH = {"cpu": 2, "cuda": 64}
"""Random latents a pass. On a processor larger batches take longer a picture: their activations leave its caches."""
_PROMPT_S = 1.0
"""With a time limit, no batch of a processor takes longer unless a single picture does: a stop waits for it."""
_STARTS = {"cpu": 1, "cuda": 4}
"""Latents from which each picture is searched at draft resolutions. A GPU needs hardly longer for four."""
_FEWER = 8
"""With an encoder so many times fewer random latents: the best of 500 of them is 5 dB behind its answer."""
_MOST_TOGETHER = 16
"""Pictures that share a pass at most."""
_NBYTES_A_PIXEL = 6000
"""What a pass keeps for the gradients, for each pixel of a picture; 250 MB for 256 x 256 were measured."""
_DRAFT_SHARE, _DRAFT_SHARE_ENCODED = 0.1, 0.0
"""Share of the steps at draft resolutions, without and with an encoder (assets/results/projection)."""
_JUDGED_EVERY = 12
"""Passes at the largest draft resolution between comparisons of full pictures, each as costly as two of them."""
_ROWS_SHARE, _ROWS_SHARE_ENCODED = 0.6, 1.0
"""Share of the steps for all rows, at the end, without and with an encoder."""
_PULL = 0.02
"""Of the rows towards their mean; in deviations, squared."""
_PRIOR = 0.02
"""The same of w towards its own mean, at drafts: they look like pictures only where the model's latents usually are."""


def pictures_together(network: DifferentiableNetwork) -> int:
    """Return how many pictures should share a projection: as many as the GPU has memory for, one on a processor."""
    if network.device.type != "cuda":
        return 1
    free, _ = torch.cuda.mem_get_info(network.device)
    return max(1, min(_MOST_TOGETHER, free // 2 // (_NBYTES_A_PIXEL * network.spec.resolution**2)))


class Projection:
    """A projection under way.

    Parameters
    ----------
    network
        Of the model.
    targets
        (count, img_channels, side, side) float32 in -1..1, of the network's full resolution.
    settings
        How long to search.
    encoder
        Of the model, which makes most random latents unnecessary; None begins with them alone.
    features
        Of a network of the model, compared at the full resolution; None compares pixels and structure alone.
    clock
        Seconds from any start, never going back; for `ProjectionSettings.start_s`.

    Raises
    ------
    RequestError
        If the targets do not have the shape of the network's pictures, or the settings are out of range.
    """

    def __init__(
        self,
        network: DifferentiableNetwork,
        targets: ArrayLike,
        settings: ProjectionSettings | None = None,
        encoder: PictureEncoder | None = None,
        features: PictureFeatures | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._network = network
        self._clock = clock
        self._cancelled = Event()
        self._settings = settings = settings or ProjectionSettings()
        spec = network.spec
        shape = (spec.img_channels, spec.resolution, spec.resolution)
        given = number_array(targets, "Pictures to project")
        if given.ndim != 4 or not len(given) or given.shape[1:] != shape or not np.isfinite(given).all():
            raise RequestError(f"Pictures to project must be n x {shape} finite numbers, but there are {given.shape}.")
        if not (1 <= settings.steps <= MAX_STEPS and 1 <= settings.candidates <= MAX_STEPS):
            raise RequestError(f"A projection has 1 to {MAX_STEPS:,} steps and random latents.")
        if not settings.start_s > 0:
            raise RequestError("The random latents of a projection need some time.")
        self._targets = network.tensor(given)
        self._encoder, self._features = encoder, features
        learnt = None if encoder is None else encoder.scales
        self._axes = search_axes(network) if learnt is None else network.tensor(learnt.axes)
        """(w_dim, w_dim): w = mean + coordinates @ axes."""
        self._scales = RowScales(network, self._axes, learnt)
        self._drafts = MatchedDrafts(network, tuple({self._random_side, *self._draft_sides}))
        count = len(given)
        self._passes = self._opened_passes(count)
        self._features = self._opened_features(count)
        self._loss: PictureLoss | None = None
        self._searched_drafts = self._drafts.through(self._passes)
        self._best = network.mean_w.expand(count, spec.num_ws, -1).clone()
        self._best_losses = self._targets.new_full((count,), math.inf)
        self._best_side = 0
        self._work = self._steps()
        self.report = ProjectionReport("random", 0, settings.candidates, math.inf, self._random_side)

    @property
    def rows(self) -> NDArray[np.float32]:
        """The best rows so far, (count, num_ws, w_dim); on a GPU they may be a step newer than the report."""
        found: NDArray[np.float32] = self._best.detach().float().cpu().contiguous().numpy()
        return found

    @property
    def has_found(self) -> bool:
        """Whether `rows` are those of pictures that were compared, not just the mean of w."""
        return self._best_side > 0

    @property
    def latents(self) -> tuple[StoredLatent, ...]:
        """The best rows so far as stored latents, one a picture."""
        return tuple(stored_latent(rows) for rows in self.rows)

    @property
    def latent(self) -> StoredLatent:
        """That of the first picture."""
        return stored_latent(self.rows[0])

    @property
    def latent_version(self) -> tuple[float, int]:
        """Loss and resolution of the best rows: another pair means other rows, and nothing is read from the GPU."""
        return self.report.loss, self.report.resolution

    def changes(self) -> dict[str, NDArray[np.float32]]:
        """Return changes of weights: none. A tuned projection has some."""
        return {}

    def step(self) -> ProjectionReport:
        """Do one bounded piece of work: a batch of random latents, or one pass forward and backward."""
        if not self._cancelled.is_set():
            with suppress(CancelledError), cancelled_by(self._cancelled.is_set):
                self.report = next(self._work, self.report)
        return self.report

    def cancel(self) -> None:
        """End the search, from any thread: a step under way returns early where it can, and later ones do nothing."""
        self._cancelled.set()

    @torch.no_grad()
    def psnr(self) -> tuple[float, ...]:
        """Return the PSNR in dB of the best picture so far for each target, at the full resolution."""
        return tuple(
            psnr(self._network.picture(rows[None]), target[None])
            for rows, target in zip(self._best, self._targets, strict=True)
        )

    def _steps(self) -> Iterator[ProjectionReport]:
        limit = self._time_limit()
        # Where time is limited the mean of w takes the place of an answer: it is nearer than most random latents.
        guesses = self._guesses() if self._encoder is not None or limit.is_set else None
        if guesses is not None and (self._encoder is not None or self._drafts.missing):
            # Fitting takes as long as some steps, and until then there would be nothing to show.
            guesses = yield from self._judged(guesses)
        for done, wanted in self._drafts.fit(limit):
            yield self._reported("drafts", done, wanted, self._random_side)
        starts = yield from self._try_candidates(guesses)
        for done, wanted in self._scales.measure(self._time_limit(), self._passes):
            yield self._reported("scales", done, wanted, self._random_side)
        total = self._settings.steps
        ends = [round(total * share) for share in self._shares()]
        first = 0
        for side, end in zip(self._sides, ends, strict=True):
            if side == self._full:
                starts = starts[:, :1]
            if end > first:
                starts = yield from self._descend("w", starts, side, first, end)
            first = max(first, end)
        rows = starts[:, :1].expand(-1, -1, self._network.spec.num_ws, -1)
        yield from self._descend("rows", rows, self._full, first, total)

    def _judged(self, guesses: Tensor) -> Generator[ProjectionReport, None, Tensor]:
        """Keep guesses (count or 1, w_dim) by their full pictures; return them, an encoder's answers corrected.

        What an encoder misreads of its answer's picture is about what it misreads of the target. The correction is
        taken for the pictures that it brings nearer.
        """

        def shown(w: Tensor) -> Tensor:
            rows = self._shared(w[:, None]).expand_as(self._best)
            pictures = self._passes.picture(rows)
            self._keep(rows, self._full_loss()(pictures), self._full)
            return pictures

        with torch.no_grad():
            pictures = shown(guesses)
            again = None if self._encoder is None else self._encoder.encode(pictures.clamp(-1, 1))
        yield self._reported("random", 0, self._candidates, self._full)
        if again is None:
            return guesses
        with torch.no_grad():
            shown(2.0 * guesses - again)
        yield self._reported("random", 0, self._candidates, self._full)
        return self._best[:, 0].clone()

    def _try_candidates(self, guesses: Tensor | None) -> Generator[ProjectionReport, None, Tensor]:
        """Compare guesses (count or 1, w_dim) and random latents, truncated to 0.7, where pictures look right.

        Returns the coordinates of the best, (count, starts, 1, w_dim), the best first.
        """
        side, count, total = self._random_side, len(self._targets), self._candidates
        mean = self._network.mean_w
        candidates = mean + 0.7 * (sample_w(self._network, total, self._settings.seed) - mean)
        limit = self._time_limit()
        if guesses is not None:
            # Guesses come first. With one picture, the guess takes the place of a random latent.
            candidates = torch.cat([guesses, candidates[: total - 1]])
        losses = candidates.new_full((count, len(candidates)), math.inf)
        more = len(candidates) - total
        compared = [PictureLoss(target[None]) for target in self._targets_at(side)]
        first = 0
        while first < limit.fitting(len(candidates), more + 1):
            some = candidates[first : first + self._batch(limit)]
            with torch.no_grad(), limit.pieces(len(some)):
                pictures = self._drafts.picture(self._shared(some[:, None]), side)
                for number, loss in enumerate(compared):
                    losses[number, first : first + len(some)] = loss(pictures)
                best, places = losses.min(1)
                self._keep(self._shared(candidates[places][:, None]), best, side)
            first += len(some)
            wanted = limit.fitting(len(candidates), more + 1)
            yield self._reported("random", max(1, first - more), max(1, wanted - more), side)
        starts = min(_STARTS.get(self._network.device.type, 1), len(candidates))
        places = losses.nan_to_num(nan=math.inf).argsort(1)[:, :starts]
        return self._coordinates(candidates[places])[:, :, None]

    def _descend(
        self, stage: str, starts: Tensor, side: int, first: int, end: int
    ) -> Generator[ProjectionReport, None, Tensor]:
        """Follow gradients from `starts` (count, starts, rows, w_dim), rows 1 for one that all share.

        Steps are those from `first` to `end`. Returns the best coordinates of these steps, shaped as `starts`, the best
        of each picture first.
        """
        count, branches = starts.shape[:2]
        scales = self._scales if stage == "rows" else None
        begin = starts.flatten(0, 1)
        search = self._passes.minimiser(begin if scales is None else scales.variables(begin))
        targets = self._targets_at(side).repeat_interleave(branches, 0)
        loss = self._full_loss() if side == self._full else PictureLoss(targets, None, self._passes.terms)
        judge = self._full_loss() if side == max(self._draft_sides, default=0) else None
        best, best_w = begin.clone(), self._w(begin)
        best_losses = begin.new_full((count * branches,), math.inf)
        found, found_w = best.view(starts.shape), best_w.view(starts.shape)
        each = torch.arange(count, device=found.device)
        nearest = found_w[:, 0] if branches == 1 else found_w[:, 0].clone()
        is_first = torch.tensor(self._best_side != side, device=found.device)
        state = best_losses.new_zeros(2)

        @torch.no_grad()
        def evaluate() -> Tensor:
            """Do a step; return the mean loss of the best, and whether they are of another side than this one."""
            coordinates = search.point if scales is None else scales.coordinates(search.point)
            w = self._w(coordinates)
            with torch.enable_grad():
                picture = self._searched_drafts.picture(self._shared(w.requires_grad_()), side)
            losses, gradient = loss.with_gradient(picture.detach())
            (along_w,) = torch.autograd.grad(picture, w, gradient)
            is_better = (losses < best_losses)[:, None, None]
            torch.where(is_better, coordinates, best, out=best)
            torch.where(is_better, w.detach(), best_w, out=best_w)
            torch.fmin(losses, best_losses, out=best_losses)
            totals, gradients = pulled(losses, along_w @ self._axes.t(), coordinates)
            search.take(totals, gradients if scales is None else scales.gradients(gradients))
            nearest_losses = best_losses
            if branches > 1:
                nearest_losses, places = best_losses.view(count, branches).min(1)
                nearest.copy_(found_w[each, places])
            if judge is None:
                self._keep_in_place(self._shared(nearest), nearest_losses, is_first)
            torch.mean(self._best_losses, 0, out=state[0])
            state[1].copy_(is_first)
            return state

        def pulled(losses: Tensor, gradients: Tensor, coordinates: Tensor) -> tuple[Tensor, Tensor]:
            """Add to losses, and to their gradients by coordinates, what pulls rows together and drafts to the mean."""
            pulls = [(_PULL, coordinates - coordinates.mean(1, keepdim=True))] if stage == "rows" else []
            if side < self._full:
                pulls.append((_PRIOR, coordinates))
            for strength, distances in pulls:
                losses = torch.add(losses, distances.square().mean((1, 2)), alpha=strength)
                gradients = torch.add(gradients, distances, alpha=2.0 * strength / distances[0].numel())
            return losses, gradients

        @torch.no_grad()
        def compare() -> Tensor:
            assert judge is not None
            return judge(self._passes.picture(self._shared(nearest)))

        is_captured, is_torch = self._network.can_be_captured, self._passes is self._network
        step = StepGraph(evaluate, captured=is_captured, measured=is_torch)
        comparison = StepGraph(compare, captured=is_captured, measured=is_torch)
        results = step.results(end - first, ahead=is_captured and judge is None)
        for number, (mean_loss, is_still_first) in enumerate(results, first):
            best_loss: float | None = mean_loss
            if judge is None and not is_still_first:
                self._best_side = side
            elif judge is not None and (number - first) % _JUDGED_EVERY == 0:
                self._keep(self._shared(nearest), comparison(), self._full)
                best_loss = None
            yield self._reported(stage, number + 1, self._settings.steps, side, best_loss)
        sorted_by_loss: Tensor = found[each[:, None], best_losses.view(count, branches).argsort(1)]
        return sorted_by_loss

    def _full_loss(self) -> PictureLoss:
        """Return the loss of full pictures, whose features are computed once."""
        if self._loss is None:
            self._loss = PictureLoss(self._targets, self._features, self._passes.terms)
        return self._loss

    def _opened_passes(self, count: int) -> NetworkPasses:
        """Return what computes the steps' pictures: own kernels where they can, else the network."""
        network = self._network
        if network.own_kernels is None:
            return network
        branches = _STARTS.get(network.device.type, 1) * count
        side = max(self._draft_sides, default=0)
        return network.own_kernels.passes(network, count, draft_side=side, draft_samples=branches) or network

    def _opened_features(self, count: int) -> PictureFeatures | None:
        """Return what computes features at the full resolution: own kernels where they compute the steps."""
        features, own = self._features, self._network.own_kernels
        if features is None or own is None or self._passes is self._network:
            return features
        found: PictureFeatures = own.features(self._network, features, count)
        return found

    def _guesses(self) -> Tensor:
        """Return the encoder's answers, (count, w_dim), or the mean of w, (1, w_dim)."""
        return self._network.mean_w[None] if self._encoder is None else self._encoder.encode(self._targets)

    def _batch(self, limit: TimeLimit) -> int:
        """Return how many random latents the next pass compares."""
        device = self._network.device.type
        batch = _BATCH.get(device, 1)
        if not limit.is_set or device == "cuda":
            return batch
        return batch if limit.done and batch * limit.pace_s <= _PROMPT_S else 1

    def _time_limit(self) -> TimeLimit:
        return TimeLimit(self._settings.start_s, self._clock)

    def _coordinates(self, w: Tensor) -> Tensor:
        """Return the coordinates (..., w_dim) of w (..., w_dim)."""
        found: Tensor = (w - self._network.mean_w) @ self._axes.t() / self._axes.square().sum(1)
        return found

    def _w(self, coordinates: Tensor) -> Tensor:
        """Return w (..., w_dim) of coordinates (..., w_dim)."""
        found: Tensor = self._network.mean_w + coordinates @ self._axes
        return found

    def _shared(self, rows: Tensor) -> Tensor:
        """Return rows of all layers, (batch, num_ws, w_dim), of (batch, 1 or num_ws, w_dim)."""
        return rows.expand(-1, self._network.spec.num_ws, -1)

    def _keep(self, rows: Tensor, losses: Tensor, side: int) -> None:
        """Remember rows (count, num_ws, w_dim) that are the best so far; resolutions are not compared."""
        is_first = torch.tensor(side != self._best_side, device=losses.device)
        self._keep_in_place(rows, losses, is_first)
        if not bool(is_first):
            self._best_side = side

    def _keep_in_place(self, rows: Tensor, losses: Tensor, is_first: Tensor) -> None:
        """Remember the better rows in place, which a CUDA graph can hold.

        Parameters
        ----------
        is_first
            (), whether the losses are the first of their resolution, which the best so far are not compared with; false
            afterwards if one of them is finite.
        """
        begins = (losses < math.inf).any() & is_first
        self._best_losses.masked_fill_(begins, math.inf)
        is_better = losses < self._best_losses
        torch.where(is_better[:, None, None], rows, self._best, out=self._best)
        torch.fmin(losses, self._best_losses, out=self._best_losses)
        is_first.logical_xor_(begins)

    def _reported(self, stage: str, step: int, steps: int, side: int, loss: float | None = None) -> ProjectionReport:
        loss = float(self._best_losses.mean()) if loss is None else loss
        is_done = stage in ("w", "rows") and step == steps
        return ProjectionReport(stage, step, steps, loss, self._best_side or side, is_done=is_done)

    @property
    def _candidates(self) -> int:
        """How many latents are compared first."""
        return self._settings.candidates if self._encoder is None else -(-self._settings.candidates // _FEWER)

    @property
    def _random_side(self) -> int:
        """The least sufficient one; with an encoder the least whose readout comes with the model, if there is one.

        Few latents are compared then, so fitting a readout would take longer than the larger pictures.
        """
        sides = [side for side in self._network.picture_resolutions if side >= min(_RANDOM_SIDE, self._full)]
        known = [side for side in sides if side in self._network.readouts and self._encoder is not None]
        return (known or sides)[0]

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
        count = len(self._draft_sides)
        drafts, rows = (
            (_DRAFT_SHARE, _ROWS_SHARE) if self._encoder is None else (_DRAFT_SHARE_ENCODED, _ROWS_SHARE_ENCODED)
        )
        return [drafts * (number + 1) / count for number in range(count)] + [1.0 - rows]

    def _targets_at(self, side: int) -> Tensor:
        factor = self._targets.shape[-1] // side
        return self._targets if factor == 1 else functional.avg_pool2d(self._targets, factor)
