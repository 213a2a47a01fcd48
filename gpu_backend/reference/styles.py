"""Styles and demodulation coefficients of every layer (Karras et al. 2020b, section 2.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from gpu_backend.ops.normalize_2nd_moment import EPSILON
from gpu_backend.ops.styles import Styles


def styles(
    ws: Tensor, weights: Mapping[str, Tensor], attributes: Styles, offsets: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return (batch, style_width) styles and (batch, demod_width) coefficients.

    Parameters
    ----------
    ws
        (batch, num_ws, w_dim).
    weights
        ``<layer>.affine.weight``, ``<layer>.affine.bias``, for layers that demodulate ``<layer>.weight``, and for those
        that are normalised ``<layer>.magnitude_ema``.
    offsets
        (style_width,), added to the styles.
    """
    batch = ws.shape[0]
    rows, coefficients = [], [ws.new_zeros(batch, 0)]
    for slot in attributes.slots:
        affine = weights[f"{slot.layer}.affine.weight"] / math.sqrt(attributes.w_dim)
        style = ws[:, slot.w_index] @ affine.t() + weights[f"{slot.layer}.affine.bias"]
        offset = 0.0 if offsets is None else offsets[slot.style_offset : slot.style_offset + slot.in_channels]
        gain = weights[f"{slot.layer}.magnitude_ema"].rsqrt() if slot.is_normalized else ws.new_ones(())
        if slot.demod_offset >= 0:
            weight, size = weights[f"{slot.layer}.weight"], gain
            if slot.is_normalized:
                style = style * style.square().mean(1, keepdim=True).rsqrt() + offset
                unit = weight.square().mean((1, 2, 3)).rsqrt()
                weight, size = weight * unit[:, None, None, None], unit * gain
            else:
                style = style + offset
            modulated = weight * style[:, None, :, None, None]
            coefficients.append((modulated.square().sum(dim=(2, 3, 4)) + EPSILON).rsqrt() * size)
            style = style * slot.style_gain
        else:
            style = style * gain * slot.style_gain + offset
        rows.append(style)
    return torch.cat(rows, dim=1), torch.cat(coefficients, dim=1)
