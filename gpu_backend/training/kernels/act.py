"""The passes of `gpu_backend.training.networks.act_passes` as one kernel each."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpu_backend.ops.bias_act import LRELU_SLOPE, BiasAct
from gpu_backend.training.kernels.launcher import lanes_of, launch, strips_of
from gpu_backend.training.kernels.recipe import training_kernel, vector_of

_TURNS = 4
"""Pixels that a thread processes in the first pass."""


def layer(
    x: Tensor, scale: Tensor | None, noise: Tensor | None, strength: Tensor | None, bias: Tensor | None, act: BiasAct
) -> Tensor:
    """Return y, as x is."""
    x = _ordered(x)
    batch, channels, pixels = _sizes(x)
    vector = vector_of(x.dtype, channels)
    y = torch.empty_like(x)
    noise = None if noise is None else noise.to(x.dtype).contiguous()
    kernel = training_kernel(
        "scaled_act",
        x.dtype,
        vector,
        SCALE=scale is not None,
        NOISE=noise is not None,
        BIAS=bias is not None,
        SLOPED=_is_sloped(act),
    )
    strips = -(-pixels // (lanes_of(channels, vector) * _TURNS))
    arguments = {
        "x": x,
        "scale": _float(scale),
        "noise": noise,
        "strength": _float(strength),
        "bias": _float(bias),
        "y": y,
        "pixels": pixels,
        "channels": channels,
        "noise_step": _step(noise, pixels),
        **_numbers(act, x.dtype),
    }
    launch(kernel, (strips, batch, 1), arguments)
    return y


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
    dy = _ordered(dy)
    batch, channels, pixels = _sizes(dy)
    vector = vector_of(dy.dtype, channels)
    wants_scale, wants_strength, wants_bias = wanted
    sums = {
        "SUM_X": wants_scale and x is not None,
        "SUM_NOISE": wants_strength and noise is not None,
        "SUM_ONE": wants_bias,
    }
    noise = None if noise is None else noise.to(dy.dtype).contiguous()
    kernel = training_kernel(
        "scaled_act_gradients", dy.dtype, vector, SCALE=scale is not None, SLOPED=y is not None, **sums
    )
    strips, strip = strips_of(dy, vector)
    dx = torch.empty_like(dy)
    parts = torch.empty(batch, strips, sum(sums.values()), channels, device=dy.device) if any(sums.values()) else None
    arguments = {
        "dy": dy,
        "x": _ordered_if(x),
        "y": _ordered_if(y),
        "scale": _float(scale),
        "noise": noise,
        "dx": dx,
        "sums": parts,
        "pixels": pixels,
        "channels": channels,
        "noise_step": _step(noise, pixels),
        "strip": strip,
        **_numbers(act, dy.dtype),
    }
    launch(kernel, (strips, batch, 1), arguments)
    if parts is None:
        return dx, None, None, None
    found = iter(parts.sum(1).unbind(1))
    ds = next(found) if sums["SUM_X"] else None
    dr = next(found).sum() if sums["SUM_NOISE"] else None
    db = next(found).sum(0) if sums["SUM_ONE"] else None
    return dx, ds, dr, db


def second_gradients(
    dy: Tensor,
    x: Tensor | None,
    y: Tensor | None,
    scale: Tensor | None,
    act: BiasAct,
    ddx: Tensor | None,
    dds: Tensor | None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the gradients for dy, x and s from the gradients for dx and ds, at least one of which is given."""
    dy = _ordered(dy)
    batch, channels, pixels = _sizes(dy)
    vector = vector_of(dy.dtype, channels)
    kernel = training_kernel(
        "scaled_act_second",
        dy.dtype,
        vector,
        SCALE=scale is not None,
        SLOPED=y is not None,
        FROM_DX=ddx is not None,
        FROM_DS=dds is not None,
    )
    strips, strip = strips_of(dy, vector)
    d_dy = torch.empty_like(dy)
    d_x = None if dds is None else torch.empty_like(dy)
    has_sums = ddx is not None and scale is not None
    parts = torch.empty(batch, strips, channels, device=dy.device) if has_sums else None
    arguments = {
        "dy": dy,
        "x": _ordered_if(x),
        "y": _ordered_if(y),
        "scale": _float(scale),
        "ddx": _ordered_if(ddx),
        "dds": _float(dds),
        "d_dy": d_dy,
        "d_x": d_x,
        "sums": parts,
        "pixels": pixels,
        "channels": channels,
        "strip": strip,
        **_numbers(act, dy.dtype),
    }
    launch(kernel, (strips, batch, 1), arguments)
    return d_dy, d_x, None if parts is None else parts.sum(1)


def _sizes(x: Tensor) -> tuple[int, int, int]:
    batch, channels, height, width = x.shape
    return batch, channels, height * width


def _step(noise: Tensor | None, pixels: int) -> int:
    """Return the stride between the noises of two pictures; 0 if all share one."""
    return pixels if noise is not None and noise.shape[0] > 1 else 0


def _numbers(act: BiasAct, dtype: torch.dtype) -> dict[str, float]:
    """Return gain, slope below zero and bound, rounded as results are: a result equal to the bound was clamped."""
    below = LRELU_SLOPE if act.activation == "lrelu" else 1.0
    bound = math.inf if act.clamp is None else torch.tensor(act.clamp, dtype=dtype).item()
    return {"gain": act.gain, "below": below, "bound": bound}


def _is_sloped(act: BiasAct) -> bool:
    return act.activation != "linear" or act.clamp is not None


def _float(values: Tensor | None) -> Tensor | None:
    return None if values is None else values.float().contiguous()


def _ordered(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _ordered_if(x: Tensor | None) -> Tensor | None:
    return None if x is None else _ordered(x)
