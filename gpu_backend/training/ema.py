"""Exponential moving average of the generator, which snapshots contain (Karras et al. 2018)."""

from __future__ import annotations

import math

import torch
from torch import nn


def ema_beta(batch: int, pictures_seen: int, half_life: float, ramp_up: float) -> float:
    """Return the decay beta of the average for one step.

    beta = 0.5 ^ (batch / min(half_life, ramp_up * pictures_seen)). The ramp-up limits the half-life (in pictures) to a
    fraction of the training so far, so that early networks decay soon (Karras et al. 2020a, appendix B). `ramp_up` 0
    disables it.
    """
    if ramp_up > 0:
        half_life = min(half_life, ramp_up * pictures_seen)
    return math.pow(0.5, batch / max(half_life, 1e-8))


@torch.no_grad()
def follow(average: nn.Module, network: nn.Module, beta: float) -> None:
    """Move the average's parameters towards the network's, and copy its buffers."""
    torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), 1.0 - beta)
    torch._foreach_copy_(list(average.buffers()), list(network.buffers()))
