"""The passes of `scaled_act` in plain torch: the layer, its gradients, and the gradients of these.

m is the gradient of the sum, see scaled_act.py. All is computed in float32 and rounded once.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.ops.bias_act import LRELU_SLOPE, BiasAct


def layer(
    x: Tensor, scale: Tensor | None, noise: Tensor | None, strength: Tensor | None, bias: Tensor | None, act: BiasAct
) -> Tensor:
    """Return y, as x is."""
    y = _wide(x)
    if scale is not None:
        y = y * scale[:, :, None, None]
    if noise is not None and strength is not None:
        y = y + noise * strength
    if bias is not None:
        y = y + bias[:, None, None]
    if act.activation == "lrelu":
        y = functional.leaky_relu(y, LRELU_SLOPE)
    if act.gain != 1.0:
        y = y * act.gain
    if act.clamp is not None:
        y = y.clamp(-act.clamp, act.clamp)
    return y.to(x.dtype)


def gradients(
    dy: Tensor,
    x: Tensor | None,
    y: Tensor | None,
    scale: Tensor | None,
    noise: Tensor | None,
    act: BiasAct,
    wanted: tuple[bool, bool, bool],
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Return dx, and ds, dr and db as requested."""
    m = _sloped(_wide(dy), y, act)
    wants_scale, wants_strength, wants_bias = wanted
    dx = m if scale is None else m * scale[:, :, None, None]
    ds = (m * _wide(x)).sum((2, 3)) if wants_scale and x is not None else None
    dr = (m * noise).sum() if wants_strength and noise is not None else None
    db = m.sum((0, 2, 3)) if wants_bias else None
    return dx.to(dy.dtype), ds, dr, db


def second_gradients(
    dy: Tensor,
    x: Tensor | None,
    y: Tensor | None,
    scale: Tensor | None,
    noise: Tensor | None,
    act: BiasAct,
    ddx: Tensor | None,
    dds: Tensor | None,
    ddr: Tensor | None,
    ddb: Tensor | None,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients for dy, x and s from the gradients for dx, ds, dr and db."""
    parts: list[Tensor] = []  # of what goes back to m
    d_x = d_s = None
    if ddx is not None:
        parts.append(_wide(ddx) if scale is None else _wide(ddx) * scale[:, :, None, None])
    if dds is not None and x is not None:
        parts.append(_wide(x) * dds[:, :, None, None])
    if ddr is not None and noise is not None:
        parts.append(ddr * noise)
    if ddb is not None:
        parts.append(ddb[:, None, None])
    if (ddx is not None and scale is not None) or dds is not None:
        m = _sloped(_wide(dy), y, act)
        d_x = (m * dds[:, :, None, None]).to(dy.dtype) if dds is not None else None
        d_s = (m * _wide(ddx)).sum((2, 3)) if ddx is not None and scale is not None else None
    if not parts:
        return None, d_x, d_s
    total = sum(parts[1:], parts[0])
    return _sloped(total, y, act).expand(dy.shape).to(dy.dtype), d_x, d_s


def _sloped(values: Tensor, y: Tensor | None, act: BiasAct) -> Tensor:
    """Multiply by the slope of activation and clamp, given their result y."""
    if y is None:
        return values if act.gain == 1.0 else values * act.gain
    slope = torch.where(y > 0, act.gain, act.gain * (LRELU_SLOPE if act.activation == "lrelu" else 1.0))
    if act.clamp is not None:
        slope = torch.where(y.abs() < act.clamp, slope, 0.0)
    return values * slope


def _wide(x: Tensor) -> Tensor:
    """Return x in float32, or float64 if it is that."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
