"""Contiguous buffer for the gradients of a network, averaged over processes by a single all-reduce."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

_ALIGNMENT = 4
"""Alignment of each gradient in float32 elements, for 16-byte accesses."""


class GradientBuffer:
    """Persistent memory for the gradients of some parameters."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self._parameters = parameters
        self._flat = torch.zeros(sum(map(_room, parameters)), device=parameters[0].device)

    def pack(self) -> Tensor:
        """Move the existing gradients into the buffer; return the occupied part, (n,) float32."""
        gradients: list[Tensor] = []
        places: list[Tensor] = []
        begin = 0
        for parameter in self._parameters:
            if parameter.grad is None:
                continue
            place = self._flat.as_strided(parameter.shape, parameter.stride(), begin)
            gradients.append(parameter.grad)
            places.append(place)
            parameter.grad = place
            begin += _room(parameter)
        torch._foreach_copy_(places, gradients)
        return self._flat[:begin]


def _room(parameter: nn.Parameter) -> int:
    return -(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT
