"""The networks as one writes them down from the papers (Karras et al. 2020a, 2020b): the baseline of the benchmark.

Every picture has weights of its own in a grouped convolution; a convolution of stride 2 and a filter, itself a
depthwise convolution, change the resolution; noise, bias, leaky ReLU, gain and clamp are operations of their own.
Parameters are those of the trained networks, by name and value, and so is what comes out.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpu_backend.ops.bias_act import LRELU_SLOPE, BiasAct
from gpu_backend.ops.normalize_2nd_moment import EPSILON
from gpu_backend.training.methods import StepMethods
from gpu_backend.training.networks.discriminator import Discriminator, PlainConv, Residual, Skip, with_deviation
from gpu_backend.training.networks.generator import Block, Generator, block_precision
from gpu_backend.training.networks.layers import NoiseInput, StyledConv, ToRgb
from gpu_backend.training.networks.shape import NetworkShape

_TAPS = (0.125, 0.375, 0.375, 0.125)


def make_plain_networks(shape: NetworkShape, methods: StepMethods) -> tuple[Generator, Discriminator]:
    """Make the networks with the same random numbers as the trained ones; of the methods, none is used."""
    generator, discriminator = Generator(shape.spec()), TextbookDiscriminator(shape)
    for name in generator.synthesis.names:
        generator.synthesis.set_submodule(name, TextbookBlock(generator.synthesis.get_submodule(name)))
    for name in discriminator.names:
        block = discriminator.get_submodule(name)
        for branch in ("conv0", "conv1"):
            block.set_submodule(branch, TextbookConv(block.get_submodule(branch)))
        block.set_submodule("skip", TextbookSkip(block.get_submodule("skip")))
    discriminator.set_submodule("from_rgb", TextbookConv(discriminator.from_rgb))
    discriminator.set_submodule("last_conv", TextbookConv(discriminator.last_conv))
    return generator, discriminator


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
    """The 1 x 1 convolution with style that gives a picture."""

    def __init__(self, of: ToRgb) -> None:
        super().__init__()
        self.weight, self.bias, self.affine = of.weight, of.bias, of.affine
        self.act, self.scale = of.act, of.scale

    def forward(self, x: Tensor, w: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side) and (n, w_dim) to (n, 3, side, side) float32."""
        weight = self.weight * self.scale * self.affine(w)[:, None, :, None, None]
        y = modulated(x.to(low), weight.to(low), is_up=False).float()
        return activated(y + self.bias[:, None, None], self.act)


class TextbookBlock(nn.Module):
    """The layers of one resolution."""

    def __init__(self, of: nn.Module) -> None:
        super().__init__()
        assert isinstance(of, Block)
        self.use_half, self.rows = of.use_half, of.rows
        self.const = getattr(of, "const", None)
        for name, layer in of.named_children():
            if isinstance(layer, StyledConv):
                self.add_module(name, TextbookStyledConv(layer))
            elif isinstance(layer, ToRgb):
                self.add_module(name, TextbookToRgb(layer))

    def forward(
        self, x: Tensor | None, image: Tensor | None, ws: Tensor, noise: NoiseInput, low: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """Return features and picture of this resolution."""
        if x is None:
            assert self.const is not None
            x = self.const.expand(ws.shape[0], -1, -1, -1)
        for name in ("conv0", "conv1"):
            if name in self.rows:
                x = self.get_submodule(name)(x, ws[:, self.rows[name]], noise, low)
        assert x is not None
        y: Tensor = self.get_submodule("torgb")(x, ws[:, self.rows["torgb"]], low)
        return x, y if image is None else doubled(image) + y


class TextbookConv(nn.Module):
    """A convolution with bias and leaky ReLU, after a filter and with stride 2 where the side is halved."""

    def __init__(self, of: nn.Module) -> None:
        super().__init__()
        assert isinstance(of, PlainConv)
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

    def __init__(self, of: nn.Module) -> None:
        super().__init__()
        assert isinstance(of, Skip)
        self.weight, self.scale = of.weight, of.scale

    def forward(self, x: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side) to (n, out, side / 2, side / 2), computed as `low`."""
        return functional.conv2d(smoothed(x.to(low), 1, stride=2), (self.weight * self.scale).to(low))


class TextbookDiscriminator(Discriminator):
    """The same network; pictures keep the layout that they come in."""

    def forward(self, pictures: Tensor, low: torch.dtype = torch.float32) -> Tensor:
        """(n, 3, R, R) float32 to (n,) float32."""
        x: Tensor = self.from_rgb(pictures, block_precision(low, self.use_half))
        for name in self.names:
            block = self.get_submodule(name)
            assert isinstance(block, Residual)
            x = block(x, block_precision(low, block.use_half))
        x = self.last_conv(with_deviation(x.float()), torch.float32)
        logits: Tensor = self.logit(self.last_dense(x.flatten(1)))
        return logits[:, 0]


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
    outer, inner = (torch.full((1,), tap, dtype=x.dtype, device=x.device) for tap in _TAPS[:2])
    taps = torch.cat([outer, inner, inner, outer])
    return (torch.outer(taps, taps) * gain).expand(x.shape[1], 1, -1, -1)
