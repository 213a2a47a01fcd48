"""The filter of `gpu_backend.training.networks.filters` as one kernel."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gpu_backend.training.kernels.launcher import lanes_of, launch
from gpu_backend.training.kernels.recipe import FILTER_ROWS, filter_kernel, vector_of

_KINDS = ("same", "down", "up")


def run_filter(x: Tensor, kind: Literal["same", "down", "up"], pad: int, gain: float) -> Tensor:
    """Return (n, c, h, w) filtered, of the size that the kind gives."""
    x = x.contiguous(memory_format=torch.channels_last)
    batch, channels, height, width = x.shape
    number, vector = _KINDS.index(kind), vector_of(x.dtype, channels)
    lanes = lanes_of(channels, vector)
    sides = {
        "same": (height + 2 * pad - 3, width + 2 * pad - 3),
        "down": (height // 2, width // 2),
        "up": (2 * height, 2 * width),
    }[kind]
    y = torch.empty((batch, channels, *sides), dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
    walked = (height, width) if kind == "up" else sides
    grid = (-(-walked[1] // lanes), -(-walked[0] // FILTER_ROWS[number]), batch)
    arguments: dict[str, Tensor | int | float | None] = {
        "x": x,
        "y": y,
        "height": height,
        "width": width,
        "to_height": sides[0],
        "to_width": sides[1],
        "channels": channels,
        "gain": float(gain),
    }
    launch(filter_kernel(x.dtype, vector, number, pad), grid, arguments)
    return y
