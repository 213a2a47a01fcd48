"""A cubic spline through keys at any times, as the weights of the keys around."""

from __future__ import annotations

from collections.abc import Sequence


def spline_weights(times: Sequence[float], index: int, share: float, *, closes: bool = False) -> dict[int, float]:
    """Return the weight of each key at a share, 0..1, of the way from key `index` to the next one.

    A cubic Hermite curve whose slope at a key is the slope between its neighbours (Catmull-Rom, for unequal steps)::

        m[i] = (p[i+1] - p[i-1]) / (t[i+1] - t[i-1])

    so that at most four keys have a weight, value and velocity are continuous, and the weights sum to one.

    Parameters
    ----------
    times
        Times of all keys, in ascending order.
    closes
        Whether the last key repeats the first, so that the slope is continuous at the seam.
    """
    last = len(times) - 1
    h = times[index + 1] - times[index]
    u2, u3 = share * share, share * share * share
    start, end = 2.0 * u3 - 3.0 * u2 + 1.0, -2.0 * u3 + 3.0 * u2
    weights = {index: start, index + 1: end}

    def add_slope(key: int, factor: float) -> None:
        before, after = key - 1, key + 1
        shift_before = shift_after = 0.0
        if closes and before < 0:
            before, shift_before = last - 1, times[0] - times[last]
        if closes and after > last:
            after, shift_after = 1, times[last] - times[0]
        before, after = max(before, 0), min(after, last)
        run = times[after] + shift_after - times[before] - shift_before
        if run > 0.0:
            weights[after] = weights.get(after, 0.0) + factor / run
            weights[before] = weights.get(before, 0.0) - factor / run

    add_slope(index, h * (u3 - 2.0 * u2 + share))
    add_slope(index + 1, h * (u3 - u2))
    return {key: weight for key, weight in weights.items() if weight}
