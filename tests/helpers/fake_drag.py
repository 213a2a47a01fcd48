"""A scripted drag optimiser."""

from __future__ import annotations

import numpy as np

from explorer_app.rendering.tasks.drag import BURST_S
from gpu_backend import DragReport, StoredLatent


class FakeDrag:
    """Settles after a number of steps of a set duration; its rows count the steps."""

    def __init__(self, clock: list[float], steps: int = 10, step_s: float = BURST_S / 2.5) -> None:
        self._clock, self._left, self._step_s = clock, steps, step_s
        self.steps = 0
        self.targets: list[tuple[int, tuple[float, float]]] = []
        self.error: Exception | None = None

    @property
    def report(self) -> DragReport:
        return DragReport(self.steps, 0.0, (), self._left <= 0)

    @property
    def latent(self) -> StoredLatent:
        return StoredLatent(np.full((1, 1), self.steps, "<f4").tobytes(), 1, 1)

    def set_target(self, index: int, target: tuple[float, float]) -> None:
        self.targets.append((index, target))
        self._left = 3

    def step(self) -> DragReport:
        if self.error is not None:
            raise self.error
        self._clock[0] += self._step_s
        self.steps += 1
        self._left -= 1
        return self.report
