"""Trains an encoder on a model's own samples, in steps, so that a caller can render, show progress or stop in between.

It renders a few new pictures of random latents, and fits the encoder to a batch of those that are kept, in turn. The
loss weighs errors of w by what they change in the picture. With u the distance of w from its mean in deviations, and B
the ridge regression of small pictures on u::

    loss = |(u_found - u) L|^2 / w_dim,   L L' = 0.8 B B' w_dim / trace(B B') + 0.2 I

so that directions of w that no picture shows count little. Half of the pictures are masked in part. What is kept is the
moving average of the weights that has the least error on pictures that were rendered first and not trained on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from gpu_backend.errors import RequestError
from gpu_backend.frame import Frame
from gpu_backend.gradients.encoder import PictureEncoder, pooled
from gpu_backend.model import Model
from gpu_backend.model.encoder_file import EncoderFile, encoder_side
from gpu_backend.model.latent_file import stored_latent
from gpu_backend.recipe import Latent, Recipe
from gpu_backend.request import RenderRequest
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
_EVALUATED_EVERY = 100
_REGRESSED_SIDE = 8
_RIDGE = 0.05
_NOISE = 0.03
"""Deviation of the noise on pictures that are trained on, in -1..1."""


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
        Continue with this encoder, after its steps; None begins anew.
    device
        Of torch.

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
    ) -> None:
        self._settings = settings = settings or EncoderSettings()
        if not 1 <= settings.steps <= MAX_STEPS:
            raise RequestError(f"An encoder is trained for 1 to {MAX_STEPS:,} steps, not {settings.steps}.")
        self._model = model
        self._device = torch.device(device)
        self._step = self._begun = begun = min(settings.steps, start.steps if start is not None else 0)
        self._generator = np.random.default_rng([settings.seed, begun])
        self._start = start
        self._pictures: list[NDArray[np.uint8]] = []
        self._latents: list[NDArray[np.float32]] = []
        self._held: tuple[Tensor, Tensor] | None = None
        self._rendered = 0
        self._fits_next = False
        self._regressed = 0
        """Pictures that the weights of the loss were found from."""
        self._root = torch.empty(0)
        self._encoder: PictureEncoder | None = None
        self._adam: _Adam | None = None
        self._average: dict[str, Tensor] = {}
        self._best: EncoderFile | None = None
        self.report = EncoderReport(begun, settings.steps, 0, math.nan, 0.0, is_done=begun == settings.steps)

    @property
    def found(self) -> EncoderFile | None:
        """The best encoder so far; None before the first evaluation."""
        return self._best

    def step(self, renderer: RendersSamples) -> EncoderReport:
        """Render a few pictures; once there are enough of them, every second call fits the encoder instead."""
        if self.report.is_done:
            return self.report
        if self._fits_next:
            self._fit()
        else:
            self._render(renderer, _NEW_ON_CPU if renderer.device.id == "cpu" else _NEW_ON_GPU)
        self._fits_next = not self._fits_next and self._rendered >= _HELD_OUT + _FIRST
        steps = self._settings.steps
        filled = min(1.0, self._rendered / (_HELD_OUT + _FIRST))
        share = 0.1 * filled + 0.9 * (self._step - self._begun) / (steps - self._begun)
        error = math.nan if self._best is None else self._best.error
        self.report = EncoderReport(self._step, steps, self._rendered, error, share, is_done=self._step >= steps)
        return self.report

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
        for row, frame in zip(w, renderer.render_batch(requests), strict=True):
            self._keep(row, _small(frame, side))
        if self._held is None and len(self._latents) >= _HELD_OUT:
            self._held = self._tensors(range(_HELD_OUT))
            del self._latents[:_HELD_OUT], self._pictures[:_HELD_OUT]

    def _keep(self, w: NDArray[np.float32], picture: NDArray[np.uint8]) -> None:
        self._rendered += 1
        if len(self._latents) < _KEPT:
            self._latents.append(w)
            self._pictures.append(picture)
        else:
            place = self._rendered % _KEPT
            self._latents[place], self._pictures[place] = w, picture

    def _tensors(self, places: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return pictures (n, 3, side, side) in -1..1 and w (n, w_dim)."""
        pictures = torch.from_numpy(np.stack([self._pictures[place] for place in places])).to(self._device)
        w = torch.from_numpy(np.stack([self._latents[place] for place in places])).to(self._device)
        return pictures.float() / 127.5 - 1.0, w

    @property
    def _side(self) -> int:
        return encoder_side(self._model.spec.resolution)

    # -- fitting ----------------------------------------------------------------------------------------------------

    def _fit(self) -> None:
        """Do one step of Adam, and evaluate now and then."""
        encoder = self._encoder or self._begin()
        adam = self._adam
        assert adam is not None
        if len(self._latents) >= min(2 * self._regressed, _KEPT) > self._regressed:
            self._regress()
        places = self._generator.integers(len(self._latents), size=_BATCH)
        pictures, w = self._tensors([int(place) for place in places])
        noise = torch.from_numpy(self._generator.standard_normal(pictures.shape, np.float32)).to(pictures)
        learnt = encoder.learnt
        for tensor in learnt.values():
            tensor.requires_grad_()
        found = encoder.units(pictures + _NOISE * noise, self._masks(pictures))
        loss = ((found - self._units(w)) @ self._root).square().mean()
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
            w = torch.from_numpy(np.stack(self._latents)).to(self._device)
            deviation = w.std(0)
            floor = 1e-3 * float(deviation.mean()) + 1e-12
            encoder = PictureEncoder.fresh(
                self._model.spec.resolution, w.mean(0), deviation.clamp(min=floor), self._settings.seed
            )
        self._encoder = encoder
        self._average = {name: tensor.clone() for name, tensor in encoder.learnt.items()}
        self._adam = _Adam(list(encoder.learnt.values()))
        self._regress()
        if self._start is not None:
            self._evaluate()
        return encoder

    def _units(self, w: Tensor) -> Tensor:
        assert self._encoder is not None
        return (w - self._encoder.tensors["mean"]) / self._encoder.tensors["deviation"]

    @torch.no_grad()
    def _regress(self) -> None:
        """Find the weights of the loss from the pictures that are kept."""
        self._regressed = len(self._latents)
        pictures, w = self._tensors(range(self._regressed))
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
        assert self._held is not None
        assert self._encoder is not None
        pictures, w = self._held
        tensors = self._encoder.tensors | self._average
        average = PictureEncoder(self._encoder.side, {name: tensor.clone() for name, tensor in tensors.items()})
        wanted = self._units(w)
        squares = ((average.units(pictures) - wanted) @ self._root).square().sum()
        error = float(squares / (wanted @ self._root).square().sum().clamp(min=1e-12))
        if math.isfinite(error) and (self._best is None or error <= self._best.error):
            self._best = average.to_file(self._step, error)

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


