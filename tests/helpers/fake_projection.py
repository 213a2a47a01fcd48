"""A search for a photo's latent without a network, and a render thread that steps it when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from explorer_app.rendering.render_events import ProjectionAdvanced, ProjectionEnded, ProjectionFailed
from explorer_app.rendering.tasks.projection import ProjectionLike
from gpu_backend import Crop, LocalEdits, Noise, ProjectionReport, StoredLatent


class FakeProjection:
    """Is done after so many steps; its rows count them, and each is better than the one before."""

    def __init__(self, steps: int = 5, w_dim: int = 512) -> None:
        self._steps, self._w_dim = steps, w_dim
        self.report = ProjectionReport("random", 0, 1, float("inf"), 64)
        self.error: Exception | None = None
        self.latents_read = 0
        self.is_cancelled = False

    @property
    def has_found(self) -> bool:
        return self.report.step > 0

    @property
    def latent_version(self) -> tuple[float, int]:
        return self.report.loss, self.report.resolution

    @property
    def latent(self) -> StoredLatent:
        self.latents_read += 1
        return StoredLatent(np.full((1, self._w_dim), self.report.step, "<f4").tobytes(), 1, self._w_dim)

    def changes(self) -> dict[str, np.ndarray]:
        return {}

    def cancel(self) -> None:
        self.is_cancelled = True

    def step(self) -> ProjectionReport:
        if self.error is not None:
            raise self.error
        step = self.report.step + 1
        self.report = ProjectionReport("rows", step, self._steps, 1.0 / step, 64, step >= self._steps)
        return self.report


class ImmediateWorker:
    """Runs tasks of files at once."""

    def fetch(
        self, task: Callable[[], Any], take: Callable[[Any], None], *, failed: str = "", about: Path | None = None
    ) -> None:
        take(task())


class FakeProjectionRenders:
    """Stands for the render thread: `advance` does a step and reports it."""

    def __init__(self, model: object = "a model") -> None:
        self.model: Any = model
        self.projection: Any = None
        self.number = -1
        self.work: Any = None
        self.steps = 5
        self.calls: list[tuple[Path, Crop]] = []
        self.tuned: list[bool] = []
        self.tunes_now: Callable[[], bool] = lambda: False
        self.edits: list[LocalEdits] = []
        self.opened: list[Path] = []
        self.worker = ImmediateWorker()
        self.error: Exception | None = None

    def make(
        self, model: object, noise: Noise, edits: LocalEdits, path: Path, crop: Crop, *, tune: Callable[[], bool] | None
    ) -> FakeProjection:
        self.edits.append(edits)
        self.calls.append((path, crop))
        self.tuned.append(tune is not None)
        self.tunes_now = tune or (lambda: False)
        if self.error is not None:
            raise self.error
        return FakeProjection(self.steps)

    def begin_projection(self, number: int, make: Callable[[], ProjectionLike]) -> None:
        self.number, self.work = number, None
        try:
            self.work = make()
        except Exception as error:
            self.projection.take_failed(ProjectionFailed(number, error))

    def stop_projection(self) -> None:
        work, self.work = self.work, None
        latent = work.latent if work is not None and work.has_found else None
        self.projection.take_ended(ProjectionEnded(self.number, latent))

    def cancel_projection(self) -> None:
        self.work = None

    def advance(self, steps: int = 1) -> None:
        for _ in range(steps):
            if self.work is not None:
                report, latent = self.work.step(), self.work.latent
                if report.is_done:
                    self.work = None
                    self.projection.take_ended(ProjectionEnded(self.number, latent))
                else:
                    self.projection.take_advanced(ProjectionAdvanced(self.number, report, latent))
