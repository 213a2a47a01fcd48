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

from gpu_backend.gradients.sampling import patch_offsets

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
    channels, rest = before.shape[1], torch.zeros_like(points)
    likeness = _correlation(_Windows(before, points).at(rest), _Windows(after, moved).at(rest), channels)
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


class _Windows:
    """Windows around points (n, 2) of a picture (1, channels, side, side), which are moved by shifts.

    `gpu_backend.gradients.sampling.sample` with few operations a call: a point's windows are small.
    """

    def __init__(self, picture: Tensor, points: Tensor) -> None:
        self._picture = picture
        self._unit = 2.0 / max(picture.shape[-1] - 1, 1)
        self._places = (points[:, None] + patch_offsets(_RADIUS, points)) * self._unit - 1.0

    def at(self, shift: Tensor) -> Tensor:
        """Return samples (n, channels * window) at shifts (n, 2) or (2,)."""
        places = self._places + (shift * self._unit).unsqueeze(-2)
        found = functional.grid_sample(
            self._picture, places.reshape(1, 1, -1, 2), mode="bilinear", padding_mode="border", align_corners=True
        )
        count, window = places.shape[:2]
        return found.reshape(-1, count, window).transpose(0, 1).reshape(count, -1)


def _solve(before: Tensor, after: Tensor, points: Tensor, shift: Tensor) -> Tensor:
    """Refine the shifts (n, 2) of the windows around points (n, 2) on one level."""
    here, there = _Windows(before, points), _Windows(after, points)
    steps = torch.eye(2).to(points)
    gradient = torch.stack([(here.at(axis) - here.at(-axis)) * 0.5 for axis in steps], dim=1)
    hessian = gradient @ gradient.mT
    ridge = _RIDGE * hessian.diagonal(dim1=1, dim2=2).mean(1) + 1e-8
    solver = torch.linalg.inv(hessian + ridge[:, None, None] * steps) @ gradient
    wanted = here.at(torch.zeros_like(shift))
    start = shift
    moves = torch.ones(len(points), 1, dtype=torch.bool, device=points.device)
    for _ in range(_ITERATIONS):
        step = (solver @ (there.at(shift) - wanted)[..., None])[..., 0]
        shift = torch.where(moves, shift - step, shift)
        moves = moves & (step.norm(dim=1, keepdim=True) >= _ENOUGH_PX)
        if not moves.any():
            break
    # A window without texture sends the shift anywhere: no step of a level is longer than its window.
    return torch.where((shift - start).norm(dim=1, keepdim=True) <= 2 * _RADIUS, shift, start)


def _correlation(one: Tensor, other: Tensor, channels: int) -> Tensor:
    """Return the correlations (n,) of windows (n, channels * window)."""
    one, other = (_centred(windows, channels) for windows in (one, other))
    found: Tensor = (one * other).sum(1) / (one.norm(dim=1) * other.norm(dim=1)).clamp(min=1e-12)
    return found


def _centred(windows: Tensor, channels: int) -> Tensor:
    """Return windows less the mean of each of their channels."""
    each = windows.reshape(len(windows), channels, -1)
    return (each - each.mean(2, keepdim=True)).flatten(1)
