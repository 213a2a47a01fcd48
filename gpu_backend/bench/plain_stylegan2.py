"""The peer: a StyleGAN2 skip network as one would write it in plain PyTorch, so that compilers do well on it.

Styles scale the activations, weights stay constant, and the FIR filters are sums of shifted slices, which a
compiler can fuse. `PlainPicture` adds the conversion to bytes. Weights are random: only the time matters.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpu_backend.model.spec import StyleGAN2Spec
from gpu_backend.ops.to_display import ToDisplay
from gpu_backend.reference.to_display import to_display

_SQRT2 = math.sqrt(2.0)
_CLAMP = 256.0
_USUAL_FILTER = (0.125, 0.375, 0.375, 0.125)


def plain_problem(spec: StyleGAN2Spec) -> str:
    """Say why the plain network is not the one of a model; nothing if it is."""
    convs = [layer for layer in spec.layers if layer.kind in ("conv", "up_conv")]
    if spec.architecture != "skip":
        return f"the plain network is written for skip networks, and this one is {spec.architecture}"
    if spec.resample_filter != _USUAL_FILTER:
        return "the plain network has the filter [1, 3, 3, 1], and this one another"
    if any(layer.activation != "lrelu" or layer.kernel != 3 or not layer.has_noise for layer in convs):
        return "the plain network has 3 x 3 convolutions with noise and leaky ReLU, and this one others"
    return ""


class StyledConv(nn.Module):
    """A convolution with style, and with demodulation, noise and leaky ReLU unless it is a toRGB."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, side: int, w_dim: int, *, up: bool, to_rgb: bool
    ) -> None:
        super().__init__()
        self.up, self.to_rgb = up, to_rgb
        weight = torch.randn(outputs, inputs, kernel, kernel) / math.sqrt(inputs * kernel**2)
        # As it is used, so that no call transposes it: a transposed convolution takes input channels first.
        self.weight = _frozen(weight.transpose(0, 1).contiguous() if up else weight)
        self.affine_weight = _frozen(torch.randn(inputs, w_dim) / math.sqrt(w_dim))
        self.affine_bias = _frozen(torch.ones(inputs))
        self.bias = _frozen(torch.zeros(outputs))
        self.noise = _frozen(torch.randn(1, 1, side, side))
        self.noise_strength = _frozen(torch.tensor(0.1))
        self.squares = _frozen(weight.square().sum((2, 3)))

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        """(batch, inputs, side, side) and (batch, w_dim) to (batch, outputs, side or twice, ...)."""
        style = functional.linear(w, self.affine_weight, self.affine_bias)
        if self.to_rgb:
            y = functional.conv2d(x * (style / math.sqrt(style.shape[1]))[:, :, None, None], self.weight)
            return (y + self.bias[:, None, None]).clamp(-_CLAMP, _CLAMP)
        # In half precision the sum of squares would overflow.
        demod = torch.rsqrt(functional.linear(style.float().square(), self.squares.float()) + 1e-8).to(x.dtype)
        x = x * style[:, :, None, None]
        if self.up:
            x = filtered(functional.conv_transpose2d(x, self.weight, stride=2))
        else:
            x = functional.conv2d(x, self.weight, padding=self.weight.shape[-1] // 2)
        x = x * demod[:, :, None, None] + self.noise * self.noise_strength
        x = functional.leaky_relu(x + self.bias[:, None, None], 0.2) * _SQRT2
        return x.clamp(-_CLAMP, _CLAMP)


class PlainSynthesis(nn.Module):
    """w rows to a picture, with the sizes of a model for which `plain_problem` has nothing to say."""

    def __init__(self, spec: StyleGAN2Spec) -> None:
        super().__init__()
        self.const = _frozen(torch.randn(1, spec.layers[0].in_channels, 4, 4))
        self.convs, self.rgbs = nn.ModuleList(), nn.ModuleList()
        for layer in spec.layers:
            up, to_rgb = layer.kind == "up_conv", layer.kind == "to_rgb"
            module = StyledConv(
                layer.in_channels, layer.out_channels, layer.kernel, layer.resolution, spec.w_dim, up=up, to_rgb=to_rgb
            )
            (self.rgbs if to_rgb else self.convs).append(module)

    def forward(self, ws: Tensor) -> Tensor:
        """(batch, num_ws, w_dim) to (batch, 3, resolution, resolution)."""
        x = self.convs[0](self.const.expand(ws.shape[0], -1, -1, -1), ws[:, 0])
        image: Tensor = self.rgbs[0](x, ws[:, 1])
        for block, to_rgb in enumerate(self.rgbs):
            if block == 0:
                continue
            row = 2 * block - 1
            x = self.convs[row](x, ws[:, row])
            x = self.convs[row + 1](x, ws[:, row + 1])
            image = doubled(image) + to_rgb(x, ws[:, row + 2])
        return image


class PlainPicture(nn.Module):
    """w rows to the bytes that a window shows."""

    def __init__(self, spec: StyleGAN2Spec) -> None:
        super().__init__()
        self.synthesis = PlainSynthesis(spec)
        self.display = ToDisplay(spec.img_channels, spec.resolution)

    def forward(self, ws: Tensor) -> Tensor:
        """(batch, num_ws, w_dim) to (batch, resolution, resolution, 4) uint8."""
        return to_display(self.synthesis(ws), self.display)


def filtered(x: Tensor) -> Tensor:
    """[1, 3, 3, 1] / 4 along both axes after one pixel of zeros: (..., 2 h + 1, 2 w + 1) to (..., 2 h, 2 w)."""
    height, width = x.shape[2] - 1, x.shape[3] - 1
    x = functional.pad(x, (1, 1, 1, 1))
    x = (x[..., :width] + x[..., 3 : width + 3]) * 0.25 + (x[..., 1 : width + 1] + x[..., 2 : width + 2]) * 0.75
    rows = (x[:, :, :height] + x[:, :, 3 : height + 3]) * 0.25
    return rows + (x[:, :, 1 : height + 1] + x[:, :, 2 : height + 2]) * 0.75


def doubled(x: Tensor) -> Tensor:
    """Twice the side by [1, 3, 3, 1], zeros outside."""
    batch, channels, height, width = x.shape
    p = functional.pad(x, (1, 1, 1, 1))
    even, odd = p[..., 1:-1] * 0.75 + p[..., :-2] * 0.25, p[..., 1:-1] * 0.75 + p[..., 2:] * 0.25
    p = torch.stack([even, odd], -1).reshape(batch, channels, height + 2, 2 * width)
    even = p[:, :, 1:-1] * 0.75 + p[:, :, :-2] * 0.25
    odd = p[:, :, 1:-1] * 0.75 + p[:, :, 2:] * 0.25
    return torch.stack([even, odd], 3).reshape(batch, channels, 2 * height, 2 * width)


def _frozen(values: Tensor) -> nn.Parameter:
    return nn.Parameter(values, requires_grad=False)
