"""Training of the feature network: regression of known factors, with the error in standard deviations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.errors import LoomError
from gpu_backend.training.quality.feature_network import FeatureNetwork, FeatureShape, fitted, spread
from gpu_backend.training.quality.world_source import World, world_batches

Batch = tuple[Tensor, Tensor]
"""Factors (n, factors) in their own units, and pictures (n, 3, R, R) in -1..1."""


@dataclass(frozen=True, slots=True)
class FeatureTraining:
    """How to train.

    Attributes
    ----------
    resolution
        Of the pictures that are drawn; they are averaged down to what the network looks at.
    checked
        Fresh pictures that its skill is measured on.
    """

    shape: FeatureShape = FeatureShape()
    steps: int = 4000
    batch: int = 64
    rate: float = 2e-3
    resolution: int = 128
    checked: int = 2048
    seed: int = 0


def train_on_world(
    world: World, training: FeatureTraining, device: torch.device, progress: Callable[[int, float], None] | None = None
) -> tuple[FeatureNetwork, dict[str, float]]:
    """Train a network on a world; return it and its skill by factor. The same arguments give the same on a device.

    Parameters
    ----------
    progress
        Called with the number of finished steps and the mean squared error of the last one.

    Raises
    ------
    LoomError
        If the error stops being a number.
    """
    sample = world.sample_factors(4096, torch.Generator().manual_seed(training.seed))
    network = new_network(world.factors, training, sample, device)
    # Separate seeds for training and for validation.
    drawn = 3 * training.seed
    pictures = world_batches(
        world, training.steps * training.batch, training.batch, drawn + 1, training.resolution, device
    )
    train(network, pictures, training, progress)
    fresh = world_batches(world, training.checked, training.batch, drawn + 2, training.resolution, device)
    return network, skill(network, fresh)


def new_network(
    names: tuple[str, ...], training: FeatureTraining, factors: Tensor, device: torch.device
) -> FeatureNetwork:
    """Return a network with seeded random weights, standardised to a sample of factors."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)
        return FeatureNetwork(names, training.shape, *spread(factors)).to(device)


def train(
    network: FeatureNetwork,
    batches: Iterable[Batch],
    training: FeatureTraining,
    progress: Callable[[int, float], None] | None = None,
) -> None:
    """Train on all batches with AdamW: linear warm-up for 5 % of the steps, then cosine decay."""
    optimiser = torch.optim.AdamW(network.parameters(), lr=training.rate, weight_decay=1e-2)
    network.train()
    with torch.backends.cudnn.flags(enabled=True, deterministic=True, benchmark=False):
        for step, (factors, pictures) in enumerate(batches):
            for group in optimiser.param_groups:
                group["lr"] = training.rate * _pace(step, training.steps)
            wanted = network.standardised(factors)
            loss = functional.mse_loss(network(fitted(pictures, training.shape.side)), wanted)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            if progress is not None and (step % 50 == 49 or step == 0):
                error = float(loss.detach())
                if not math.isfinite(error):
                    raise LoomError(f"Training stopped: the error at step {step + 1} must be finite, not {error}.")
                progress(step + 1, error)
    network.eval()


def _pace(step: int, steps: int) -> float:
    warm = max(steps // 20, 1)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1.0 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))


@torch.no_grad()
def skill(network: FeatureNetwork, batches: Iterator[Batch]) -> dict[str, float]:
    """Return the fraction of each factor's variance explained, 1 - error / variance, at most 1."""
    errors, values = [], []
    for factors, pictures in batches:
        wanted = network.standardised(factors)
        errors.append((network(pictures) - wanted).double())
        values.append(wanted.double())
    variance = torch.cat(values).var(dim=0, unbiased=False).clamp_min(1e-12)
    shares = 1.0 - torch.cat(errors).square().mean(dim=0) / variance
    return {name: float(share) for name, share in zip(network.names, shares, strict=True)}
