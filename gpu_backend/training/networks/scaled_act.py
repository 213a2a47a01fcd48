"""Scale, noise, bias, activation, gain and clamp around a convolution, in one pass.

    y = clamp(act(x s + r n + b) gain)      x (n, c, h, w), s (n, c), n noise (n, 1, h, w), r its strength, b (c,)

The slope of everything after the sum follows from y alone, so neither the sum nor masks are stored. Its gradients
and their gradients are a pass each, too:

    m  = dy slope(y)         gradient of the sum
    dx = m s      ds = sum m x      dr = sum m n      db = sum m
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.training.kernels import act as kernels
from gpu_backend.training.kernels.launcher import can_launch
from gpu_backend.training.networks import act_passes as plain
from gpu_backend.training.networks.applied import applied
from gpu_backend.training.networks.convolution import are_weight_gradients_wanted

LINEAR = BiasAct()


def scaled_act(
    x: Tensor,
    act: BiasAct = LINEAR,
    *,
    scale: Tensor | None = None,
    noise: Tensor | None = None,
    strength: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """Return y in the precision of x; noise gets no gradient. The activation is lrelu or linear.

    Raises
    ------
    ValueError
        If it is another one, or noise comes without its strength.
    """
    if act.activation not in ("lrelu", "linear") or (noise is None) != (strength is None):
        raise ValueError(f"expected leaky ReLU or nothing, and a strength with noise, not {act}")
    if torch.compiler.is_compiling():
        return plain.layer(x, scale, noise, strength, bias, act)
    y: Tensor = applied(_ScaledAct, x, scale, noise, strength, bias, act)
    return y


class _ScaledAct(Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        scale: Tensor | None,
        noise: Tensor | None,
        strength: Tensor | None,
        bias: Tensor | None,
        act: BiasAct,
    ) -> Tensor:
        layer = kernels.layer if can_launch(x) else plain.layer
        y = layer(x, scale, noise, strength, bias, act)
        wants_x = scale is not None and ctx.needs_input_grad[1]
        ctx.save_for_backward(x if wants_x else None, None if act == LINEAR else y, scale, noise)
        ctx.act = act
        return y

    @staticmethod
    def backward(ctx: Any, *incoming: Any) -> Any:
        (dy,) = incoming
        x, y, scale, noise = ctx.saved_tensors
        _, wants_scale, _, wants_strength, wants_bias, _ = ctx.needs_input_grad
        wants_sums = are_weight_gradients_wanted()
        wanted = (wants_scale, wants_sums and wants_strength, wants_sums and wants_bias)
        dx, ds, dr, db = applied(_Gradient, dy, x, y, scale, noise, ctx.act, wanted)
        return dx, ds, None, dr, db, None


class _Gradient(Function):
    @staticmethod
    def forward(
        ctx: Any,
        dy: Tensor,
        x: Tensor | None,
        y: Tensor | None,
        scale: Tensor | None,
        noise: Tensor | None,
        act: BiasAct,
        wanted: tuple[bool, bool, bool],
    ) -> tuple[Tensor | None, ...]:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(dy, x, y, scale, noise)
        ctx.act = act
        gradients = kernels.gradients if can_launch(dy) else plain.gradients
        return gradients(dy, x, y, scale, noise, act, wanted)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *incoming: Any) -> Any:
        ddx, dds, ddr, ddb = incoming
        dy, x, y, scale, noise = ctx.saved_tensors
        has_kernel = ddr is None and ddb is None and (ddx is not None or dds is not None)
        found: tuple[Tensor | None, ...]
        if has_kernel and can_launch(dy):
            found = kernels.second_gradients(dy, x, y, scale, ctx.act, ddx, dds)
        else:
            found = plain.second_gradients(dy, x, y, scale, noise, ctx.act, ddx, dds, ddr, ddb)
        d_dy, dx, ds = found
        return d_dy, dx, None, ds, None, None, None
