"""Weights of two vectors on a straight line and on an arc between them."""

from __future__ import annotations

import math


def lerp_weights(fraction: float) -> tuple[float, float]:
    """Return the weights of two ends of a straight line."""
    return 1.0 - fraction, fraction


def slerp_weights(fraction: float, angle: float, first_norm: float, second_norm: float) -> tuple[float, float]:
    """Return the weights of two vectors on the arc between them.

    The direction turns at constant angular speed (Shoemake, "Animating rotation with quaternion curves", 1985:
    sin((1-t) a) / sin a and sin(t a) / sin a on unit vectors). The length is interpolated linearly.

    Parameters
    ----------
    fraction
        Interpolation parameter, 0..1.
    angle
        Between the vectors, in radians. Near 0 and pi the arc is undefined, and the straight line is used.
    first_norm, second_norm
        Their lengths.
    """
    if math.sin(angle) < 1e-6 or first_norm == 0.0 or second_norm == 0.0:
        return lerp_weights(fraction)
    length = (1.0 - fraction) * first_norm + fraction * second_norm
    first = math.sin((1.0 - fraction) * angle) / math.sin(angle)
    second = math.sin(fraction * angle) / math.sin(angle)
    return first * length / first_norm, second * length / second_norm
