"""The discriminator: residual blocks (Karras et al. 2020b, section 4.1) and the minibatch deviation of Karras 2018."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gpu_backend.model.stylegan2 import block_resolutions
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.training.networks.convolution import POINTWISE, SAME, convolve
from gpu_backend.training.networks.filters import HALVE, filtered
from gpu_backend.training.networks.generator import block_precision
from gpu_backend.training.networks.layers import Dense
from gpu_backend.training.networks.resampling import DownConvolution
from gpu_backend.training.networks.scaled_act import scaled_act
from gpu_backend.training.networks.shape import CLAMP, NetworkShape

_GROUP = 4
_HALF_POWER = math.sqrt(0.5)
"""Gain of both branches of a block, so that their sum keeps its variance."""


class PlainConv(nn.Module):
    """A convolution with equalised learning rate, bias, activation and gain; optionally halves the side."""

    def __init__(self, inputs: int, outputs: int, kernel: int, *, halves: bool = False, gain: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, kernel, kernel))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.down = DownConvolution() if halves else None
        self.act = BiasAct.of_layer("lrelu", gain, CLAMP)
        self.scale = 1.0 / math.sqrt(inputs * kernel**2)

    def forward(self, x: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side) to (n, out, side or half of it, ...), computed as `low`."""
        weight, x = self.weight * self.scale, x.to(low)
        if self.down is None:
            y = convolve(x, weight.to(low), POINTWISE if weight.shape[-1] == 1 else SAME)
        else:
            y = self.down(x, weight)
        return scaled_act(y, self.act, bias=self.bias)


class FromRgb(PlainConv):
    """The 1 x 1 convolution of pictures, which sets the channels-last layout of all later layers."""

    def __init__(self, outputs: int) -> None:
        super().__init__(3, outputs, 1)

    def forward(self, x: Tensor, low: torch.dtype) -> Tensor:
        """(n, 3, R, R) to (n, out, R, R), computed as `low`."""
        return super().forward(x.contiguous(memory_format=torch.channels_last), low)


class Skip(nn.Module):
    """The linear branch of a block: halves the side and changes the channels."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, 1, 1))
        self.scale = _HALF_POWER / math.sqrt(inputs)

    def forward(self, x: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side) to (n, out, side / 2, side / 2), computed as `low`."""
        return convolve(filtered(x.to(low), HALVE), (self.weight * self.scale).to(low), POINTWISE)


class Residual(nn.Module):
    """Two convolutions beside a linear one; half the side."""

    def __init__(self, inputs: int, outputs: int, *, use_half: bool) -> None:
        super().__init__()
        self.use_half = use_half
        self.conv0 = PlainConv(inputs, inputs, 3)
        self.conv1 = PlainConv(inputs, outputs, 3, halves=True, gain=_HALF_POWER)
        self.skip = Skip(inputs, outputs)

    def forward(self, x: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side) to (n, out, side / 2, side / 2)."""
        straight: Tensor = self.skip(x, low)
        bent: Tensor = self.conv1(self.conv0(x, low), low)
        return straight + bent


class Discriminator(nn.Module):
    """Pictures to one logit each: positive for real."""

    def __init__(self, shape: NetworkShape) -> None:
        super().__init__()
        sides = [side for side in reversed(block_resolutions(shape.resolution)) if side > 4]
        self.names = [f"b{side}" for side in sides]
        self.use_half = bool(sides)
        self.from_rgb = FromRgb(shape.channels(shape.resolution))
        for side, name in zip(sides, self.names, strict=True):
            half = side >= shape.half_from
            self.add_module(name, Residual(shape.channels(side), shape.channels(side // 2), use_half=half))
        width = shape.channels(4)
        self.last_conv = PlainConv(width + 1, width, 3)
        self.last_dense = Dense(width * 16, width, act=BiasAct.of_layer("lrelu"))
        self.logit = Dense(width, 1, act=BiasAct())

    def forward(self, pictures: Tensor, low: torch.dtype = torch.float32) -> Tensor:
        """(n, 3, R, R) float32 to (n,) float32; the last layers always run in float32."""
        x: Tensor = self.from_rgb(pictures, block_precision(low, self.use_half))
        for name in self.names:
            block = self.get_submodule(name)
            x = block(x, block_precision(low, bool(block.use_half)))
        x = with_deviation(x.float())
        x = self.last_dense(self.last_conv(x, torch.float32).flatten(1))
        logits: Tensor = self.logit(x)
        return logits[:, 0]


def with_deviation(x: Tensor) -> Tensor:
    """Add one channel: the standard deviation over a group of pictures, averaged over channels and pixels.

    Groups have 4 pictures, or what divides the batch. (n, c, h, w) to (n, c + 1, h, w) float32.
    """
    batch, _, height, width = x.shape
    group = next(size for size in range(min(_GROUP, batch), 0, -1) if batch % size == 0)
    grouped = x.reshape(group, batch // group, -1)
    deviation = (grouped - grouped.mean(0)).square().mean(0).add(1e-8).sqrt().mean(1)
    return torch.cat([x, deviation.repeat(group).reshape(batch, 1, 1, 1).expand(-1, 1, height, width)], 1)
