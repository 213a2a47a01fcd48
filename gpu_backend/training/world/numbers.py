"""Fixed numbers as tensors, each made once."""

from collections.abc import Sequence

import torch

_made: dict[tuple[tuple[float, ...], torch.device], torch.Tensor] = {}


def numbers(values: Sequence[float], device: torch.device) -> torch.Tensor:
    """``values`` as ``(len(values),) float32``; not to be written to.

    A copy from the host waits for the device and cannot be captured into a CUDA graph, so there is only the first one.
    """
    key = (tuple(values), device)
    if key not in _made:
        _made[key] = torch.tensor(key[0], dtype=torch.float32, device=device)
    return _made[key]


def number(value: float, device: torch.device) -> torch.Tensor:
    """One of them, ``() float32``: what differs between calls of a compiled function without compiling it anew."""
    return numbers((value,), device)[0]
