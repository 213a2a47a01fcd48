"""Gradients of the generator: of its loss, and of the path penalty."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gpu_backend.training.latents import Latents
from gpu_backend.training.losses import generator_loss
from gpu_backend.training.metrics import G_LOSS, PATH
from gpu_backend.training.network_pair import NetworkPair
from gpu_backend.training.optimiser import Optimiser
from gpu_backend.training.options import TrainOptions
from gpu_backend.training.regularisers import PathLength, path_lengths
from gpu_backend.training.replay import Noted

_PATH_SHRINK = 2
"""Fraction of the batch for the path penalty (Karras et al. 2020b, appendix B)."""


class GeneratorGradients:
    """Inputs of the generator's loss.

    Parameters
    ----------
    share
        Pictures per step in this process.
    changed
        Augmentation of the discriminator's input.
    """

    def __init__(
        self,
        networks: NetworkPair,
        latents: Latents,
        optimiser: Optimiser,
        options: TrainOptions,
        share: int,
        changed: Callable[[Tensor], Tensor],
    ) -> None:
        self._networks, self._latents, self._optimiser, self._changed = networks, latents, optimiser, changed
        self._options, self._part = options, share // options.accumulate
        self.path_length = PathLength(optimiser.parameters[0].device)

    def of_loss(self) -> Noted:
        """Add the gradients of the loss."""
        networks, parts = self._networks, self._options.accumulate
        networks.train_generator()
        losses = []
        for _ in range(parts):
            image = networks.synthesise(self._latents.rows(self._part))
            loss = generator_loss(networks.judge(self._changed(image)))
            self._optimiser.add_gradients(loss / parts)
            losses.append(loss.detach())
        return {G_LOSS: torch.stack(losses).mean()}

    def of_path(self) -> Noted:
        """Add the gradients of the path penalty, times its interval."""
        options, scale = self._options, self._optimiser.loss_scale
        self._networks.train_generator()
        rows = self._latents.rows(max(1, self._part // _PATH_SHRINK))
        image = self._networks.synthesise(rows, twice=True)
        penalty = self.path_length.penalty(path_lengths(image, rows, torch.randn_like(image), scale))
        self._optimiser.add_gradients(penalty * (options.path_weight * options.path_every))
        return {PATH: penalty.detach()}
