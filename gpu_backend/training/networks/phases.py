"""Convolutions that change the resolution, as ordinary ones at the lower resolution (Karras et al. 2020b, appendix B).

A transposed convolution of stride 2 followed by the filter [1, 3, 3, 1] is linear, so both are one convolution with a
6 x 6 kernel. Each of its four output phases sees 3 x 3 of these taps: one 3 x 3 convolution with four times the
channels gives all phases, which `spread` puts beside each other. The way down is the same, mirrored. This costs four
times the products of the two-step form, and needs neither a convolution of stride 2 nor a filter.
"""

from __future__ import annotations

import torch
from torch import Tensor

_UP = (0.25, 0.75, 0.75, 0.25)
_DOWN = (0.125, 0.375, 0.375, 0.125)


def up_phases() -> Tensor:
    """Return (phase, tap, k) such that sum_k of it times a row of the kernel is what a phase sees.

    t[2 i + k] += x[i] w[k] and y[p] = sum_j g[j] t[p + j - 1]; for p = 2 q + a and i = q + d, j is 2 d + k - a + 1.
    """
    return torch.tensor([[[_at(_UP, 2 * (d - 1) + k - a + 1) for k in range(3)] for d in range(3)] for a in range(2)])


def down_phases() -> Tensor:
    """Return (phase, tap, k), for the way down.

    y[q] = sum_k w[k] sum_j f[j] x[2 q + k + j - 2]; for x[2 (q + d) + a], j is 2 d + a + 2 - k.
    """
    return torch.tensor([[[_at(_DOWN, 2 * d + a - k) for k in range(3)] for d in range(3)] for a in range(2)])


def fold_up(weight: Tensor, phases: Tensor) -> Tensor:
    """(out, in, 3, 3) as stored for a transposed convolution to (4 out, in, 3, 3); phases come before channels."""
    folded = torch.einsum("adk,bel,oikl->aboide", phases, phases, weight)
    return folded.reshape(4 * weight.shape[0], weight.shape[1], 3, 3)


def fold_down(weight: Tensor, phases: Tensor) -> Tensor:
    """(out, in, 3, 3) to (out, 4 in, 3, 3)."""
    folded = torch.einsum("adk,bel,oikl->oabide", phases, phases, weight)
    return folded.reshape(weight.shape[0], 4 * weight.shape[1], 3, 3)


def spread(y: Tensor) -> Tensor:
    """(n, 4 c, h, w) to (n, c, 2 h, 2 w), channels last in memory."""
    batch, channels, height, width = y.shape
    parts = y.permute(0, 2, 3, 1).reshape(batch, height, width, 2, 2, channels // 4).permute(0, 1, 3, 2, 4, 5)
    return parts.reshape(batch, 2 * height, 2 * width, channels // 4).permute(0, 3, 1, 2)


def gather(x: Tensor) -> Tensor:
    """(n, c, 2 h, 2 w) to (n, 4 c, h, w), channels last in memory."""
    batch, channels, height, width = x.shape
    parts = x.permute(0, 2, 3, 1).reshape(batch, height // 2, 2, width // 2, 2, channels).permute(0, 1, 3, 2, 4, 5)
    return parts.reshape(batch, height // 2, width // 2, 4 * channels).permute(0, 3, 1, 2)


def _at(taps: tuple[float, ...], index: int) -> float:
    return taps[index] if 0 <= index < len(taps) else 0.0
