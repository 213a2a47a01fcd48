"""Styles and demodulation coefficients of every layer (Karras et al. 2020b, section 2.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from gpu_backend.ops.normalize_2nd_moment import EPSILON
from gpu_backend.ops.styles import Styles


def styles(ws: Tensor, weights: Mapping[str, Tensor], attributes: Styles) -> tuple[Tensor, Tensor]:
    """Return (batch, style_width) styles and (batch, demod_width) coefficients.

    Parameters
    ----------
    ws
        (batch, num_ws, w_dim).
    weights
        ``<layer>.affine.weight``, ``<layer>.affine.bias`` and, for layers that demodulate, ``<layer>.weight``.
    """
    rows, coefficients = [], []
    for slot in attributes.slots:
        affine = weights[f"{slot.layer}.affine.weight"] / math.sqrt(attributes.w_dim)
        style = ws[:, slot.w_index] @ affine.t() + weights[f"{slot.layer}.affine.bias"]
        if slot.demod_offset >= 0:
            modulated = weights[f"{slot.layer}.weight"] * style[:, None, :, None, None]
            coefficients.append((modulated.square().sum(dim=(2, 3, 4)) + EPSILON).rsqrt())
        rows.append(style * slot.style_gain)
    return torch.cat(rows, dim=1), torch.cat(coefficients, dim=1)
