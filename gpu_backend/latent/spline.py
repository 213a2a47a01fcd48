"""Cubic splines as weights over their keys.

A spline's value is linear in its keys, so it is kept as numbers that say how much of each key is in it. A frame on a
path is then a blend of keyframe recipes, and no array has to be stored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NEGLIGIBLE = 1e-9
"""Weights below this are left out: a key's share fades by 3.7 a step, and float32 ends long before."""


def curvature_weights(count: int, closed: bool) -> NDArray[np.float64]:
    """Return the second derivatives of a cubic spline through `count` keys at whole numbers, as weights over the keys.

    Row i holds what each key gives to the second derivative M[i] at key i. With keys y and unit steps::

        M[i-1] + 4 M[i] + M[i+1] = 6 (y[i-1] - 2 y[i] + y[i+1])

    (de Boor, "A Practical Guide to Splines", chapter IV). A closed spline takes indices around the end (periodic);
    an open one is natural, M = 0 at both ends.

    Returns
    -------
    (count, count) float64
    """
    if count < 2 or (count == 2 and not closed):
        return np.zeros((count, count))
    identity = np.eye(count)
    before, after = np.roll(identity, -1, axis=0), np.roll(identity, 1, axis=0)
    neighbours = before + after
    left, right = 4.0 * identity + neighbours, 6.0 * (neighbours - 2.0 * identity)
    if not closed:
        for end in (0, -1):
            left[end], right[end] = identity[end], 0.0
    return np.asarray(np.linalg.solve(left, right), dtype=np.float64)


def spline_weights(curvature: NDArray[np.float64], key: int, fraction: float) -> dict[int, float]:
    """Return how much of each key a spline holds between `key` and the next one, which follows the last around the end.

    Parameters
    ----------
    curvature
        From `curvature_weights`.
    key
        Index of the key before the place.
    fraction
        How far to the next key, 0 <= fraction < 1. At 0 the key alone has weight, exactly 1.

    Notes
    -----
    With v = 1 - u: y(u) = v y[i] + u y[i+1] + (v^3 - v)/6 M[i] + (u^3 - u)/6 M[i+1].
    """
    if fraction == 0.0:
        return {key: 1.0}
    count = curvature.shape[0]
    following = (key + 1) % count
    rest = 1.0 - fraction
    weights = (rest**3 - rest) / 6.0 * curvature[key] + (fraction**3 - fraction) / 6.0 * curvature[following]
    weights[key] += rest
    weights[following] += fraction
    return {index: float(weights[index]) for index in np.flatnonzero(np.abs(weights) > NEGLIGIBLE).tolist()}
