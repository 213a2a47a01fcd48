"""The first layer of StyleGAN1 (Karras et al. 2019, section 2)."""

from __future__ import annotations

from torch import Tensor

from gpu_backend.ops.adain_input import AdainInput
from gpu_backend.reference.adain import adain


def adain_input(x: Tensor, bias: Tensor, noise: Tensor | None, style: Tensor, attributes: AdainInput) -> Tensor:
    """Return the normalised constant, (batch, channels, 4, 4); the parameters are as in `adain`."""
    return adain(x, bias, noise, attributes.act, style, attributes.epsilon)
