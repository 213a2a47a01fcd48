"""Fourier feature input of StyleGAN3 (Karras et al. 2021, section 3.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from gpu_backend.ops.fourier_features import FourierFeatures


def fourier_features(
    ws: Tensor, transform: Tensor, weights: Mapping[str, Tensor], attributes: FourierFeatures
) -> Tensor:
    """Return the features, (batch, channels, size, size).

    Parameters
    ----------
    ws
        (batch, num_ws, w_dim).
    transform
        (3, 3), maps output positions to untransformed ones.
    weights
        ``affine.weight``, ``affine.bias``, ``freqs``, ``phases``, ``weight``.
    """
    affine = weights["affine.weight"] / math.sqrt(attributes.w_dim)
    t = ws[:, attributes.w_index] @ affine.t() + weights["affine.bias"]
    t = t / t[:, :2].norm(dim=1, keepdim=True)
    turn, move = (torch.eye(3, dtype=ws.dtype, device=ws.device).repeat(ws.shape[0], 1, 1) for _ in range(2))
    turn[:, 0, 0], turn[:, 0, 1], turn[:, 1, 0], turn[:, 1, 1] = t[:, 0], -t[:, 1], t[:, 1], t[:, 0]
    move[:, 0, 2], move[:, 1, 2] = -t[:, 2], -t[:, 3]
    matrix = turn @ move @ transform
    freqs = weights["freqs"] @ matrix[:, :2, :2]
    phases = weights["phases"] + (weights["freqs"] @ matrix[:, :2, 2:])[..., 0]
    room = attributes.sampling_rate / 2 - attributes.bandwidth
    amplitudes = (1 - (freqs.norm(dim=2) - attributes.bandwidth) / room).clamp(0, 1)
    places = (torch.arange(attributes.size, dtype=ws.dtype, device=ws.device) + 0.5 - attributes.size / 2) / (
        attributes.sampling_rate
    )
    x, y = places[None, None, None, :], places[None, None, :, None]
    angles = freqs[:, :, 0, None, None] * x + freqs[:, :, 1, None, None] * y + phases[:, :, None, None]
    waves = (2 * math.pi * angles).sin() * amplitudes[:, :, None, None]
    return torch.einsum("oc,bcyx->boyx", weights["weight"] / math.sqrt(attributes.channels), waves)
