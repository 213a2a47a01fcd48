"""SeFa: the directions in w that change the styles most, in closed form (no sampling).

Shen and Zhou, "Closed-Form Factorization of Latent Semantics in GANs" (SeFa, CVPR 2021), section 3.2: the unit
vectors n that maximise sum_l |A_l n|^2, where A_l is the affine that turns w into the style of layer l, are the
eigenvectors of sum_l A_l^T A_l with the largest eigenvalues. The sum runs over all layers given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpu_backend.latent.directions import Directions

DIRECTION_COUNT = 24
"""How many directions are kept, where w has that many dimensions."""

_CALM = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
_WIDEST = 8.0
"""Maximum ratio of a weak direction's slider range to that of the first direction."""


def sefa_directions(
    affine_weights: Sequence[NDArray[np.float32]],
    affine_biases: Sequence[NDArray[np.float32]],
    w_avg: NDArray[np.float32],
    count: int = DIRECTION_COUNT,
) -> Directions:
    """Return the strongest directions of a network.

    Parameters
    ----------
    affine_weights
        A (channels, w_dim) array for each styled layer, as stored: the style is w @ (A / sqrt(w_dim))^T + bias.
    affine_biases
        A (channels,) array for each styled layer.
    w_avg
        (w_dim,), the point at which the suggested slider ranges are computed.
    count
        Maximum number of directions.

    Notes
    -----
    The sign of an eigenvector is arbitrary. The component with the largest magnitude is made positive, so that results
    are reproducible. The reach of a direction is the amount that moves the styles by half of their length at w_avg:
    0.5 * |style| / (sqrt(eigenvalue) / sqrt(w_dim)), rounded to 1, 1.5, 2, 3, 5 or 7 times a power of ten.
    """
    w_dim = w_avg.shape[0]
    gram = np.zeros((w_dim, w_dim), dtype=np.float64)
    for weight in affine_weights:
        wide = weight.astype(np.float64)
        gram += wide.T @ wide
    values, columns = np.linalg.eigh(gram)
    keep = min(count, w_dim)
    values, vectors = values[::-1][:keep], columns.T[::-1][:keep]
    peaks = vectors[np.arange(keep), np.abs(vectors).argmax(axis=1)]
    vectors = vectors * np.where(peaks < 0.0, -1.0, 1.0)[:, None]
    style = _style_length(affine_weights, affine_biases, w_avg)
    steepness = np.sqrt(np.maximum(values, 0.0) / w_dim)
    return Directions(
        names=tuple(f"sefa/{index}" for index in range(keep)),
        vectors=np.ascontiguousarray(vectors, dtype=np.float32),
        reach=tuple(_reach(style, float(slope), float(steepness[0])) for slope in steepness),
    )


def _style_length(
    weights: Sequence[NDArray[np.float32]], biases: Sequence[NDArray[np.float32]], w_avg: NDArray[np.float32]
) -> float:
    """Return the Euclidean norm of the concatenated styles at w_avg."""
    centre = np.where(np.isfinite(w_avg), w_avg, 0.0).astype(np.float64) / math.sqrt(w_avg.shape[0])
    total = sum(float(np.square(weight @ centre + bias).sum()) for weight, bias in zip(weights, biases, strict=True))
    return math.sqrt(total)


def _reach(style: float, slope: float, steepest: float) -> float:
    if style == 0.0 or steepest == 0.0:
        return 1.0
    return calm(0.5 * style / max(slope, steepest / _WIDEST))


def calm(value: float) -> float:
    """Return the nearest of 1, 1.5, 2, 3, 5, 7 and 10 times a power of ten, by ratio. `value` must be positive."""
    power = 10.0 ** math.floor(math.log10(value))
    nearest = min(_CALM, key=lambda step: abs(math.log(value / power / step)))
    return float(f"{nearest * power:.2g}")
