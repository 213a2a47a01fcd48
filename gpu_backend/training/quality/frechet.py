"""The Frechet distance between Gaussians fitted to two sets of features (Heusel et al. 2017, equation 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Gaussian:
    """A mean (d,) and a covariance (d, d), float64."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


def gaussian_of(features: NDArray[np.floating]) -> Gaussian:
    """Fit a Gaussian to features (n, d), n at least 2; the covariance is the unbiased one."""
    wide = features.astype(np.float64)
    if wide.ndim != 2 or wide.shape[0] < 2:
        raise ValueError(f"expected at least two rows of features, but the shape is {wide.shape}")
    mean = wide.mean(axis=0)
    centred = wide - mean
    return Gaussian(mean, centred.T @ centred / (wide.shape[0] - 1))


def frechet_distance(left: Gaussian, right: Gaussian) -> float:
    """Return |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)), never below 0.

    C1 C2 has the eigenvalues of the symmetric C1^(1/2) C2 C1^(1/2), whose roots `eigh` gives without leaving the real
    numbers; negative ones are rounding errors.
    """
    values, vectors = np.linalg.eigh(left.covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    inner = root @ right.covariance @ root
    mixed = np.sqrt(np.maximum(np.linalg.eigvalsh((inner + inner.T) / 2), 0.0)).sum()
    shift = left.mean - right.mean
    total = shift @ shift + np.trace(left.covariance) + np.trace(right.covariance) - 2.0 * mixed
    return max(float(total), 0.0)
