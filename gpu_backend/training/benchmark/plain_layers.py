"""The networks as one writes them down from the papers (Karras et al. 2020a, 2020b): the baseline of the benchmark.

Every picture has its own weights, in a grouped convolution; a convolution of stride 2 and a filter, itself a
depthwise convolution, change the resolution; noise, bias, leaky ReLU, gain and clamp are operations of their own.
Parameters are those of the trained networks, by name and value, and so is what comes out.

Two networks between the baseline and the trained ones show what each part of the latter gains: the same weights for
all pictures, then also all around a convolution in one pass. Their filters are the baseline's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpu_backend.ops.bias_act import LRELU_SLOPE, BiasAct
from gpu_backend.ops.normalize_2nd_moment import EPSILON
from gpu_backend.training.network_pair import make_networks
from gpu_backend.training.networks.convolution import POINTWISE, SAME, Geometry, convolve
from gpu_backend.training.networks.discriminator import Discriminator, PlainConv, Skip
from gpu_backend.training.networks.generator import Generator
from gpu_backend.training.networks.layers import NoiseInput, StyledConv, ToRgb
from gpu_backend.training.networks.scaled_act import LINEAR, scaled_act
from gpu_backend.training.networks.shape import NetworkShape

_OUTER, _INNER = 0.125, 0.375
_UP, _DOWN = Geometry(2, 0, transposed=True), Geometry(2)

Replace = Callable[[nn.Module], nn.Module | None]
"""Returns the layer that takes the place of another, with its parameters; None where nothing does."""


class Around(Protocol):
    """What is around a convolution: `scaled_act`, or the same in several passes."""

    def __call__(
        self,
        x: Tensor,
        act: BiasAct = LINEAR,
        *,
        scale: Tensor | None = None,
        noise: Tensor | None = None,
        strength: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Return clamp(act(x scale + noise strength + bias) gain), as x is."""
        ...


def make_plain_networks(shape: NetworkShape) -> tuple[Generator, Discriminator]:
    """Make the networks that are trained, with the same random numbers, and put a textbook's layers into them."""
    return _replaced(shape, _textbook)


def make_networks_of_one_weight(shape: NetworkShape) -> tuple[Generator, Discriminator]:
    """Make the baseline, but with the same weights for all pictures."""
    return _replaced(shape, partial(_of_one_weight, around=in_passes))


def make_networks_of_one_weight_and_pass(shape: NetworkShape) -> tuple[Generator, Discriminator]:
    """Make the baseline with the same weights for all pictures and one pass around each convolution."""
    return _replaced(shape, partial(_of_one_weight, around=scaled_act))


def _replaced(shape: NetworkShape, replace: Replace) -> tuple[Generator, Discriminator]:
    networks = make_networks(shape)
    for network in networks:
        for name, layer in list(network.named_modules()):
            if (plain := replace(layer)) is not None:
                network.set_submodule(name, plain)
    return networks


def _textbook(layer: nn.Module) -> nn.Module | None:
    if isinstance(layer, StyledConv):
        return TextbookStyledConv(layer)
    if isinstance(layer, ToRgb):
        return TextbookToRgb(layer)
    if isinstance(layer, PlainConv):
        return TextbookConv(layer)
    return TextbookSkip(layer) if isinstance(layer, Skip) else None


def _of_one_weight(layer: nn.Module, around: Around) -> nn.Module | None:
    if isinstance(layer, StyledConv):
        return StyledConvOfOneWeight(layer, around)
    if isinstance(layer, ToRgb):
        return ToRgbOfOneWeight(layer, around)
    if isinstance(layer, PlainConv):
        return OwnGradientConv(layer, around)
    return OwnGradientSkip(layer) if isinstance(layer, Skip) else None


