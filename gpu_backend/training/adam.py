"""Adam (Kingma and Ba 2015) in a few lines: importing torch.optim takes seconds in the window."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Adam:
    """Means and squares of the gradients of some tensors.

    Attributes
    ----------
    count
        Steps so far.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.count = 0
        self._means = [torch.zeros_like(tensor) for tensor in tensors]
        self._squares = [torch.zeros_like(tensor) for tensor in tensors]

    @torch.no_grad()
    def step(self, tensors: Sequence[Tensor], gradients: Sequence[Tensor], rate: float) -> None:
        """Change tensors in place."""
        self.count += 1
        for tensor, gradient, mean, square in zip(tensors, gradients, self._means, self._squares, strict=True):
            mean.lerp_(gradient, 0.1)
            square.lerp_(gradient.square(), 0.01)
            unbiased = (square / (1 - 0.99**self.count)).sqrt_().add_(1e-8)
            tensor.addcdiv_(mean / (1 - 0.9**self.count), unbiased, value=-rate)
