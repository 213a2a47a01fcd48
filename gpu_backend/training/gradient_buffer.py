"""The gradients of a network one after another in one piece of memory, so that one exchange averages them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

_ALIGNMENT = 4
"""Each begins at a multiple of so many float32, so that kernels read and write 16 bytes at a time."""


class GradientBuffer:
    """Memory for the gradients of some parameters; it stays where it is."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self._parameters = parameters
        self._flat = torch.zeros(sum(map(_room, parameters)), device=parameters[0].device)

    def pack(self) -> Tensor:
        """Move the gradients that there are into the buffer; return the part of it that holds them, (n,) float32."""
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
