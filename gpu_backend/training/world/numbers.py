"""Fixed numbers as tensors, made where they are used."""

from collections.abc import Sequence

import torch


def numbers(values: Sequence[float], device: torch.device) -> torch.Tensor:
    """``values`` as ``(len(values),) float32``, filled in on the device.

    `torch.tensor` would copy them from the host, which waits for the device and cannot be captured into a CUDA graph.
    """
    return torch.cat([torch.full((1,), value, device=device, dtype=torch.float32) for value in values])
