"""Tunes the weights of a network so that a found latent shows a photo more exactly (pivotal tuning, Roich et al. 2021).

The latent stays; Adam moves the weights and biases of the synthesis network, by the loss of projection. The mapping
network and the noise stay, so seeds, directions and edits mean what they meant. The reference functions compute the
network, for every family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.errors import RequestError
from gpu_backend.gradients.edits import LayerEdit
from gpu_backend.gradients.network import DifferentiableNetwork
from gpu_backend.gradients.picture_features import PictureFeatures
from gpu_backend.gradients.picture_loss import PictureLoss, psnr
from gpu_backend.gradients.projection import Projection
from gpu_backend.gradients.projection_settings import MAX_STEPS, ProjectionReport
from gpu_backend.model.spec import StyleGAN1Spec, StyleGAN2Spec
from gpu_backend.recipe import StoredLatent
from gpu_backend.reference.stylegan1 import run_stylegan1
from gpu_backend.reference.stylegan3 import run_stylegan3
from gpu_backend.reference.synthesis import run_synthesis
from gpu_backend.training.adam import Adam

TUNING_STEPS = 150
_RATE = 1e-3
"""Weights have unit deviation. Three times as much finds 0.5 dB more, and other pictures of the model change more."""
_TUNED = (".weight", ".bias")


class PhotoTuning:
    """A tuning under way.

    Parameters
    ----------
    network
        Of the model; its own weights stay as they are.
    rows
        (num_ws, w_dim), the latent that was found.
    target
        (img_channels, side, side) float32 in -1..1, of the network's full resolution.
    steps
        Of Adam.
    features
        As for `Projection`.

    Raises
    ------
    RequestError
        If the number of steps is out of range.
    """

    def __init__(
        self,
        network: DifferentiableNetwork,
        rows: NDArray[np.float32],
        target: NDArray[np.float32],
        steps: int = TUNING_STEPS,
        features: PictureFeatures | None = None,
    ) -> None:
        if not 1 <= steps <= MAX_STEPS:
            raise RequestError(f"A tuning has 1 to {MAX_STEPS:,} steps, not {steps}.")
        self._network, self._steps = network, steps
        self._rows, self._target = network.tensor(rows)[None], network.tensor(target)[None]
        self._loss = PictureLoss(self._target, features)
        self._before = {
            name: tensor
            for name, tensor in network.weights.items()
            if name.startswith("synthesis.") and name.endswith(_TUNED)
        }
        self._tuned = {name: tensor.clone() for name, tensor in self._before.items()}
        self._adam = Adam(list(self._tuned.values()))
        self._best: dict[str, Tensor] = {}
        self._best_loss = math.inf
        self._best_psnr = -math.inf
        self.report = ProjectionReport("weights", 0, steps, math.inf, network.spec.resolution)

    @property
    def psnr(self) -> float:
        """PSNR in dB of the best picture so far."""
        return self._best_psnr

    def step(self) -> ProjectionReport:
        """Do one pass forward and backward, and one step of Adam."""
        if self.report.is_done:
            return self.report
        tensors = list(self._tuned.values())
        for tensor in tensors:
            tensor.requires_grad_()
        picture = self._picture()
        loss = self._loss(picture).mean()
        gradients = torch.autograd.grad(loss, tensors, allow_unused=True)
        for tensor in tensors:
            tensor.requires_grad_(False)
        value = float(loss.detach())
        if value < self._best_loss:
            self._best_loss, self._best_psnr = value, psnr(picture.detach(), self._target)
            self._best = {name: tensor.clone() for name, tensor in self._tuned.items()}
        count = self.report.step + 1
        rate = _RATE * min(1.0, count / 5) * (0.55 + 0.45 * math.cos(math.pi * count / self._steps))
        found = [torch.zeros_like(x) if g is None else g for x, g in zip(tensors, gradients, strict=True)]
        self._adam.step(tensors, found, rate)
        self.report = ProjectionReport(
            "weights", count, self._steps, self._best_loss, self.report.resolution, is_done=count == self._steps
        )
        return self.report

    def changes(self) -> dict[str, NDArray[np.float32]]:
        """Return what the best weights so far add to the model's, by official state-dict names."""
        return {name: (tensor - self._before[name]).float().cpu().numpy() for name, tensor in self._best.items()}

    def _picture(self) -> Tensor:
        """Return the picture of the tuned weights with the network's edits, (1, img_channels, side, side)."""
        spec, noise = self._network.spec, self._network.noise
        weights = dict(self._network.weights) | self._tuned

        def run(ws: Tensor, offsets: Mapping[str, Tensor], edit: LayerEdit | None) -> Tensor:
            if isinstance(spec, StyleGAN2Spec):
                return run_synthesis(spec, weights, ws, noise, offsets=offsets, edit=edit)
            if isinstance(spec, StyleGAN1Spec):
                return run_stylegan1(spec, weights, ws, noise, offsets=offsets, edit=edit)
            return run_stylegan3(spec, weights, ws, offsets=offsets, edit=edit)

        return self._network.run_edited(run, self._rows)


class TunedProjection:
    """A projection of one picture, and then a tuning to it; steps, reports and stops like a projection.

    Parameters
    ----------
    network, target, features
        As for `PhotoTuning`.
    projection
        Of the target alone.
    tunes_now
        Whether the tuning is to begin before the projection is done, with the best rows so far; called before each
        step.
    """

    def __init__(
        self,
        network: DifferentiableNetwork,
        target: NDArray[np.float32],
        projection: Projection,
        features: PictureFeatures | None = None,
        tunes_now: Callable[[], bool] = lambda: False,
    ) -> None:
        self._tunes_now = tunes_now
        self._network, self._target, self._projection, self._features = network, target, projection, features
        self._tuning: PhotoTuning | None = None
        self.report = projection.report

    @property
    def has_found(self) -> bool:
        """Whether `latent` is that of a picture that was compared."""
        return self._projection.has_found

    @property
    def latent(self) -> StoredLatent:
        """The best rows so far."""
        return self._projection.latent

    @property
    def latent_version(self) -> tuple[float, int]:
        """That of the projection: a tuning keeps the rows."""
        return self._projection.latent_version

    def step(self) -> ProjectionReport:
        """Do a step of the projection, or of the tuning after it."""
        if self._tuning is None and self.has_found and self._tunes_now():
            self._begin_tuning()
        if self._tuning is not None:
            self.report = self._tuning.step()
        else:
            report = self._projection.step()
            self.report = replace(report, is_done=False)
            if report.is_done:
                self._begin_tuning()
        return self.report

    def _begin_tuning(self) -> None:
        self._tuning = PhotoTuning(self._network, self._projection.rows[0], self._target, features=self._features)

    def cancel(self) -> None:
        """End the projection, from any thread; a step of the tuning is finished."""
        self._projection.cancel()

    def changes(self) -> dict[str, NDArray[np.float32]]:
        """Return what the best weights so far add to the model's; empty before the first step of the tuning."""
        return {} if self._tuning is None else self._tuning.changes()
