"""Blends of samples under masks (`gpu_backend.ops.blend_samples`)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.ops.blend_samples import BlendSamples


def blend_samples(x: Tensor, masks: Sequence[Tensor], settings: BlendSamples, kept: Tensor | None = None) -> Tensor:
    """Blend (samples, channels, side, side) by masks of (mask side, mask side); the samples that follow are needed.

    `kept` has the second latents, (blends, channels, side, side); None if they follow the pictures.
    """
    pictures = settings.pictures
    made, second = x[:pictures], x[pictures:] if kept is None else kept
    for blend, mask in zip(settings.blends, masks, strict=True):
        made = torch.lerp(made, second[blend], enlarged(mask, settings.resolution))
    return torch.cat((made, x[pictures:]))[: settings.samples_out]


def enlarged(mask: Tensor, side: int) -> Tensor:
    """Return a mask at (side, side) positions, by bilinear interpolation."""
    if len(mask) == side:
        return mask
    return functional.interpolate(mask[None, None], (side, side), mode="bilinear", align_corners=False)[0, 0]
