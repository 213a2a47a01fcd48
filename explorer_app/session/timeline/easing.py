"""Easing curves: the share of the time between two keys -> the share of the change."""

from __future__ import annotations

from collections.abc import Callable
from math import acos, acosh, asin, asinh, cos, cosh, sin, sinh, sqrt
from typing import Final

from explorer_app.session.tracks import Easing, EasingKind, Handles

NAMES: Final[dict[EasingKind, str]] = {
    "hold": "Hold",
    "linear": "Linear",
    "smooth": "Smooth",
    "in": "Ease in",
    "out": "Ease out",
    "in-out": "Ease in and out",
    "bezier": "Bézier",
}
"""What the kinds are called."""

_AS_BEZIER: Final[dict[EasingKind, Handles]] = {
    "linear": (1 / 3, 1 / 3, 2 / 3, 2 / 3),
    "smooth": (1 / 3, 0.0, 2 / 3, 1.0),
    "in": (1 / 3, 0.0, 2 / 3, 1 / 3),
    "out": (1 / 3, 2 / 3, 2 / 3, 1.0),
    "in-out": (0.5, 0.0, 0.5, 1.0),
}

_NEWTON_STEPS = 8
_CLOSE = 1e-10
_MOST_SHIFT = 50.0
"""The cubic formulas lose twice the digits of the shift: up to this one they keep nine."""


def eased(easing: Easing, u: float) -> float:
    """Return the share of the change at a share `u` of the time, 0..1.

    ========  =============================
    hold      0 until the next key
    linear    u
    smooth    3 u^2 - 2 u^3
    in        u^2
    out       2 u - u^2
    in-out    6 u^5 - 15 u^4 + 10 u^3
    bezier    y where x(s) = u
    ========  =============================
    """
    match easing.kind:
        case "linear":
            return u
        case "smooth":
            return u * u * (3.0 - 2.0 * u)
        case "in":
            return u * u
        case "out":
            return u * (2.0 - u)
        case "in-out":
            return u * u * u * (u * (6.0 * u - 15.0) + 10.0)
        case "bezier":
            return bezier_curve(easing.handles)(u)
        case _:
            return 0.0 if u < 1.0 else 1.0


def as_bezier(easing: Easing) -> Easing:
    """Return the Bezier curve of an easing, for handles to begin with; that of "in-out" is close, the others exact.

    A hold has none and becomes a straight line.
    """
    if easing.kind == "bezier":
        return easing
    return Easing("bezier", _AS_BEZIER.get(easing.kind, _AS_BEZIER["linear"]))


def bezier_curve(handles: Handles) -> Callable[[float], float]:
    """Return y as a function of u, where x(s) = u: the root of the cubic by the formulas of Cardano and Viete.

    With s = t + shift the equation becomes t^3 + p t + q = 0, of which only q depends on u. x1 and x2 are kept in 0..1,
    so x grows from 0 to 1 and the root is the only one in 0..1. Where the cubic is nearly a parabola, the formulas lose
    digits, and Newton's method finds s.
    """
    ax, bx, cx, ay, by, cy = terms = _bezier_terms(handles)
    if abs(ax) < _CLOSE and abs(bx) < _CLOSE:  # handles at a third and two thirds, as `as_bezier` makes them: s = u
        return lambda u: ((ay * u + by) * u + cy) * u
    shift = -bx / (3.0 * ax) if ax else 0.0
    p = cx / ax - 3.0 * shift * shift if ax else 0.0
    if ax == 0.0 or abs(shift) > _MOST_SHIFT or abs(p) < 1e-4:
        return lambda u: _bezier_by_newton(terms, u)
    middle = ((ax * shift + bx) * shift + cx) * shift  # u where t = 0
    radius = sqrt(abs(p) / 3.0)
    width, rate = 2.0 * radius, 0.5 / (ax * radius**3)
    if p < 0.0 < ax and shift > 0.5:  # both turning points lie after 0..1, else before it
        rate, width = -rate, -width
    if p < 0.0 and ax < 0.0:
        rate = -rate
    # y as a polynomial in g, where s = width g + shift
    a, b = ay * width**3, (3.0 * ay * shift + by) * width**2
    c, d = ((3.0 * ay * shift + 2.0 * by) * shift + cy) * width, ((ay * shift + by) * shift + cy) * shift
    if p > 0.0:  # x grows everywhere

        def by_sinh(u: float) -> float:
            g = sinh(asinh((u - middle) * rate) / 3.0)
            return ((a * g + b) * g + c) * g + d

        return by_sinh
    if ax < 0.0:  # 0..1 lies between the turning points

        def by_sine(u: float) -> float:
            turn = (u - middle) * rate
            g = sin(asin(turn if -1.0 < turn < 1.0 else 1.0 if turn > 0.0 else -1.0) / 3.0)
            return ((a * g + b) * g + c) * g + d

        return by_sine

    def by_cosine(u: float) -> float:
        turn = (u - middle) * rate
        g = cosh(acosh(turn) / 3.0) if turn > 1.0 else cos(acos(max(turn, -1.0)) / 3.0)
        return ((a * g + b) * g + c) * g + d

    return by_cosine


_Terms = tuple[float, float, float, float, float, float]
"""Coefficients of x(s) = ((ax s + bx) s + cx) s, and those of y."""


def _bezier_terms(handles: Handles) -> _Terms:
    x1, y1, x2, y2 = handles
    x1, x2 = min(max(x1, 0.0), 1.0), min(max(x2, 0.0), 1.0)
    cx, cy = 3.0 * x1, 3.0 * y1
    bx, by = 3.0 * (x2 - x1) - cx, 3.0 * (y2 - y1) - cy
    return 1.0 - cx - bx, bx, cx, 1.0 - cy - by, by, cy


def _bezier_by_newton(terms: _Terms, u: float) -> float:
    """Return y where x(s) = u: Newton's method, and halving where the curve is too steep for it."""
    ax, bx, cx, ay, by, cy = terms
    s = u
    for _ in range(_NEWTON_STEPS):
        miss = ((ax * s + bx) * s + cx) * s - u
        if -_CLOSE < miss < _CLOSE:
            break
        slope = (3.0 * ax * s + 2.0 * bx) * s + cx
        if slope < 1e-6:
            s = _halved(ax, bx, cx, u)
            break
        s -= miss / slope
    else:
        s = _halved(ax, bx, cx, u)
    s = min(max(s, 0.0), 1.0)
    return ((ay * s + by) * s + cy) * s


def _halved(ax: float, bx: float, cx: float, u: float) -> float:
    """Return s with x(s) = u by bisection; x grows from 0 to 1."""
    low, high = 0.0, 1.0
    for _ in range(48):
        s = 0.5 * (low + high)
        if ((ax * s + bx) * s + cx) * s < u:
            low = s
        else:
            high = s
    return 0.5 * (low + high)
