"""StyleGAN2's modulated layers with fixed weights, differentiable in the activations, the style and the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from gpu_backend.gradients.winograd import WinogradConvolution
from gpu_backend.model.spec import LayerSpec
from gpu_backend.ops.bias_act import LRELU_SLOPE, BiasAct
from gpu_backend.ops.normalize_2nd_moment import EPSILON
from gpu_backend.ops.upfirdn import doubling_left_pad, up_conv_left_pad
from gpu_backend.reference.bias_act import bias_act


class _Affine:
    """The style of a layer: (batch, w_dim) to (batch, in_channels)."""

    def __init__(self, weights: Mapping[str, Tensor], gain: float = 1.0) -> None:
        weight = weights["affine.weight"]
        self._weight = weight.t().contiguous() * (gain / math.sqrt(weight.shape[1]))
        self._bias = weights["affine.bias"] * gain

    def __call__(self, w: Tensor) -> Tensor:
        return torch.addmm(self._bias, w, self._weight)


class ModulatedLayer:
    """A modulated convolution or up-convolution with demodulation, noise, bias and activation.

    Parameters
    ----------
    layer
        Of kind ``conv`` or ``up_conv``.
    weights
        Its tensors by role: ``weight``, ``bias``, ``affine.weight``, ``affine.bias``.
    taps
        The network's resampling filter.
    """

    def __init__(self, layer: LayerSpec, weights: Mapping[str, Tensor], taps: Sequence[float]) -> None:
        self._affine = _Affine(weights)
        weight = weights["weight"]
        self._bias = weights["bias"]
        self._act = BiasAct.of_layer(layer.activation, layer.gain, layer.conv_clamp)
        self._squares = weight.square().sum((2, 3)).t().contiguous()
        self._is_up = layer.kind == "up_conv"
        self._side = layer.resolution
        self._weight = weight.transpose(0, 1).contiguous() if self._is_up else weight
        self._kernel = weight.shape[-1]
        uses_winograd = not self._is_up and WinogradConvolution.pays_off(weight, layer.resolution)
        self._winograd = WinogradConvolution(weight) if uses_winograd else None
        self._count = len(taps)
        flipped = torch.tensor(list(taps), dtype=weight.dtype, device=weight.device).flip(0)  # conv2d correlates
        channels = layer.out_channels
        self._rows = (2.0 * flipped).reshape(1, 1, -1, 1).expand(channels, 1, -1, 1).contiguous()
        self._columns = self._rows.transpose(2, 3).contiguous()

    def __call__(self, x: Tensor, w: Tensor, noise: Tensor | None, offset: Tensor | None = None) -> Tensor:
        """(batch, in, side, side) and (batch, w_dim) to (batch, out, resolution, resolution); `offset` as in styles."""
        style = self._affine(w) if offset is None else self._affine(w) + offset
        demod = (style.square() @ self._squares + EPSILON).rsqrt()
        x = _scaled(x, style)
        if self._is_up:
            y = self._filtered(functional.conv_transpose2d(x, self._weight, stride=2))
        elif self._winograd is not None:
            y = self._winograd(x)
        else:
            y = functional.conv2d(x, self._weight, padding=self._kernel // 2)
        if self._act.activation == "lrelu":
            result: Tensor = _Epilogue.apply(y, demod, noise, self._bias, self._act)  # type: ignore[no-untyped-call]
            return result
        y = _scaled(y, demod)
        if noise is not None:
            y = y + noise[:, None]
        return bias_act(y, self._bias, self._act)

    def _filtered(self, t: Tensor) -> Tensor:
        """Apply the resampling filter after a transposed convolution, gain 4 (2 an axis)."""
        left = up_conv_left_pad(self._count, self._kernel)
        right = self._side - t.shape[-1] - left + self._count - 1
        t = functional.pad(t, (left, right, left, right))
        channels = t.shape[1]
        return functional.conv2d(functional.conv2d(t, self._rows, groups=channels), self._columns, groups=channels)


class ToRgbLayer:
    """A toRGB layer; parameters as for `ModulatedLayer`."""

    def __init__(self, layer: LayerSpec, weights: Mapping[str, Tensor]) -> None:
        self._affine = _Affine(weights, 1.0 / math.sqrt(layer.in_channels * layer.kernel**2))
        self._weight, self._bias = weights["weight"].flatten(1), weights["bias"][:, None, None]
        self._clamp = None if layer.conv_clamp is None else layer.conv_clamp * layer.gain

    def __call__(self, x: Tensor, w: Tensor, offset: Tensor | None = None) -> Tensor:
        """(batch, in, side, side) and (batch, w_dim) to (batch, img_channels, side, side)."""
        style = self._affine(w) if offset is None else self._affine(w) + offset
        # The weights are scaled instead of the activations, which are a thousand times as many.
        planes = torch.bmm(self._weight * style[:, None], x.flatten(2))
        y = planes.view(-1, len(self._weight), *x.shape[2:]) + self._bias
        return y if self._clamp is None else y.clamp(-self._clamp, self._clamp)


class Doubling:
    """Pictures at twice the side: the formula of `gpu_backend.reference.upfirdn.double` as one transposed convolution.

    Parameters
    ----------
    taps
        The network's resampling filter.
    like
        Of the precision and on the device of the pictures.
    """

    def __init__(self, taps: Sequence[float], like: Tensor) -> None:
        row = 2.0 * torch.tensor(list(taps), dtype=like.dtype, device=like.device)
        self._filter = row[:, None] * row
        self._start = len(taps) - 1 - doubling_left_pad(len(taps))

    def __call__(self, x: Tensor) -> Tensor:
        """(batch, channels, side, side) to (batch, channels, 2 side, 2 side)."""
        channels, side = x.shape[1:3]
        weight = self._filter.expand(channels, 1, -1, -1)
        whole = functional.conv_transpose2d(x, weight, stride=2, groups=channels)
        end = self._start + 2 * side
        missing = max(0, end - whole.shape[-1])
        whole = functional.pad(whole, (max(0, -self._start), missing, max(0, -self._start), missing))
        start = max(0, self._start)
        return whole[:, :, start : start + 2 * side, start : start + 2 * side]


def _scaled(x: Tensor, scale: Tensor) -> Tensor:
    y: Tensor = _Scale.apply(x, scale)  # type: ignore[no-untyped-call]
    return y


class _Scale(Function):
    """x times a number for each sample and channel; its gradient takes one pass less than autograd's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor) -> Tensor:
        ctx.save_for_backward(x, scale)
        return x * scale[:, :, None, None]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (dy,) = gradients
        x, scale = ctx.saved_tensors
        dx = dy * scale[:, :, None, None] if ctx.needs_input_grad[0] else None
        return dx, _plane_products(dy, x) if ctx.needs_input_grad[1] else None


