"""The mapping network: random rotations, so that w is nearly as even as z, and its mean."""

from __future__ import annotations

import math

import numpy as np

from bundled_model.layers import Array

Z_DIM = W_DIM = 128
LAYERS = 4
LR_MULTIPLIER = 0.01
_SAMPLES = 20_000


def mapping_tensors(rng: np.random.Generator) -> tuple[dict[str, Array], Array]:
    """Return the tensors of the mapping network and samples of w, (samples, W_DIM)."""
    tensors: dict[str, Array] = {}
    x = rng.standard_normal((_SAMPLES, Z_DIM))
    x /= np.sqrt(np.square(x).mean(axis=1, keepdims=True) + 1e-8)
    for index in range(LAYERS):
        rotation = np.linalg.qr(rng.standard_normal((W_DIM, Z_DIM)))[0]
        before = x @ rotation.T
        weight = rotation / before.std()
        # Most of a unit's samples fall on one side of its kink: bent a little, folded never.
        side = np.where(np.arange(W_DIM) % 2 == 0, 1.2, -1.2) if index < LAYERS - 1 else np.ones(W_DIM)
        bias = side - before.mean(axis=0) / before.std()
        tensors[f"mapping.fc{index}.weight"] = weight * math.sqrt(Z_DIM) / LR_MULTIPLIER
        tensors[f"mapping.fc{index}.bias"] = bias / LR_MULTIPLIER
        x = x @ weight.T + bias
        x = np.where(x > 0.0, x, 0.2 * x) * math.sqrt(2.0)
    tensors["mapping.w_avg"] = x.mean(axis=0)
    return tensors, x
