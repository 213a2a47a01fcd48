"""Low-pass filters of StyleGAN3: a Kaiser window around a sinc, or around its counterpart for all directions.

With n taps, a = (n - 1) / 2, cutoff and width in samples across the picture, rate that of the samples (Karras et al.
2021, section 3.1 and appendix C)::

    attenuation = 2.285 (n - 1) pi width / (rate / 2) + 7.95
    beta        = 0.1102 (attenuation - 8.7)                                          above 50
                  0.5842 (attenuation - 21)^0.4 + 0.07886 (attenuation - 21)          from 21 to 50
    window[k]   = I0(beta sqrt(1 - ((k - a) / a)^2)) / I0(beta)
    taps[k]     = sinc(2 cutoff / rate (k - a)) window[k]                             divided by their sum
    taps[m, k]  = J1(2 pi cutoff r) / (pi r) window[m] window[k]                      likewise, r = |(m, k) - a| / rate
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

_ANGLES = 256
"""Steps of the integral below, which is exact to rounding as long as they outnumber the argument."""


def low_pass(count: int, cutoff: float, width: float, rate: float) -> NDArray[np.float64]:
    """Return the taps of a filter along one axis, (count,), sum 1."""
    places = np.arange(count) - (count - 1) / 2
    taps: NDArray[np.float64] = np.sinc(2 * cutoff / rate * places) * _window(count, width, rate)
    taps /= taps.sum()
    return taps


def radial_low_pass(count: int, cutoff: float, width: float, rate: float) -> NDArray[np.float64]:
    """Return the taps of a filter that is the same in all directions, (count, count), sum 1; `count` is even."""
    places = np.arange(count) - (count - 1) / 2
    radius = np.hypot(places[:, None], places) / rate
    window = _window(count, width, rate)
    taps: NDArray[np.float64] = _bessel_j1(2 * np.pi * cutoff * radius) / (np.pi * radius) * np.outer(window, window)
    taps /= taps.sum()
    return taps


def kaiser_beta(count: int, width: float, rate: float) -> float:
    """Return the Kaiser window's shape for a transition band of a width."""
    attenuation = 2.285 * (count - 1) * math.pi * width / (rate / 2) + 7.95
    if attenuation > 50:
        return 0.1102 * (attenuation - 8.7)
    if attenuation > 21:
        return 0.5842 * float((attenuation - 21) ** 0.4) + 0.07886 * (attenuation - 21)
    return 0.0


def _window(count: int, width: float, rate: float) -> NDArray[np.float64]:
    return np.kaiser(count, kaiser_beta(count, width, rate))


def _bessel_j1(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """J1(x) as the mean of cos(t - x sin t) over a turn (Bessel's integral)."""
    angles = np.arange(_ANGLES) * (2 * np.pi / _ANGLES)
    mean: NDArray[np.float64] = np.cos(angles - x[..., None] * np.sin(angles)).mean(axis=-1)
    return mean
