"""The filter [1, 3, 3, 1] / 8 along both axes, with zeros outside: smoothing, halving and doubling a picture's side.

All three are linear, and the gradient of each is one of them, so gradients of any order cost a pass each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from gpu_backend.training.kernels.filters import run_filter
from gpu_backend.training.kernels.launcher import can_launch
from gpu_backend.training.networks.applied import applied

_OUTER, _INNER = 0.125, 0.375
_TAPS = 4


@dataclass(frozen=True, slots=True)
class Filter:
    """The filter along one axis of a picture x, f = [1, 3, 3, 1] / 8; the gain applies to both axes together.

    Attributes
    ----------
    kind
        ``same``: y[q] = sum_j f[j] x[q + j - pad]. ``down``: y[q] = sum_j f[j] x[2 q + j - 1]. ``up``: its transpose,
        y[p] = sum_q f[p - 2 q + 1] x[q].
    """

    kind: Literal["same", "down", "up"]
    pad: int = 1
    gain: float = 1.0

    @property
    def back(self) -> Filter:
        """The counterpart that computes the gradient."""
        if self.kind == "same":
            return Filter("same", _TAPS - 1 - self.pad, self.gain)
        return Filter("up" if self.kind == "down" else "down", self.pad, self.gain)


def filtered_plainly(x: Tensor, by: Filter) -> Tensor:
    """Return (n, c, h, w) filtered, in sums of slices: exact in float32 on every device."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    y = _along(_along(wide, 3, by), 2, by)
    return (y if by.gain == 1.0 else y * by.gain).to(x.dtype)


def _along(x: Tensor, axis: int, by: Filter) -> Tensor:
    margin = (by.pad, by.pad) if axis == 3 else (0, 0, by.pad, by.pad)
    p, end = functional.pad(x, margin), x.shape[axis] + 2 * by.pad

    def part(first: int, last: int, step: int = 1) -> Tensor:
        return p[(slice(None),) * axis + (slice(first, last, step),)]

    if by.kind == "same":
        return (part(0, end - 3) + part(3, end)) * _OUTER + (part(1, end - 2) + part(2, end - 1)) * _INNER
    if by.kind == "down":
        return (part(0, end - 2, 2) + part(3, end, 2)) * _OUTER + (part(1, end - 1, 2) + part(2, end, 2)) * _INNER
    middle = part(1, end - 1) * _INNER
    even, odd = middle + part(0, end - 2) * _OUTER, middle + part(2, end) * _OUTER
    return torch.stack([even, odd], axis + 1).flatten(axis, axis + 1)


SMOOTH_UP = Filter("same", 1, 4.0)
"""After a transposed convolution of stride 2."""
SMOOTH_DOWN = Filter("same", 2)
"""Before a convolution of stride 2."""
HALVE = Filter("down")
DOUBLE = Filter("up", gain=4.0)


def filtered(x: Tensor, by: Filter) -> Tensor:
    """Return a filtered picture, in the precision of x."""
    if torch.compiler.is_compiling():
        return filtered_plainly(x, by)
    y: Tensor = applied(_Filtered, x, by)
    return y


class _Filtered(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, by: Filter) -> Tensor:
        ctx.by = by
        return run_filter(x, by.kind, by.pad, by.gain) if can_launch(x) else filtered_plainly(x, by)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (dy,) = gradients
        return applied(_Filtered, dy, ctx.by.back), None
