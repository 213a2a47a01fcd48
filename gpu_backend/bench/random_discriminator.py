"""Discriminators with random weights, for measurements and tests that need no file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpu_backend.bench.shapes import Shape
from gpu_backend.model.discriminator_file import DiscriminatorWeights
from gpu_backend.model.resample_filters import USUAL_TAPS

_BIAS = 0.3


def discriminator_of(shape: Shape, *, seed: int = 0) -> DiscriminatorWeights:
    """Return a residual discriminator for pictures of a StyleGAN2 of a shape, as wide as its generator."""
    sides = [1 << level for level in range(shape.resolution.bit_length() - 1, 1, -1)]
    return random_discriminator({side: min(shape.base // side, shape.maximum) for side in sides}, seed=seed)


def random_discriminator(
    channels: Mapping[int, int], *, img_channels: int = 3, seed: int = 0, scale: float = 1.0
) -> DiscriminatorWeights:
    """Return a residual discriminator of normal numbers times a scale, which layers scale further (He et al. 2015).

    Parameters
    ----------
    channels
        That a block reads, by its side, descending; that the last block writes as 4.
    """
    generator = np.random.default_rng(seed)
    first, *_ = sides = tuple(side for side in channels if side > 4)
    shapes: dict[str, tuple[int, ...]] = {f"b{first}.fromrgb": (channels[first], img_channels, 1, 1)}
    for side in sides:
        inputs, outputs = channels[side], channels[side // 2]
        shapes |= {f"b{side}.conv0": (inputs, inputs, 3, 3), f"b{side}.conv1": (outputs, inputs, 3, 3)}
        shapes |= {f"b{side}.skip": (outputs, inputs, 1, 1)}
    tensors = {}
    for name, weight in shapes.items():
        tensors[f"{name}.weight"] = np.float32(scale) * generator.standard_normal(weight, np.float32)
        if not name.endswith("skip"):
            tensors[f"{name}.bias"] = np.float32(_BIAS * scale) * generator.standard_normal(weight[0], np.float32)
    return DiscriminatorWeights(sides, tensors, USUAL_TAPS)
