"""Constant tensors, each created once."""

from collections.abc import Sequence

import torch

_made: dict[tuple[tuple[float, ...], torch.dtype, torch.device], torch.Tensor] = {}


def numbers(values: Sequence[float], device: torch.device) -> torch.Tensor:
    """``values`` as ``(len(values),) float32``; not to be written to.

    A copy from the host waits for the device and cannot be captured into a CUDA graph, so there is only the first one.
    """
    return _kept(tuple(values), torch.float32, device)


def number(value: float, device: torch.device) -> torch.Tensor:
    """A scalar, ``() float32``: a value that may change without recompiling a function."""
    return numbers((value,), device)[0]


def whole_numbers(values: Sequence[int], device: torch.device) -> torch.Tensor:
    """``values`` as ``(len(values),) int32``, likewise."""
    return _kept(tuple(values), torch.int32, device)


def _kept(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    key = values, dtype, device
    if key not in _made:
        _made[key] = torch.tensor(values, dtype=dtype, device=device)
    return _made[key]
