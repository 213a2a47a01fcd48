"""Estimated duration of a training step on a CPU, where the first step may take minutes."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from gpu_backend.training.options import TrainOptions
from gpu_backend.training.step import Training

_PROBE_S, _MAX_PASSES = 1.0, 4
"""Passes begin within this time, up to this many."""

_LONG_PASS_S = 20.0
"""A first pass of this length is not repeated: the estimate would wait too long."""

_BACKWARD = 2.0
"""Cost of a backward pass in forward passes: gradients of the input and of the weights."""

_SECOND_ORDER = 6.0
"""Cost of a regulariser in forward passes: forward, backward, and the backward pass through both."""


def step_seconds(training: Training) -> float:
    """Return the estimated seconds of a step in this process, from forward passes of both networks.

    The state of the random number generators is left as it was.
    """
    began = time.perf_counter()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        z = torch.randn(1, training.options.z_dim)
        least = _forward_seconds(training, z)
        if sum(least) < _LONG_PASS_S:  # it also loads libraries, starts threads and prepares convolutions
            least = _forward_seconds(training, z)
        for _ in range(_MAX_PASSES - 2):
            if time.perf_counter() - began < _PROBE_S:
                least = min(least, _forward_seconds(training, z), key=sum)
    return training.share * _forwards(*least, training.options)


def _forward_seconds(training: Training, z: Tensor) -> tuple[float, float]:
    """Return the seconds that the generator and the discriminator take for one picture."""
    low = training.methods.low
    began = time.perf_counter()
    image = training.ema(z, noise="random", low=low)
    between = time.perf_counter()
    training.discriminator(image, low)
    return between - began, time.perf_counter() - between


def _forwards(generator: float, discriminator: float, options: TrainOptions) -> float:
    """Return the mean cost of a step per picture, from the costs of the two forward passes.

    The loss of the generator runs both networks and differentiates both. The loss of the discriminator runs the
    generator, and the discriminator on real and generated pictures. The path penalty takes half of the batch.
    """
    both = (1 + _BACKWARD) * (generator + discriminator) + generator + 2 * (1 + _BACKWARD) * discriminator
    path = _SECOND_ORDER / 2 * generator / options.path_every if options.path_weight else 0.0
    r1 = _SECOND_ORDER * discriminator / options.r1_every if options.r1_weight else 0.0
    return both + path + r1