class _Epilogue(Function):
    """clamp(lrelu(d * y + noise + b) * gain) in place on one new tensor.

    The leaky ReLU is positively homogeneous, so the gain multiplies d, noise and b. Its slope is known from the sign of
    the result.
    """

    @staticmethod
    def forward(ctx: Any, y: Tensor, demod: Tensor, noise: Tensor | None, bias: Tensor, act: BiasAct) -> Tensor:
        scale = demod * act.gain
        result = y * scale[:, :, None, None]
        offset = (bias * act.gain)[None, :, None, None]
        if noise is None:
            result += offset
        else:
            result += noise[:, None] * act.gain
            result += offset
        functional.leaky_relu_(result, LRELU_SLOPE)
        ctx.inside = None
        # Reading a number back would stop a GPU, and a CUDA graph cannot hold it.
        if act.clamp is not None and (result.is_cuda or _largest(result.detach()) >= act.clamp):
            ctx.inside = (result.abs() < act.clamp).to(result.dtype)
            result.clamp_(-act.clamp, act.clamp)
        ctx.gain = act.gain
        ctx.noise_shape = None if noise is None else noise.shape
        ctx.save_for_backward(y, scale, result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (dz,) = gradients
        y, scale, result = ctx.saved_tensors
        dz = torch.ops.aten.leaky_relu_backward(dz, result, LRELU_SLOPE, True)
        if ctx.inside is not None:
            dz = dz * ctx.inside
        demod = noise = None
        if ctx.needs_input_grad[1]:
            demod = _plane_products(dz, y) * ctx.gain
        if ctx.noise_shape is not None and ctx.needs_input_grad[2]:
            noise = (dz.sum(1) * ctx.gain).sum_to_size(ctx.noise_shape)
        return dz.mul_(scale[:, :, None, None]), demod, noise, None, None


def _largest(x: Tensor) -> float:
    """Return the largest magnitude. torch's infinity norm takes several times as long."""
    low, high = torch.aminmax(x)
    return max(-float(low), float(high))


def _plane_products(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum over each plane of a * b, (batch, channels)."""
    if a.is_cuda:
        return (a * b).sum((2, 3))  # cuBLAS computes each dot product in one block of threads
    return torch.einsum("bchw,bchw->bc", a, b)
