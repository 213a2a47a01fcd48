"""Estimate of the mean of w over random latents, for files that do not contain it (Karras et al. 2019, B)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.refusal import Refusal
from gpu_backend.model.spec import MappingSpec
from gpu_backend.model.watch import Watch

LATENTS = 4096
_BATCH = 256
_SLOPE = 0.2
_EPSILON = 1e-8


def mean_w(mapping: MappingSpec, weights: Mapping[str, NDArray[np.float32]], watch: Watch) -> NDArray[np.float32]:
    """Return the mean w, (w_dim,), of `LATENTS` latents of seed 0 in an unconditional mapping network of leaky ReLUs.

    Raises
    ------
    Refusal
        If the network gives values that are not finite.
    CancelledError
        If the operation was cancelled.
    """
    random = np.random.RandomState(0)
    total = np.zeros(mapping.w_dim)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(LATENTS // _BATCH):
            watch.check()
            x = random.randn(_BATCH, mapping.z_dim).astype(np.float32)
            x /= np.sqrt(np.mean(np.square(x), axis=1, keepdims=True) + _EPSILON)
            for index in range(len(mapping.widths)):
                gain = mapping.lr_multiplier / math.sqrt(x.shape[1])
                x = x @ (weights[f"mapping.fc{index}.weight"].T * np.float32(gain))
                x += weights[f"mapping.fc{index}.bias"] * np.float32(mapping.lr_multiplier)
                x = np.where(x > 0, x, x * np.float32(_SLOPE)) * np.float32(math.sqrt(2))
            total += x.sum(axis=0, dtype=np.float64)
    mean = (total / LATENTS).astype(np.float32)
    if not np.isfinite(mean).all():
        raise Refusal("a mapping network that gives finite numbers", "this one gives others")
    return mean
