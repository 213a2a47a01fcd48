"""Cubic splines as weights over their keys.

The value of a spline is linear in its keys, so it is represented by one weight for each key. A frame on a path is then
a blend of keyframe recipes, and no array is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_backend.lazy_names import LazyModule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")


NEGLIGIBLE = 1e-9
"""Weights below this are dropped: a key's weight decays by a factor of 3.7 per step, and this is far below float32."""


def curvature_weights(count: int, closed: bool) -> NDArray[np.float64]:
    """Return the second derivatives of a cubic spline through `count` keys at integers, as weights over the keys.

    Row i has the weight of each key in the second derivative M[i] at key i. With keys y and unit steps::

        M[i-1] + 4 M[i] + M[i+1] = 6 (y[i-1] - 2 y[i] + y[i+1])

    (de Boor, "A Practical Guide to Splines", chapter IV). A closed spline is periodic; an open one is natural, with
    M = 0 at both ends.

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
    """Return the weights of the keys in a spline between `key` and the next one (the first follows the last).

    Parameters
    ----------
    curvature
        From `curvature_weights`.
    key
        Index of the preceding key.
    fraction
        Fraction of the way to the next key, 0 <= fraction < 1. At 0 the key has weight exactly 1, all others 0.

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
