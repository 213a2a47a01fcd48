"""The exponential moving average of the generator, which is what snapshots hold (Karras et al. 2018)."""

from __future__ import annotations

import math

import torch
from torch import nn


def ema_beta(batch: int, pictures_seen: int, half_life: float, ramp_up: float) -> float:
    """Return how much of the average stays in a step.

    beta = 0.5 ^ (batch / min(half_life, ramp_up * pictures_seen)): the half-life, in pictures, is never longer than a
    share of the training so far, so that the first networks are soon forgotten (Karras et al. 2020a, appendix B).
    `ramp_up` 0 means none.
    """
    if ramp_up > 0:
        half_life = min(half_life, ramp_up * pictures_seen)
    return math.pow(0.5, batch / max(half_life, 1e-8))


@torch.no_grad()
def follow(average: nn.Module, network: nn.Module, beta: float) -> None:
    """Move the average's parameters towards the network's, and copy its buffers."""
    torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), 1.0 - beta)
    torch._foreach_copy_(list(average.buffers()), list(network.buffers()))
