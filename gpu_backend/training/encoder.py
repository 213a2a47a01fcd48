"""Trains an encoder on a model's own samples, in steps, so that a caller can render, show progress or stop in between.

It renders a few new pictures of random latents, and fits the encoder to a batch of those that are kept, in turn. The
loss weighs errors of w by what they change in the picture. With u the distance of w from its mean in deviations, and B
the ridge regression of small pictures on u::

    loss = |(u_found - u) L|^2 / w_dim,   L L' = 0.8 B B' w_dim / trace(B B') + 0.2 I

so that directions of w that no picture shows count little. Half of the pictures are masked in part. On a GPU the others
add the loss of `gpu_backend.gradients.picture_loss` between drafts of the found w and of the true one, by gradients
through a StyleGAN2's network. What is kept is the moving average of the weights that has the least error on pictures
that were rendered first and not trained on.

After the last step it learns the scales of searches (`gpu_backend.gradients.scale_learning`), for at most a tenth of
the time that the steps took.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from gpu_backend.errors import RequestError
from gpu_backend.frame import Frame
from gpu_backend.gradients.encoder import PictureEncoder, pooled
from gpu_backend.gradients.matched_drafts import MatchedDrafts
from gpu_backend.gradients.network import differentiable_network
from gpu_backend.gradients.opening import open_gradients
from gpu_backend.gradients.picture_loss import PictureLoss
from gpu_backend.gradients.scale_learning import LEAST_PROBES, ScaleLearner
from gpu_backend.gradients.time_limit import TimeLimit
from gpu_backend.model import Model
from gpu_backend.model.encoder_file import EncoderFile, encoder_side
from gpu_backend.model.latent_file import stored_latent
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.search_scales import most_directions
from gpu_backend.model.spec import StyleGAN2Spec
from gpu_backend.recipe import Latent, Recipe
from gpu_backend.request import RenderRequest
from gpu_backend.training.adam import Adam
from gpu_backend.training.encoder_settings import MAX_STEPS, EncoderReport, EncoderSettings

_PSI = (0.5, 1.0)
"""Range of truncation psi of the samples."""
_HELD_OUT = 64
_FIRST = 256
"""Pictures to train on before the first step."""
_KEPT = 8192
"""Pictures that are kept; from then on new ones replace the oldest."""
_BATCH = 64
_NEW_ON_CPU, _NEW_ON_GPU = 2, 32
"""Pictures that a step renders."""
_RATE = 2e-3
_PICTURE_WEIGHT = 2.0
"""Of the loss of pictures: at 23 dB it then counts three times as much as that of w."""
_EVALUATED_EVERY = 100
_REGRESSED_SIDE = 8
_RIDGE = 0.05
_NOISE = 0.03
"""Deviation of the noise on pictures that are trained on, in -1..1."""
_SCALES_SHARE = 0.1
"""Of the time of the steps, for the scales of searches."""

_log = logging.getLogger(__name__)


class _DeviceLike(Protocol):
    @property
    def id(self) -> str: ...


class RendersSamples(Protocol):
    """The part of `gpu_backend.renderer.Renderer` that a training needs."""

    @property
    def device(self) -> _DeviceLike:
        """The device; its id is "cpu" for the processor."""
        ...

    def map(
        self, z: ArrayLike, c: ArrayLike | None = None, psi: float = 1.0, cutoff: int | None = None
    ) -> NDArray[np.float32]:
        """Return w rows (n, num_ws, w_dim)."""
        ...

    def render_batch(self, requests: Sequence[RenderRequest]) -> tuple[Frame, ...]:
        """Return the frames of requests, in their order."""
        ...


class EncoderTraining:
    """A training under way.

    Parameters
    ----------
    model
        Its samples are rendered by the renderer that `step` gets.
    settings
        How long to train.
    start
        Continue with this encoder, after its steps; None starts with random weights.
    device
        Of torch.
    clock
        Seconds from any start, never going back; it limits what follows the steps.

    Raises
    ------
    RequestError
        If the settings are out of range.
    """

    def __init__(
        self,
        model: Model,
        settings: EncoderSettings | None = None,
        start: EncoderFile | None = None,
        device: str = "cpu",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings = settings or EncoderSettings()
        if not 1 <= settings.steps <= MAX_STEPS:
            raise RequestError(f"An encoder is trained for 1 to {MAX_STEPS:,} steps, not {settings.steps}.")
        self._model = model
        self._device = torch.device(device)
        self._step = self._begun = begun = min(settings.steps, start.steps if start is not None else 0)
        self._generator = np.random.default_rng([settings.seed, begun])
        self._start = start
        side = self._side
        self._pictures = torch.empty(_HELD_OUT + _KEPT, 3, side, side, dtype=torch.uint8, device=self._device)
        self._latents = torch.empty(_HELD_OUT + _KEPT, model.spec.w_dim, device=self._device)
        """The first `_HELD_OUT` are not trained on. Of the others the newest replaces the oldest."""
        noise = self._generator.standard_normal((_BATCH, 3, side, side), np.float32)
        self._noise = torch.from_numpy(noise).to(self._device)
        self._drafts: MatchedDrafts | None = None
        self._rendered = 0
        self._fits_next = False
        self._regressed = 0
        """Pictures that the weights of the loss were found from."""
        self._root = torch.empty(0)
        self._encoder: PictureEncoder | None = None
        self._adam: Adam | None = None
        self._average: dict[str, Tensor] = {}
        self._best: EncoderFile | None = None
        self._scales = None if start is None else start.scales
        self._learner: ScaleLearner | None = None
        self._clock = clock
        self._spent_s = 0.0
        """In steps, renders included."""
        self._limit = TimeLimit(clock=clock)
        self.report = EncoderReport(begun, settings.steps, 0, math.nan, 0.0, is_done=begun == settings.steps)

    @property
    def found(self) -> EncoderFile | None:
        """The best encoder so far; None before the first evaluation."""
        return self._best

    def step(self, renderer: RendersSamples) -> EncoderReport:
        """Render a few pictures; once there are enough of them, every second call fits the encoder instead.

        After the last step of the training, a call is one for the scales of searches.
        """
        if self.report.is_done:
            return self.report
        if self._step >= self._settings.steps:
            try:
                self.report = self._learn_scales()
            except (Refusal, MemoryError, RuntimeError) as error:  # the last of torch, which may lack memory, too
                _log.info("The scales of searches were not learnt, so searches measure them: %s", error)
                self.report = self._reported(is_done=True)
            return self.report
        began_s = self._clock()
        if self._fits_next:
            self._fit()
        else:
            self._render(renderer, _NEW_ON_CPU if renderer.device.id == "cpu" else _NEW_ON_GPU)
        self._fits_next = not self._fits_next and self._rendered >= _HELD_OUT + _FIRST
        self._spent_s += self._clock() - began_s
        self.report = self._reported()
        return self.report

    def _reported(self, probes: int = 0, most: int = 0, *, is_done: bool = False) -> EncoderReport:
        steps = self._settings.steps
        filled = min(1.0, self._rendered / (_HELD_OUT + _FIRST))
        share = 0.1 * filled + 0.8 * (self._step - self._begun) / (steps - self._begun)
        share = 1.0 if is_done else share + 0.1 * probes / max(1, most)
        error = math.nan if self._best is None else self._best.error
        return EncoderReport(self._step, steps, self._rendered, error, share, is_done, probes, most)

    # -- samples ----------------------------------------------------------------------------------------------------

    def _render(self, renderer: RendersSamples, count: int) -> None:
        """Render pictures of random latents at the encoder's side, the oldest replaced."""
        spec = self._model.spec
        mapping = spec.mapping
        z = self._generator.standard_normal((count, mapping.z_dim), np.float32)
        labels = None
        if mapping.c_dim:
            labels = np.eye(mapping.c_dim, dtype=np.float32)[self._generator.integers(mapping.c_dim, size=count)]
        psi = self._generator.uniform(*_PSI, (count, 1)).astype(np.float32)
        mean = np.asarray(self._model.mean_w, np.float32)
        w = mean + psi * (renderer.map(z, labels)[:, 0] - mean)
        side = self._side
        drafts = [at for at in self._model.readouts if at >= side] if renderer.device.id == "cpu" else []
        resolution = min(drafts, default=None)
        requests = [
            RenderRequest(
                self._model.facts.model_id,
                ((Recipe(Latent(stored_latent(np.repeat(row[None], spec.num_ws, 0)))), 1.0),),
                resolution=resolution,
            )
            for row in w
        ]
        pictures = self._small(renderer.render_batch(requests))
        places = [self._place(self._rendered + number) for number in range(count)]
        self._pictures[places] = pictures
        self._latents[places] = torch.from_numpy(w).to(self._device)
        self._rendered += count

    @staticmethod
    def _place(number: int) -> int:
        """Return where a rendered picture is kept."""
        return number if number < _HELD_OUT else _HELD_OUT + (number - _HELD_OUT) % _KEPT

    def _small(self, frames: Sequence[Frame]) -> Tensor:
        """Return the colours of frames, (n, 3, side, side) uint8, box-filtered on the device of torch."""
        pixels = torch.from_numpy(np.stack([frame.pixels for frame in frames])).to(self._device)
        colours = pixels[..., :3].permute(0, 3, 1, 2).flip(1)
        return pooled(colours.float(), self._side).round().to(torch.uint8)

    @property
    def _count(self) -> int:
        """Pictures that can be trained on."""
        return min(self._rendered - _HELD_OUT, _KEPT)

    def _tensors(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return pictures (n, 3, side, side) in -1..1 and w (n, w_dim)."""
        return self._pictures[places].float() / 127.5 - 1.0, self._latents[places]

    def _trained_on(self) -> tuple[Tensor, Tensor]:
        return self._tensors(torch.arange(_HELD_OUT, _HELD_OUT + self._count, device=self._device))

    @property
    def _side(self) -> int:
        return encoder_side(self._model.spec.resolution)

    # -- fitting ----------------------------------------------------------------------------------------------------

    def _fit(self) -> None:
        """Do one step of Adam, and evaluate now and then."""
        encoder = self._encoder or self._begin()
        adam = self._adam
        assert adam is not None
        if self._count >= min(2 * self._regressed, _KEPT) > self._regressed:
            self._regress()
        places = torch.from_numpy(_HELD_OUT + self._generator.integers(self._count, size=_BATCH)).to(self._device)
        pictures, w = self._tensors(places)
        # Drawn once and moved: a processor would take longer to draw it anew than a GPU takes for the step.
        noise = torch.roll(self._noise, [int(by) for by in self._generator.integers(self._side, size=3)], (0, 2, 3))
        learnt = encoder.learnt
        for tensor in learnt.values():
            tensor.requires_grad_()
        found = encoder.units(pictures + _NOISE * noise, self._masks(pictures))
        loss = ((found - self._units(w)) @ self._root).square().mean()
        if self._drafts is not None:
            whole = slice(2 * (_BATCH // 4), None)
            loss = loss + _PICTURE_WEIGHT * self._picture_loss(found[whole], w[whole])
        gradients = torch.autograd.grad(loss, list(learnt.values()))
        for tensor in learnt.values():
            tensor.requires_grad_(False)
        share = self._step / self._settings.steps
        rate = _RATE * min(1.0, (adam.count + 1) / 50) * (0.51 + 0.49 * math.cos(math.pi * share))
        adam.step(list(learnt.values()), gradients, rate)
        self._step += 1
        decay = min(0.998, (adam.count + 1) / (adam.count + 10))
        for name, tensor in learnt.items():
            self._average[name].lerp_(tensor, 1.0 - decay)
        if self._step % _EVALUATED_EVERY == 0 or self._step == self._settings.steps:
            self._evaluate()

    def _begin(self) -> PictureEncoder:
        if self._start is not None:
            encoder = PictureEncoder.from_file(self._start, torch.empty(0, device=self._device))
        else:
            _, w = self._trained_on()
            deviation = w.std(0)
            floor = 1e-3 * float(deviation.mean()) + 1e-12
            encoder = PictureEncoder.fresh(
                self._model.spec.resolution, w.mean(0), deviation.clamp(min=floor), self._settings.seed
            )
        self._encoder = encoder
        self._average = {name: tensor.clone() for name, tensor in encoder.learnt.items()}
        self._adam = Adam(list(encoder.learnt.values()))
        self._drafts = self._open_drafts()
        self._regress()
        if self._start is not None:
            self._evaluate()
        return encoder

    def _open_drafts(self) -> MatchedDrafts | None:
        """Return what draws drafts for the loss of pictures; None where that takes too long."""
        if self._device.type != "cuda" or not isinstance(self._model.spec, StyleGAN2Spec):
            return None
        drafts = MatchedDrafts(differentiable_network(self._model, device=self._device), (self._side,))
        for _ in drafts.fit():
            pass
        return drafts

    def _picture_loss(self, found: Tensor, w: Tensor) -> Tensor:
        """Return the mean loss of the drafts of found distances from the mean (n, w_dim), against those of w."""
        assert self._drafts is not None
        assert self._encoder is not None
        tensors, num_ws = self._encoder.tensors, self._model.spec.num_ws
        rows = torch.stack([tensors["mean"] + tensors["deviation"] * found, w])[:, :, None].expand(-1, -1, num_ws, -1)
        with torch.no_grad():
            wanted = self._drafts.picture(rows[1], self._side)
        return PictureLoss(wanted)(self._drafts.picture(rows[0], self._side)).mean()

    def _units(self, w: Tensor) -> Tensor:
        assert self._encoder is not None
        return (w - self._encoder.tensors["mean"]) / self._encoder.tensors["deviation"]

    @torch.no_grad()
    def _regress(self) -> None:
        """Find the weights of the loss from the pictures that are kept."""
        self._regressed = self._count
        pictures, w = self._trained_on()
        u = self._units(w).double()
        y = pooled(pictures, min(_REGRESSED_SIDE, pictures.shape[-1])).flatten(1).double()
        u, y = u - u.mean(0), y - y.mean(0)
        size = u.shape[1]
        unit = torch.eye(size, dtype=u.dtype, device=u.device)
        found = torch.linalg.solve(u.t() @ u / len(u) + _RIDGE * unit, u.t() @ y / len(u))
        metric = found @ found.t()
        metric = 0.8 * metric * (size / metric.trace().clamp(min=1e-12)) + 0.2 * unit
        self._root = torch.linalg.cholesky(metric).to(w)

    @torch.no_grad()
    def _evaluate(self) -> None:
        """Keep the moving average of the weights if it is the best so far."""
        assert self._encoder is not None
        pictures, w = self._tensors(torch.arange(_HELD_OUT, device=self._device))
        tensors = self._encoder.tensors | self._average
        kept = {name: tensor.clone() for name, tensor in tensors.items()}
        average = PictureEncoder(self._encoder.side, kept, self._scales)
        wanted = self._units(w)
        squares = ((average.units(pictures) - wanted) @ self._root).square().sum()
        error = float(squares / (wanted @ self._root).square().sum().clamp(min=1e-12))
        if math.isfinite(error) and (self._best is None or error <= self._best.error):
            self._best = average.to_file(self._step, error)

    # -- scales of searches -----------------------------------------------------------------------------------------

    def _learn_scales(self) -> EncoderReport:
        """Do a batch of passes for the scales of searches; keep these with the best encoder each time passes double.

        So a training that is stopped early keeps what half of its passes gave at least. Scales of as many passes as
        those that the training started with are not learnt again.
        """
        known = 0 if self._scales is None else self._scales.probes
        if self._best is None or not most_directions(self._model.spec.num_ws, self._model.spec.w_dim):
            return self._reported(is_done=True)
        learner = self._learner
        if learner is None:
            learner = self._learner = ScaleLearner(open_gradients(self._model, device=self._device.type))
            self._limit = TimeLimit(_SCALES_SHARE * self._spent_s, self._clock)
            if known < learner.most:
                learner.probe()  # not limited: the first pass may compile kernels
        else:
            with self._limit.pieces(learner.batch):
                learner.probe()
        done = len(learner.gradients)
        most = min(learner.most, learner.batch + self._limit.fitting(learner.most))
        if most < max(LEAST_PROBES, known + 1):
            return self._reported(is_done=True)
        is_done = done >= most
        if is_done or done >= max(LEAST_PROBES, 2 * known):
            self._scales = learner.scales()
            self._best = replace(self._best, scales=self._scales)
        return self._reported(done, most, is_done=is_done)

    def _masks(self, pictures: Tensor) -> Tensor:
        """Return masks (batch, 1, side, side): a quarter with smooth holes, a quarter with a rectangle, half whole."""
        count, side = len(pictures), pictures.shape[-1]
        draw = self._generator
        masks = torch.ones(count, 1, side, side)
        quarter = count // 4
        smooth = torch.from_numpy(draw.random((quarter, 1, 4, 4), np.float32))
        smooth = functional.interpolate(smooth, size=(side, side), mode="bilinear", align_corners=True)
        least = torch.from_numpy(draw.uniform(0.3, 0.6, (quarter, 1, 1, 1)).astype(np.float32))
        masks[:quarter] = (smooth > least).float()
        for mask in masks[quarter : 2 * quarter, 0]:
            top, left = (int(at) for at in draw.integers(side - side // 4, size=2))
            height, width = (int(at) for at in draw.integers(side // 4, side, size=2))
            mask[top : top + height, left : left + width] = 0.0
        return masks.to(pictures)
