"""The layers of the generator. Learning rates are equalised: stored weights have unit variance (Karras et al. 2018)."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpu_backend.model.spec import LayerSpec
from gpu_backend.ops.bias_act import LRELU_SLOPE, BiasAct
from gpu_backend.ops.fully_connected import FullyConnected
from gpu_backend.ops.normalize_2nd_moment import EPSILON
from gpu_backend.reference.fully_connected import fully_connected
from gpu_backend.training.networks.phases import fold_up, spread, up_phases

NoiseInput = Literal["random", "const", "none"]
"""New numbers for every picture, the stored pictures, or nothing."""


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

    phases: Tensor
    noise_const: Tensor

    def __init__(self, layer: LayerSpec, w_dim: int) -> None:
        super().__init__()
        self.is_up = layer.kind == "up_conv"
        self.resolution = layer.resolution
        self.act = BiasAct.of_layer(layer.activation, layer.gain, layer.conv_clamp)
        self.scale = 1.0 / math.sqrt(layer.in_channels * layer.kernel**2)
        self.weight = nn.Parameter(torch.randn(layer.out_channels, layer.in_channels, layer.kernel, layer.kernel))
        self.bias = nn.Parameter(torch.zeros(layer.out_channels))
        self.noise_strength = nn.Parameter(torch.zeros([]))
        self.affine = Dense(w_dim, layer.in_channels, act=BiasAct(), bias=1.0)
        self.register_buffer("noise_const", torch.randn(layer.resolution, layer.resolution))
        self.register_buffer("phases", up_phases() if self.is_up else torch.empty(0), persistent=False)

    def forward(self, x: Tensor, w: Tensor, noise: NoiseInput, low: torch.dtype) -> Tensor:
        """(n, in, side, side) and (n, w_dim) to (n, out, resolution, resolution), computed as `low`."""
        style = self.affine(w)
        squares = self.weight.square().sum((2, 3))
        demod = (style.square() @ squares.t() + EPSILON).rsqrt()
        level = (style.detach().square().mean(1, keepdim=True) + EPSILON).sqrt()
        demod = (demod * (level / self.scale)).to(low)[:, :, None, None]
        x = x.to(low) * (style / level).to(low)[:, :, None, None]
        weight = self.weight * self.scale
        if self.is_up:
            y = spread(functional.conv2d(x, fold_up(weight, self.phases).to(low), padding=1)) * demod
        else:
            y = functional.conv2d(x, weight.to(low), padding=weight.shape[-1] // 2) * demod
        bias = self.bias.to(low)[:, None, None]
        if noise == "random":
            pictures = torch.randn(y.shape[0], 1, self.resolution, self.resolution, dtype=low, device=y.device)
            bias = bias + pictures * self.noise_strength.to(low)
        elif noise == "const":
            bias = bias + (self.noise_const * self.noise_strength).to(low)
        return activated(y + bias, self.act)


class ToRgb(nn.Module):
    """The 1 x 1 convolution with style that gives a picture, without demodulation; its output is float32."""

    def __init__(self, layer: LayerSpec, w_dim: int) -> None:
        super().__init__()
        self.clamp = layer.conv_clamp
        self.scale = 1.0 / math.sqrt(layer.in_channels)
        self.weight = nn.Parameter(torch.randn(layer.out_channels, layer.in_channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(layer.out_channels))
        self.affine = Dense(w_dim, layer.in_channels, act=BiasAct(), bias=1.0)

    def forward(self, x: Tensor, w: Tensor, low: torch.dtype) -> Tensor:
        """(n, in, side, side) and (n, w_dim) to (n, 3, side, side) float32."""
        style = (self.affine(w) * self.scale).to(low)
        y = functional.conv2d(x.to(low) * style[:, :, None, None], self.weight.to(low)).float()
        y = y + self.bias[:, None, None]
        return y if self.clamp is None else y.clamp(-self.clamp, self.clamp)


def activated(x: Tensor, act: BiasAct) -> Tensor:
    """Leaky ReLU, gain and clamp."""
    y = functional.leaky_relu(x, LRELU_SLOPE) * act.gain
    return y if act.clamp is None else y.clamp(-act.clamp, act.clamp)
