"""Points followed through pictures: pyramidal Lucas-Kanade, each step checked by tracking back.

This is the independent judge of a drag. It sees pictures alone, never the features that an optimiser uses. Each level
of the pyramid solves, for the window q around a point (Lucas and Kanade 1981; Bouguet 2001)::

    min_d  sum_q |after(q + d) - before(q)|^2,      d <- d - H^-1 sum_q grad(q)^T (after(q + d) - before(q))

with H = sum_q grad(q)^T grad(q) of `before`, over all colour channels.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.gradients.sampling import patch_offsets, sample

_ITERATIONS = 12
_ENOUGH_PX = 0.01
"""A step from which on a window rests."""
_RADIUS = 4
_COARSEST = 16
"""Side in pixels below which the pyramid ends."""
_RIDGE = 1e-3


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
    moved = _flow(one, other, points)
    back = _flow(other, one, moved)
    likeness = _correlation(_windows(before, points), _windows(after, moved))
    return Tracked(moved, (back - points).norm(dim=1), likeness)


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


def _pyramid(picture: Tensor) -> list[Tensor]:
    """Return the picture and halves of it, the finest first."""
    levels = [picture]
    while levels[-1].shape[-1] >= 2 * _COARSEST:
        levels.append(functional.avg_pool2d(levels[-1], 2))
    return levels


def _flow(before: list[Tensor], after: list[Tensor], points: Tensor) -> Tensor:
    """Return where the points are in `after`, coarse to fine."""
    shift = torch.zeros_like(points)
    for level in reversed(range(len(before))):
        scale = 0.5**level
        shift = _solve(before[level], after[level], (points + 0.5) * scale - 0.5, shift)
        if level:
            shift = shift * 2.0
    side = after[0].shape[-1] - 1
    return (points + shift).clamp(0, side)


def _windows(picture: Tensor, points: Tensor) -> Tensor:
    """Return samples (n, window, channels) around each point."""
    places = points[:, None] + patch_offsets(_RADIUS, points)
    return sample(picture, places.reshape(-1, 2)).reshape(*places.shape[:2], -1)


def _solve(before: Tensor, after: Tensor, points: Tensor, shift: Tensor) -> Tensor:
    """Refine the shifts (n, 2) of the windows around points (n, 2) on one level."""
    steps = torch.eye(2).to(points)
    gradient = torch.stack(
        [(_windows(before, points + axis) - _windows(before, points - axis)) * 0.5 for axis in steps], dim=-1
    ).flatten(1, 2)
    hessian = gradient.mT @ gradient
    ridge = _RIDGE * hessian.diagonal(dim1=1, dim2=2).mean(1) + 1e-8
    inverse = torch.linalg.inv(hessian + ridge[:, None, None] * steps)
    there = _windows(before, points)
    start = shift
    moves = torch.ones(len(points), 1, dtype=torch.bool, device=points.device)
    for _ in range(_ITERATIONS):
        difference = (_windows(after, points + shift) - there).flatten(1)
        step = (inverse @ (gradient.mT @ difference[..., None]))[..., 0]
        shift = torch.where(moves, shift - step, shift)
        moves = moves & (step.norm(dim=1, keepdim=True) >= _ENOUGH_PX)
        if not moves.any():
            break
    # A window without texture sends the shift anywhere: no step of a level is longer than its window.
    return torch.where((shift - start).norm(dim=1, keepdim=True) <= 2 * _RADIUS, shift, start)


def _correlation(one: Tensor, other: Tensor) -> Tensor:
    """Return the correlations (n,) of windows (n, window, channels)."""
    one, other = (one - one.mean(1, keepdim=True)).flatten(1), (other - other.mean(1, keepdim=True)).flatten(1)
    found: Tensor = (one * other).sum(1) / (one.norm(dim=1) * other.norm(dim=1)).clamp(min=1e-12)
    return found
