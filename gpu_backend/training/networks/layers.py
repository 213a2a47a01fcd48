"""The layers of the generator. Learning rates are equalised: stored weights have unit variance (Karras et al. 2018)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from gpu_backend.model.spec import LayerSpec
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.ops.normalize_2nd_moment import EPSILON
from gpu_backend.reference.fully_connected import fully_connected
from gpu_backend.training.networks.convolution import POINTWISE, SAME, convolve
from gpu_backend.training.networks.filters import DOUBLE, filtered
from gpu_backend.training.networks.resampling import UpConvolution
from gpu_backend.training.networks.scaled_act import scaled_act

NoiseInput = Literal["random", "const", "none"]
"""Source of noise: random for every picture, the stored noise pictures, or none."""


class Dense(nn.Module):
    """A fully connected layer; runs in float32."""

    def __init__(self, inputs: int, outputs: int, *, act: BiasAct, lr: float = 1.0, bias: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / lr)
        self.bias = nn.Parameter(torch.full((outputs,), bias))
        self.attributes = FullyConnected(inputs, outputs, lr, act)

    def forward(self, x: Tensor) -> Tensor:
        """(n, inputs) to (n, outputs)."""
        return fully_connected(x, self.weight, self.bias, self.attributes)


class StyledConv(nn.Module):
    """A 3 x 3 convolution with style, demodulation, noise, bias and leaky ReLU (Karras et al. 2020b, section 2.2).

    Styles scale activations and demodulation scales outputs, so the weights are the same for all pictures of a batch:

        y = d * conv(s * x, W),  d_o = rsqrt(sum_i s_i^2 sum_k W_oik^2 + 1e-8)

    The formula does not change when s and W are scaled, if d is scaled back. Both are brought near one first, so that
    half precision neither overflows nor rounds more than it must (Karras et al. 2020a, appendix C).
    """

    noise_const: Tensor

    def __init__(self, layer: LayerSpec, w_dim: int) -> None:
        super().__init__()
        self.up = UpConvolution() if layer.kind == "up_conv" else None
        self.resolution = layer.resolution
        self.act = BiasAct.of_layer(layer.activation, layer.gain, layer.conv_clamp)
        self.scale = 1.0 / math.sqrt(layer.in_channels * layer.kernel**2)
        self.weight = nn.Parameter(torch.randn(layer.out_channels, layer.in_channels, layer.kernel, layer.kernel))
        self.bias = nn.Parameter(torch.zeros(layer.out_channels))
        self.noise_strength = nn.Parameter(torch.zeros([]))
        self.affine = Dense(w_dim, layer.in_channels, act=BiasAct(), bias=1.0)
        self.register_buffer("noise_const", torch.randn(layer.resolution, layer.resolution))

    def forward(self, x: Tensor, w: Tensor, noise: NoiseInput, low: torch.dtype) -> Tensor:
        """(n, in, side, side) and (n, w_dim) to (n, out, resolution, resolution), computed as `low`."""
        style = self.affine(w)
        squares = self.weight.square().sum((2, 3))
        demod = (style.square() @ squares.t() + EPSILON).rsqrt()
        level = (style.detach().square().mean(1, keepdim=True) + EPSILON).sqrt()
        x = scaled_act(x.to(low), scale=style / level)
        weight = self.weight * self.scale
        y = convolve(x, weight.to(low), SAME) if self.up is None else self.up(x, weight)
        pictures = None
        if noise == "random":
            pictures = torch.randn(y.shape[0], 1, self.resolution, self.resolution, dtype=low, device=y.device)
        elif noise == "const":
            pictures = self.noise_const.to(low)[None, None]
        strength = None if pictures is None else self.noise_strength
        return scaled_act(
            y, self.act, scale=demod * (level / self.scale), noise=pictures, strength=strength, bias=self.bias
        )


class ToRgb(nn.Module):
    """toRGB: a styled 1 x 1 convolution without demodulation, added to the picture in float32."""

    def __init__(self, layer: LayerSpec, w_dim: int) -> None:
        super().__init__()
        self.act = BiasAct(clamp=layer.conv_clamp)
        self.scale = 1.0 / math.sqrt(layer.in_channels)
        self.weight = nn.Parameter(torch.randn(layer.out_channels, layer.in_channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(layer.out_channels))
        self.affine = Dense(w_dim, layer.in_channels, act=BiasAct(), bias=1.0)

    def forward(self, x: Tensor, image: Tensor | None, w: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side), the picture so far at half the side, and (n, w_dim) to (n, 3, side, side)."""
        x = scaled_act(x.to(low), scale=self.affine(w) * self.scale)
        y = scaled_act(convolve(x, self.weight.to(low), POINTWISE).float(), self.act, bias=self.bias)
        return y if image is None else filtered(image, DOUBLE) + y
