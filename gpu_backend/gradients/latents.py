"""How w is distributed: its mean, the deviation of each dimension and its principal directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gpu_backend.gradients.network import DifferentiableNetwork

_BATCH = 256
_SHORTEST = 0.01
"""Shortest axis of a search, relative to the longest: what hardly varies keeps a unit that can be followed."""


@dataclass(frozen=True, slots=True, eq=False)
class LatentStatistics:
    """Statistics of w, from samples of the mapping network.

    Attributes
    ----------
    deviation
        (w_dim,); positive.
    directions
        (count, w_dim): principal directions, the widest first, each as long as its deviation.
    """

    deviation: Tensor
    directions: Tensor


@torch.no_grad()
def sample_w(network: DifferentiableNetwork, count: int, seed: int = 0) -> Tensor:
    """Return w (count, w_dim) of random latents, before truncation; classes of a conditional network are random too.

    NumPy draws them: torch's generators need modules that `cpu.torch_import` leaves out.
    """
    mapping = network.spec.mapping
    generator = np.random.default_rng(seed)
    found = []
    for first in range(0, count, _BATCH):
        size = min(_BATCH, count - first)
        z = network.tensor(generator.standard_normal((size, mapping.z_dim), np.float32))
        labels = None
        if mapping.c_dim:
            chosen = torch.from_numpy(generator.integers(mapping.c_dim, size=size))
            labels = torch.nn.functional.one_hot(chosen, mapping.c_dim)
        found.append(network.map(z, labels))
    return torch.cat(found)


@torch.no_grad()
def latent_statistics(network: DifferentiableNetwork, *, count: int = 2048, directions: int = 16) -> LatentStatistics:
    """Measure w on `count` samples; there are at most w_dim directions."""
    w = sample_w(network, count)
    centred = (w - w.mean(0)).double()
    covariance = centred.t() @ centred / max(1, count - 1)
    variances, vectors = torch.linalg.eigh(covariance)
    order = variances.argsort(descending=True)[:directions]
    principal = vectors[:, order].t() * variances[order].clamp(min=0.0).sqrt()[:, None]
    deviation = covariance.diagonal().sqrt()
    floor = 1e-3 * float(deviation.mean()) + 1e-12  # a dimension that never varies still has a unit
    return LatentStatistics(deviation.clamp(min=floor).to(w), principal.to(w))


def search_axes(network: DifferentiableNetwork) -> Tensor:
    """Return the axes of searches, (w_dim, w_dim): principal directions, none much shorter than the longest."""
    directions = latent_statistics(network, directions=network.spec.w_dim).directions
    lengths = directions.norm(dim=1, keepdim=True).clamp(min=1e-30)
    axes: Tensor = directions * ((_SHORTEST * lengths.max()).clamp(min=1e-12) / lengths).clamp(min=1.0)
    return axes