class _Adam:
    """Adam (Kingma and Ba 2015) without the state of torch.optim, whose import takes seconds in the window."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.count = 0
        self._means = [torch.zeros_like(tensor) for tensor in tensors]
        self._squares = [torch.zeros_like(tensor) for tensor in tensors]

    @torch.no_grad()
    def step(self, tensors: Sequence[Tensor], gradients: Sequence[Tensor], rate: float) -> None:
        """Change tensors in place."""
        self.count += 1
        for tensor, gradient, mean, square in zip(tensors, gradients, self._means, self._squares, strict=True):
            mean.lerp_(gradient, 0.1)
            square.lerp_(gradient.square(), 0.01)
            unbiased = (square / (1 - 0.99**self.count)).sqrt_().add_(1e-8)
            tensor.addcdiv_(mean / (1 - 0.9**self.count), unbiased, value=-rate)


def _small(frame: Frame, side: int) -> NDArray[np.uint8]:
    """Return the colours of a frame (3, side, side), box-filtered."""
    pixels = frame.pixels[..., 2::-1]
    factor = pixels.shape[0] // side
    if factor > 1:
        means = pixels.reshape(side, factor, side, factor, 3).mean((1, 3), dtype=np.float32)
        pixels = np.rint(means).astype(np.uint8)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
