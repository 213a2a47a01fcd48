"""A small residual CNN that predicts named factors from pictures; its last hidden layer gives the features.

It is trained on pictures with known factors, so its last hidden layer distinguishes such pictures. A network trained on
photographs would be larger, third-party, and no better at synthetic landscapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

_GROUP = 8
"""Channels per group of group normalisation."""


@dataclass(frozen=True, slots=True)
class FeatureShape:
    """Sizes of the network.

    Attributes
    ----------
    side
        Pixels that it looks at, each way; every stage but the stem halves them.
    widths
        Channels of the stem and of each stage, multiples of 8.
    squeezed
        Channels that are kept of the last map; it is flattened, not averaged, since where a thing is matters.
    features
        Numbers in its last hidden layer.
    """

    side: int = 64
    widths: tuple[int, ...] = (32, 48, 96, 160, 224)
    squeezed: int = 32
    features: int = 128


class _Stage(nn.Module):
    """x -> skip(x) + conv(act(norm(conv(act(norm(x)))))), at half the side (He et al. 2016, pre-activation)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first_norm = nn.GroupNorm(inputs // _GROUP, inputs)
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(outputs // _GROUP, outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = functional.silu(self.first_norm(x))
        hidden = functional.avg_pool2d(self.first(active), 2)
        hidden = self.second(functional.silu(self.second_norm(hidden)))
        summed: Tensor = hidden + self.skip(functional.avg_pool2d(active, 2))
        return summed


class FeatureNetwork(nn.Module):
    """Pictures -> features -> factors.

    Parameters
    ----------
    names
        Of the factors.
    mean, deviation
        (factors,) of the factors in the pictures that it is trained on. Its outputs count in these deviations from
        these means.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, names: tuple[str, ...], shape: FeatureShape, mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.names = names
        self.shape = shape
        self.stem = nn.Conv2d(3, shape.widths[0], 3, padding=1)
        self.stages = nn.Sequential(*(_Stage(a, b) for a, b in zip(shape.widths, shape.widths[1:], strict=False)))
        self.squeeze = nn.Conv2d(shape.widths[-1], shape.squeezed, 1)
        last = shape.side >> (len(shape.widths) - 1)
        self.hidden = nn.Linear(shape.squeezed * last * last, shape.features)
        self.head = nn.Linear(shape.features, len(names))
        self.register_buffer("mean", mean.float().clone())
        self.register_buffer("deviation", deviation.float().clone())

    def features(self, pictures: Tensor) -> Tensor:
        """Return (n, features) of pictures (n, 3, R, R) in -1..1."""
        maps = self.stages(self.stem(fitted(pictures, self.shape.side)))
        flat = functional.silu(self.squeeze(functional.silu(maps))).flatten(1)
        return functional.silu(self.hidden(flat))

    def forward(self, pictures: Tensor) -> Tensor:
        """Return (n, factors) in standard deviations from the mean."""
        factors: Tensor = self.head(self.features(pictures))
        return factors

    def standardised(self, factors: Tensor) -> Tensor:
        """Return standardised factors (n, factors), in the units of the network's output."""
        return (factors.to(self.mean) - self.mean) / self.deviation


def fitted(pictures: Tensor, side: int) -> Tensor:
    """Return pictures resized to a side, with area averaging for downscaling to avoid aliasing."""
    if pictures.shape[-1] == side:
        return pictures
    if pictures.shape[-1] > side:
        return functional.adaptive_avg_pool2d(pictures, side)
    return functional.interpolate(pictures, size=(side, side), mode="bilinear", align_corners=False)


def spread(factors: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation (factors,) of factors (n, factors); a constant factor gets std 1."""
    deviation = factors.double().std(dim=0)
    return factors.double().mean(dim=0), torch.where(deviation > 1e-8, deviation, torch.ones_like(deviation))
