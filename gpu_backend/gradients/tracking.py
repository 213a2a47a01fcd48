"""Points followed through pictures: pyramidal Lucas-Kanade, each step checked by tracking back.

This is the independent judge of a drag. It sees pictures alone, never the features that an optimiser uses. Each level
of the pyramid solves, for the window q around a point (Lucas and Kanade 1981; Bouguet 2001)::

    min_d  sum_q |after(q + d) - before(q)|^2,      d <- d - H^-1 sum_q grad(q)^T (after(q + d) - before(q))

with H = sum_q grad(q)^T grad(q) of `before`, over all colour channels. NumPy computes it, on one thread: windows are so
small that a call of torch costs more than its arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_ITERATIONS = 12
_ENOUGH_PX = 0.01
"""A window whose step is shorter rests."""
_RADIUS = 4
_COARSEST = 16
"""Side in pixels below which the pyramid ends."""
_RIDGE = 1e-3

_Picture = NDArray[np.float32]
_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Tracked:
    """Points after a step.

    Attributes
    ----------
    points
        (n, 2): x, y in pixels.
    error
        (n,): pixels between a point and where tracking back ends.
    likeness
        (n,): correlation of the windows before and after, -1..1.
    """

    points: Tensor
    error: Tensor
    likeness: Tensor


@torch.no_grad()
def track(before: Tensor, after: Tensor, points: Tensor) -> Tracked:
    """Follow points from one picture to the next.

    Parameters
    ----------
    before, after
        (1, channels, side, side), of the same shape.
    points
        (n, 2): x, y in pixels; whole numbers are centres.
    """
    one, other = _pyramid(before), _pyramid(after)
    start = points.detach().double().cpu().numpy()
    with np.errstate(invalid="ignore", over="ignore"):  # pictures that are not finite lose their points
        moved = _flow(one, other, start)
        back = _flow(other, one, moved)
        likeness = _correlation(windows(one[0], start, _RADIUS), windows(other[0], moved, _RADIUS))
    error = np.hypot(*(back - start).T)
    return Tracked(*(torch.from_numpy(found).to(points) for found in (moved, error, likeness)))


@torch.no_grad()
def track_through(pictures: Iterable[Tensor], points: Tensor, largest_error: float = 2.0) -> tuple[Tensor, Tensor]:
    """Follow points through consecutive pictures; return the last points (n, 2) and which were never lost (n,)."""
    is_kept = torch.ones(len(points), dtype=torch.bool)
    before: Tensor | None = None
    for picture in pictures:
        if before is not None:
            found = track(before, picture, points)
            points = found.points
            is_kept &= (found.error <= largest_error).cpu()
        before = picture
    return points, is_kept


def _pyramid(picture: Tensor) -> list[_Picture]:
    """Return the picture, (side, side, channels), and halves of it, the finest first."""
    levels: list[_Picture] = [np.ascontiguousarray(picture[0].permute(1, 2, 0).float().cpu().numpy())]
    while len(levels[-1]) >= 2 * _COARSEST:
        whole = len(levels[-1]) // 2 * 2
        last = levels[-1][:whole, :whole]
        rows = last[::2] + last[1::2]
        levels.append(np.float32(0.25) * (rows[:, ::2] + rows[:, 1::2]))
    return levels


def _flow(before: list[_Picture], after: list[_Picture], points: _Numbers) -> _Numbers:
    """Return where the points are in `after`, coarse to fine."""
    shift = np.zeros_like(points)
    for level in reversed(range(len(before))):
        scale = 0.5**level
        shift = _solve(before[level], after[level], (points + 0.5) * scale - 0.5, shift)
        if level:
            shift = shift * 2.0
    return np.minimum(np.maximum(points + shift, 0), len(after[0]) - 1)


def windows(picture: NDArray[Any], points: _Numbers, radius: int) -> _Picture:
    """Return bilinear samples around points, (n, 2 radius + 1, 2 radius + 1, channels), as `sampling.sample` does.

    All pixels of a window have the same shares of their neighbours, so a window is a weighted sum of four crops.
    """
    side = len(picture)
    low = np.floor(points)
    shares = (points - low).astype(np.float32)[:, :, None, None, None]
    near = low.astype(np.intp)[:, :, None] + np.arange(-radius, radius + 2)
    near = np.minimum(np.maximum(near, 0), side - 1)
    places = side * near[:, 1, :, None] + near[:, 0, None, :]
    crops = picture.reshape(side * side, -1).take(places, axis=0).astype(np.float32, copy=False)
    across = crops[:, :, :-1] + shares[:, 0] * (crops[:, :, 1:] - crops[:, :, :-1])
    found: _Picture = across[:, :-1] + shares[:, 1] * (across[:, 1:] - across[:, :-1])
    return found


def _solve(before: _Picture, after: _Picture, points: _Numbers, shift: _Numbers) -> _Numbers:
    """Refine the shifts (n, 2) of the windows around points (n, 2) on one level."""
    count = len(points)
    around = windows(before, points, _RADIUS + 1)
    wanted = around[:, 1:-1, 1:-1]
    along_x = around[:, 1:-1, 2:] - around[:, 1:-1, :-2]
    along_y = around[:, 2:, 1:-1] - around[:, :-2, 1:-1]
    gradient = 0.5 * np.stack([along_x, along_y], 1).reshape(count, 2, -1).astype(np.float64)
    hessian = gradient @ gradient.swapaxes(1, 2)
    ridge = _RIDGE * 0.5 * hessian.trace(axis1=1, axis2=2) + 1e-8
    xx, xy, yy = hessian[:, 0, 0] + ridge, hessian[:, 0, 1], hessian[:, 1, 1] + ridge
    inverse = np.stack([yy, -xy, -xy, xx], 1).reshape(count, 2, 2) / (xx * yy - xy * xy)[:, None, None]
    solver = inverse @ gradient
    start, moves = shift, np.ones((count, 1), np.bool_)
    for _ in range(_ITERATIONS):
        missing = windows(after, points + shift, _RADIUS) - wanted
        step = (solver @ missing.reshape(count, -1, 1))[:, :, 0]
        shift = np.where(moves, shift - step, shift)
        moves = moves & (_lengths(step) >= _ENOUGH_PX)
        if not moves.any():
            break
    # A window without texture sends the shift anywhere: no step of a level is longer than its window.
    return np.where(_lengths(shift - start) <= 2 * _RADIUS, shift, start)


def _lengths(vectors: _Numbers) -> _Numbers:
    """Return the lengths (n, 1) of vectors (n, 2)."""
    return np.hypot(vectors[:, :1], vectors[:, 1:])


def _correlation(one: _Picture, other: _Picture) -> _Numbers:
    """Return the correlations (n,) of windows (n, side, side, channels), each channel less its mean."""
    one, other = (windows - windows.mean((1, 2), keepdims=True, dtype=np.float64) for windows in (one, other))
    product, squares, others = ((a * b).sum((1, 2, 3)) for a, b in ((one, other), (one, one), (other, other)))
    found: _Numbers = product / np.maximum(np.sqrt(squares * others), 1e-12)
    return found
