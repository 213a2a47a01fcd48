"""Regression of factors on w, and the pushes in w that move one factor and no other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_RIDGE = 1e-3
"""Ridge, as a fraction of the mean diagonal of the covariance of w; damps directions of low variance."""

_CUT = 1e-6
"""Singular values below this share of the largest are not inverted."""


class Regression(NamedTuple):
    """Factors as linear functions of w.

    Attributes
    ----------
    slopes
        (w_dim, factors): factors change by (w - mean) @ slopes.
    covariance
        (w_dim, w_dim) of w, ridge included.
    explained
        (factors,) the share of each factor's variance that it explains of latents that it was not fitted to.
    """

    slopes: NDArray[np.float64]
    covariance: NDArray[np.float64]
    explained: NDArray[np.float64]


def regress(w: NDArray[np.floating], factors: NDArray[np.floating], ridge: float = _RIDGE) -> Regression:
    """Fit factors (n, factors) to w (n, w_dim) by least squares with a ridge, on all but every fifth latent.

    slopes = (C + ridge tr(C) / w_dim I)^-1 cov(w, factors).
    """
    count = w.shape[0]
    if count < 10:
        raise ValueError(f"expected at least ten latents, not {count}")
    kept = np.arange(count) % 5 == 4
    wide, values = w.astype(np.float64), factors.astype(np.float64)
    mean_w, mean_values = wide[~kept].mean(axis=0), values[~kept].mean(axis=0)
    centred, shifted = wide[~kept] - mean_w, values[~kept] - mean_values
    covariance = centred.T @ centred / len(centred)
    covariance = covariance + ridge * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    slopes = np.linalg.solve(covariance, centred.T @ shifted / len(centred))
    errors = values[kept] - mean_values - (wide[kept] - mean_w) @ slopes
    variance = np.maximum(values[kept].var(axis=0), 1e-12)
    return Regression(slopes, covariance, 1.0 - (errors**2).mean(axis=0) / variance)


def pushes(regression: Regression) -> NDArray[np.float64]:
    """Return a push for each factor, (factors, w_dim): it moves its own by 1, by the regression, and no other.

    Of all such pushes v it is the shortest in the Mahalanobis norm of w, the least v^T C^-1 v: with slopes B,
    V^T = C B (B^T C B)^+.
    """
    spread = regression.covariance @ regression.slopes
    inverse = np.linalg.pinv(regression.slopes.T @ spread, rcond=_CUT, hermitian=True)
    found: NDArray[np.float64] = (spread @ inverse).T
    return found


def combined(responses: NDArray[np.float64], own: int, ridge: float = 1e-2) -> NDArray[np.float64]:
    """Return weights (factors,) of pushes that together move one factor by about 1 and the others by about 0.

    Parameters
    ----------
    responses
        (pushes, factors): by how much each push moves each factor in pictures, as measured.
    own
        The factor to move.

    Notes
    -----
    The least |R^T c - e|^2 + ridge tr(R R^T) / n |c|^2, so that a push that does next to nothing is not blown up.
    """
    gram = responses @ responses.T
    gram = gram + ridge * max(np.trace(gram) / len(gram), 1e-12) * np.eye(len(gram))
    weights: NDArray[np.float64] = np.linalg.solve(gram, responses[:, own])
    return weights
