"""Metrics of the steps since the last report, kept on the device so that no step waits for the host."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from gpu_backend.errors import LoomError

G_LOSS, D_LOSS, R1, PATH = "the generator's loss", "the discriminator's loss", "the R1 penalty", "the path penalty"
G_NORM, D_NORM = "the norm of the generator's gradient", "the norm of the discriminator's gradient"
SIGN = "the mean sign of real logits"


class DivergedError(LoomError):
    """A metric became NaN or infinite."""


class Metrics:
    """Running means by name. `check` and `means` raise DivergedError for values that are not finite.

    Parameters
    ----------
    may_overflow
        Names that may be infinite at times: with fp16, loss scaling lets gradients overflow.
    """

    def __init__(self, may_overflow: frozenset[str] = frozenset()) -> None:
        self._pending: list[tuple[int, str, Tensor]] = []
        self._sums: dict[str, tuple[float, int]] = {}
        self._may_overflow = may_overflow

    def add(self, step: int, noted: Mapping[str, Tensor]) -> None:
        """Add the values of a step, without synchronisation."""
        self._pending.extend((step, name, value) for name, value in noted.items())

    def check(self) -> None:
        """Check the values added so far.

        Raises
        ------
        DivergedError
            With the step and its first metric that is not finite.
        """
        pending, self._pending = self._pending, []
        if not pending:
            return
        values = torch.stack([value.detach().float().reshape(()) for _, _, value in pending]).tolist()
        for (step, name, _), value in zip(pending, values, strict=True):
            if math.isfinite(value):
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = (total + value, count + 1)
            elif name not in self._may_overflow:
                raise DivergedError(f"{name} became {value} in step {step}")

    def means(self) -> Mapping[str, float]:
        """Return the means since the last call, and reset them. Raises DivergedError as `check` does."""
        self.check()
        sums, self._sums = self._sums, {}
        return {name: total / count for name, (total, count) in sums.items()}
