"""The plain formula of a discriminator's blocks."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.model.discriminator_file import DiscriminatorWeights


def plain_maps(stored: DiscriminatorWeights, pictures: Tensor) -> list[Tensor]:
    """Return the blocks' outputs of pictures by the formula, as exact as the pictures."""
    tensors = {name: torch.from_numpy(array).to(pictures) for name, array in stored.tensors.items()}
    taps = torch.tensor(stored.taps).to(pictures)
    square = torch.outer(taps, taps).flip(0, 1)

    def convolved(x: Tensor, name: str, stride: int = 1, padding: int = 0) -> Tensor:
        weight = tensors[f"{name}.weight"]
        scale = 1.0 / math.sqrt(math.prod(weight.shape[1:]))
        return functional.conv2d(x, weight * scale, tensors.get(f"{name}.bias"), stride, padding)

    def filtered(x: Tensor, padding: int, stride: int = 1) -> Tensor:
        return functional.conv2d(x, square.expand(x.shape[1], 1, -1, -1), None, stride, padding, groups=x.shape[1])

    def activated(x: Tensor) -> Tensor:
        return functional.leaky_relu(x, 0.2) * math.sqrt(2.0)

    x = activated(convolved(pictures, f"b{stored.sides[0]}.fromrgb"))
    maps = []
    for side in stored.sides:
        straight = convolved(filtered(x, padding=1, stride=2), f"b{side}.skip")
        bent = activated(convolved(x, f"b{side}.conv0", padding=1))
        bent = activated(convolved(filtered(bent, padding=2), f"b{side}.conv1", stride=2))
        x = (straight + bent) * math.sqrt(0.5)
        maps.append(x)
    return maps