class TextbookStyledConv(nn.Module):
    """y = act(conv(x, W s d) + noise + bias)."""

    noise_const: Tensor

    def __init__(self, of: StyledConv) -> None:
        super().__init__()
        self.weight, self.bias, self.noise_strength, self.affine = of.weight, of.bias, of.noise_strength, of.affine
        self.register_buffer("noise_const", of.noise_const)
        self.act, self.scale, self.is_up, self.resolution = of.act, of.scale, of.up is not None, of.resolution

    def forward(self, x: Tensor, w: Tensor, noise: NoiseInput, low: torch.dtype) -> Tensor:
        """(n, in, side, side) and (n, w_dim) to (n, out, resolution, resolution), computed as `low`."""
        weight = self.weight * self.scale * self.affine(w)[:, None, :, None, None]
        weight = weight * (weight.square().sum((2, 3, 4), keepdim=True) + EPSILON).rsqrt()
        y = modulated(x.to(low), weight.to(low), is_up=self.is_up)
        if noise == "random":
            pictures = torch.randn(y.shape[0], 1, self.resolution, self.resolution, dtype=low, device=y.device)
            y = y + pictures * self.noise_strength.to(low)
        elif noise == "const":
            y = y + (self.noise_const * self.noise_strength).to(low)
        return activated(y + self.bias.to(low)[:, None, None], self.act)


