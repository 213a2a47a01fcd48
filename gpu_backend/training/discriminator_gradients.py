"""Gradients of the discriminator: of its loss, and of the R1 penalty."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gpu_backend.training.augmentation import AdaptiveChance
from gpu_backend.training.latents import Latents
from gpu_backend.training.losses import fake_loss, real_loss
from gpu_backend.training.metrics import D_LOSS, R1, SIGN
from gpu_backend.training.network_pair import NetworkPair
from gpu_backend.training.optimiser import Optimiser
from gpu_backend.training.options import TrainOptions
from gpu_backend.training.regularisers import r1_penalty
from gpu_backend.training.replay import Noted


class DiscriminatorGradients:
    """Inputs of the discriminator's loss.

    Parameters
    ----------
    real
        Real pictures of the step, in persistent memory.
    chance
        Receives the logits of real pictures.
    changed
        Augmentation of the discriminator's input.
    """

    def __init__(
        self,
        networks: NetworkPair,
        latents: Latents,
        optimiser: Optimiser,
        options: TrainOptions,
        real: Tensor,
        chance: AdaptiveChance,
        changed: Callable[[Tensor], Tensor],
    ) -> None:
        self._networks, self._latents, self._optimiser, self._changed = networks, latents, optimiser, changed
        self._options, self._chance = options, chance
        self._parts = real.chunk(options.accumulate)

    def of_loss(self) -> Noted:
        """Add the gradients of the loss."""
        networks, count = self._networks, len(self._parts)
        networks.train_discriminator()
        losses, signs = [], []
        for part in self._parts:
            with torch.no_grad():
                image = networks.synthesise(self._latents.rows(len(part), follow_average=True))
                image, shown = self._changed(image), self._changed(part)
            of_fake = fake_loss(networks.judge(image))
            self._optimiser.add_gradients(of_fake / count)
            logits = networks.judge(shown)
            of_real = real_loss(logits)
            self._optimiser.add_gradients(of_real / count)
            self._chance.see(logits)
            losses.append(of_fake.detach() + of_real.detach())
            signs.append(logits.detach().sign().mean())
        return {D_LOSS: torch.stack(losses).mean(), SIGN: torch.stack(signs).mean()}

    def of_r1(self) -> Noted:
        """Add the gradients of R1 with respect to the discriminator's input, which is augmented."""
        options, count, scale = self._options, len(self._parts), self._optimiser.loss_scale
        self._networks.train_discriminator()
        penalties = []
        for part in self._parts:
            shown = self._changed(part).detach().requires_grad_(True)
            penalty = r1_penalty(shown, self._networks.judge(shown, twice=True), scale).mean()
            self._optimiser.add_gradients(penalty * (0.5 * options.r1_weight * options.r1_every / count))
            penalties.append(penalty.detach())
        return {R1: torch.stack(penalties).mean()}
