"""Convolutions whose gradients have gradients at the cost of ordinary ones.

torch computes the gradient of a gradient for the weights as a convolution whose kernel is a whole picture, which no
library is made for. Here the three products of a convolution - of input and weight, of gradient and weight, of input
and gradient - are each written by the others, so all orders run what an ordinary step runs:

    y = x * w        dx = dy *' w        dw = wgrad(x, dy)
    *' is the transposed convolution, whose own transpose is *; wgrad is linear in both, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from gpu_backend.training.networks.applied import applied


@dataclass(frozen=True, slots=True)
class Geometry:
    """Stride, padding and direction of a convolution; transposed convolutions go from the output to the input."""

    stride: int = 1
    padding: int = 0
    transposed: bool = False

    @property
    def back(self) -> Geometry:
        """The counterpart that computes the gradient."""
        return Geometry(self.stride, self.padding, not self.transposed)

    def apply(self, x: Tensor, weight: Tensor) -> Tensor:
        """Convolve (n, in, h, w) with (out, in, k, k), or transposed with (in, out, k, k)."""
        run = functional.conv_transpose2d if self.transposed else functional.conv2d
        return run(x, weight, None, self.stride, self.padding)

    def weight_gradient(self, x: Tensor, dy: Tensor, weight: Tensor) -> Tensor:
        """Return the gradient of the weight, in the layout of `weight`, whose values do not matter."""
        pair = [self.stride] * 2, [self.padding] * 2, [1, 1]
        mask = [False, True, False]
        dw: Tensor = torch.ops.aten.convolution_backward(dy, x, weight, None, *pair, self.transposed, [0, 0], 1, mask)[
            1
        ]
        return dw


SAME = Geometry(1, 1)
"""3 x 3, as large as before."""
POINTWISE = Geometry()
"""1 x 1."""


def convolve(x: Tensor, weight: Tensor, geometry: Geometry) -> Tensor:
    """Convolve; sizes must be such that the transposed convolution gives the input's size back."""
    if torch.compiler.is_compiling():
        return geometry.apply(x, weight)
    y: Tensor = applied(_Convolution, x, weight, geometry)
    return y


_wanted = [True]


@contextmanager
def no_weight_gradients() -> Iterator[None]:
    """Skip weight gradients in the backward pass: an inner gradient does not need them, and they are expensive.

    autograd functions do not know which gradients are requested, so this applies to all threads.
    """
    _wanted[0] = False
    try:
        yield
    finally:
        _wanted[0] = True


def are_weight_gradients_wanted() -> bool:
    """Set whether gradients of weights are computed."""
    return _wanted[0]


class _Convolution(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, geometry: Geometry) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.geometry = geometry
        return geometry.apply(x, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (dy,) = gradients
        x, weight = ctx.saved_tensors
        dx = applied(_Convolution, dy, weight, ctx.geometry.back) if ctx.needs_input_grad[0] else None
        is_wanted = ctx.needs_input_grad[1] and are_weight_gradients_wanted()
        return dx, applied(_WeightGradient, x, dy, weight, ctx.geometry) if is_wanted else None, None


class _WeightGradient(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dy: Tensor, weight: Tensor, geometry: Geometry) -> Tensor:
        ctx.save_for_backward(x, dy)
        ctx.geometry = geometry
        return geometry.weight_gradient(x, dy, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (ddw,) = gradients
        x, dy = ctx.saved_tensors
        dx = applied(_Convolution, dy, ddw, ctx.geometry.back) if ctx.needs_input_grad[0] else None
        ddy = applied(_Convolution, x, ddw, ctx.geometry) if ctx.needs_input_grad[1] else None
        return dx, ddy, None, None