class TextbookToRgb(nn.Module):
    """The 1 x 1 convolution with style that adds to the picture."""

    def __init__(self, of: ToRgb) -> None:
        super().__init__()
        self.weight, self.bias, self.affine = of.weight, of.bias, of.affine
        self.act, self.scale = of.act, of.scale

    def forward(self, x: Tensor, image: Tensor | None, w: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side), the picture so far at half the side, and (n, w_dim) to (n, 3, side, side) float32."""
        weight = self.weight * self.scale * self.affine(w)[:, None, :, None, None]
        y = modulated(x.to(low), weight.to(low), is_up=False).float()
        y = activated(y + self.bias[:, None, None], self.act)
        return y if image is None else doubled(image) + y


class TextbookConv(nn.Module):
    """A convolution with bias and leaky ReLU, after a filter and with stride 2 where the side is halved."""

    def __init__(self, of: PlainConv) -> None:
        super().__init__()
        self.weight, self.bias = of.weight, of.bias
        self.act, self.scale, self.is_down = of.act, of.scale, of.down is not None

    def forward(self, x: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side) to (n, out, side or half of it, ...), computed as `low`."""
        weight, x = (self.weight * self.scale).to(low), x.to(low)
        if self.is_down:
            y = functional.conv2d(smoothed(x, 2), weight, stride=2)
        else:
            y = functional.conv2d(x, weight, padding=weight.shape[-1] // 2)
        return activated(y + self.bias.to(low)[:, None, None], self.act)


class TextbookSkip(nn.Module):
    """A filter and a 1 x 1 convolution."""

    def __init__(self, of: Skip) -> None:
        super().__init__()
        self.weight, self.scale = of.weight, of.scale

    def forward(self, x: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side) to (n, out, side / 2, side / 2), computed as `low`."""
        return functional.conv2d(smoothed(x.to(low), 1, stride=2), (self.weight * self.scale).to(low))


class StyledConvOfOneWeight(TextbookStyledConv):
    """y = act(d conv(s x, W) + noise + bias), as `StyledConv` computes it."""

    def __init__(self, of: StyledConv, around: Around) -> None:
        super().__init__(of)
        self.around = around

    def forward(self, x: Tensor, w: Tensor, noise: NoiseInput, low: torch.dtype) -> Tensor:
        """(n, in, side, side) and (n, w_dim) to (n, out, resolution, resolution), computed as `low`."""
        style = self.affine(w)
        demod = (style.square() @ self.weight.square().sum((2, 3)).t() + EPSILON).rsqrt()
        level = (style.detach().square().mean(1, keepdim=True) + EPSILON).sqrt()
        x, weight = self.around(x.to(low), scale=style / level), (self.weight * self.scale).to(low)
        turned = weight.transpose(0, 1)
        y = smoothed(convolve(x, turned, _UP), 1, gain=4.0) if self.is_up else convolve(x, weight, SAME)
        pictures = None
        if noise == "random":
            pictures = torch.randn(y.shape[0], 1, self.resolution, self.resolution, dtype=low, device=y.device)
        elif noise == "const":
            pictures = self.noise_const.to(low)[None, None]
        strength = None if pictures is None else self.noise_strength
        scale = demod * (level / self.scale)
        return self.around(y, self.act, scale=scale, noise=pictures, strength=strength, bias=self.bias)


class ToRgbOfOneWeight(TextbookToRgb):
    """toRGB whose style scales its input."""

    def __init__(self, of: ToRgb, around: Around) -> None:
        super().__init__(of)
        self.around = around

    def forward(self, x: Tensor, image: Tensor | None, w: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side), the picture so far at half the side, and (n, w_dim) to (n, 3, side, side) float32."""
        x = self.around(x.to(low), scale=self.affine(w) * self.scale)
        y = self.around(convolve(x, self.weight.to(low), POINTWISE).float(), self.act, bias=self.bias)
        return y if image is None else doubled(image) + y


class OwnGradientConv(TextbookConv):
    """A convolution of the discriminator whose gradients have gradients at the cost of ordinary ones."""

    def __init__(self, of: PlainConv, around: Around) -> None:
        super().__init__(of)
        self.around = around

    def forward(self, x: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side) to (n, out, side or half of it, ...), computed as `low`."""
        weight, x = (self.weight * self.scale).to(low), x.to(low)
        if self.is_down:
            y = convolve(smoothed(x, 2), weight, _DOWN)
        else:
            y = convolve(x, weight, POINTWISE if weight.shape[-1] == 1 else SAME)
        return self.around(y, self.act, bias=self.bias)


class OwnGradientSkip(TextbookSkip):
    """A filter and a 1 x 1 convolution whose gradients have gradients at the cost of ordinary ones."""

    def forward(self, x: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side) to (n, out, side / 2, side / 2), computed as `low`."""
        return convolve(smoothed(x.to(low), 1, stride=2), (self.weight * self.scale).to(low), POINTWISE)


def in_passes(
    x: Tensor,
    act: BiasAct = LINEAR,
    *,
    scale: Tensor | None = None,
    noise: Tensor | None = None,
    strength: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """Return what `scaled_act` returns, by an operation for each part, in the precision of x."""
    if scale is not None:
        x = x * scale.to(x.dtype)[:, :, None, None]
    if noise is not None and strength is not None:
        x = x + noise * strength.to(x.dtype)
    if bias is not None:
        x = x + bias.to(x.dtype)[:, None, None]
    return activated(x, act)


def modulated(x: Tensor, weight: Tensor, *, is_up: bool) -> Tensor:
    """Convolve (n, in, h, w), each picture with its own of (n, out, in, k, k), as n groups of one convolution."""
    batch, inputs, height, width = x.shape
    outputs, kernel = weight.shape[1], weight.shape[-1]
    x = x.reshape(1, batch * inputs, height, width)
    if not is_up:
        weight = weight.reshape(batch * outputs, inputs, kernel, kernel)
        y = functional.conv2d(x, weight, padding=kernel // 2, groups=batch)
        return y.reshape(batch, outputs, height, width)
    weight = weight.transpose(1, 2).reshape(batch * inputs, outputs, kernel, kernel)
    y = functional.conv_transpose2d(x, weight, stride=2, groups=batch)
    return smoothed(y.reshape(batch, outputs, 2 * height + 1, 2 * width + 1), 1, gain=4.0)


def smoothed(x: Tensor, padding: int, *, stride: int = 1, gain: float = 1.0) -> Tensor:
    """Filter by [1, 3, 3, 1] / 8 along both axes, a depthwise convolution."""
    return functional.conv2d(x, _kernel(x, gain), stride=stride, padding=padding, groups=x.shape[1])


def doubled(image: Tensor) -> Tensor:
    """Twice the side: zeros between the pixels, and the filter."""
    return functional.conv_transpose2d(image, _kernel(image, 4.0), stride=2, padding=1, groups=image.shape[1])


def activated(x: Tensor, act: BiasAct) -> Tensor:
    """Leaky ReLU, gain and clamp, an operation each."""
    if act.activation == "lrelu":
        x = functional.leaky_relu(x, LRELU_SLOPE) * act.gain
    return x if act.clamp is None else x.clamp(-act.clamp, act.clamp)


def _kernel(x: Tensor, gain: float) -> Tensor:
    """Return (channels, 1, 4, 4) in the precision and on the device of x, where nothing is copied to."""
    outer, inner = (torch.full((1,), tap, dtype=x.dtype, device=x.device) for tap in (_OUTER, _INNER))
    taps = torch.cat([outer, inner, inner, outer])
    return (torch.outer(taps, taps) * gain).expand(x.shape[1], 1, -1, -1)
