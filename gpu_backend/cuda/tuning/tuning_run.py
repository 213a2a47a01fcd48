"""A tuning in bounded steps, for a thread that renders between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator

from gpu_backend.cuda.tuning.prediction import PredictionQuality
from gpu_backend.cuda.tuning.tile_search import Preparation, Step, TileFinding, TileProgress
from gpu_backend.cuda.tuning.tile_tuning import TileTuning
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TuningShare:
    """How much of a tuning is done.

    Attributes
    ----------
    share
        0..1, by the time that is left of the budget and by convolutions that are done.
    progress
        The convolution that is being searched for; None before the first step.
    quality
        How well timings predict those of shapes that are left out; None if unknown.
    """

    share: float
    progress: TileProgress | None
    quality: PredictionQuality | None = None


class TuningRun:
    """One search for the fastest tiles of a model's convolutions.

    The budget counts only time in steps and time in which kernels are compiled, so it does not run out while another
    task has the thread. All methods but the constructor are called on the same thread.

    Parameters
    ----------
    tuning
        What is searched for, and the table that is written.
    budget_s
        Seconds to spend at most, roughly.
    """

    def __init__(self, tuning: TileTuning, budget_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tuning = tuning
        self._budget_s = budget_s
        self._clock = clock
        self._spent_s = 0.0
        self._since_s: float | None = None
        self._waiting: Preparation | None = None
        self._progress: TileProgress | None = None
        self._steps: Generator[Step, None, None] | None = None
        self.findings: list[TileFinding] = []
        self.is_done = False

    @property
    def tuning(self) -> TileTuning:
        """What is searched for."""
        return self._tuning

    @property
    def is_waiting(self) -> bool:
        """Whether kernels are being compiled, so that there is no step to take yet."""
        return self._waiting is not None and not self._waiting.is_done

    @property
    def state(self) -> TuningShare:
        """How much is done."""
        by_count = len(self.findings) / max(1, len(self._tuning.shapes))
        by_time = min(1.0, self._now_s() / self._budget_s)
        return TuningShare(1.0 if self.is_done else max(by_count, by_time), self._progress, self._tuning.quality)

    def step(self) -> TileFinding | None:
        """Time or check one tile, or begin to compile the next ones; return what was found, if this step found it.

        Raises
        ------
        DeviceError
            If the GPU fails, or the table cannot be written. The run is over then.
        """
        if self.is_done or self.is_waiting:
            return None
        if self._since_s is None:
            self._since_s = self._clock()
        if self._steps is None:
            self._steps = self._tuning.steps(budget_s=self._budget_s, clock=self._now_s)
        self._waiting = None
        try:
            step = next(self._steps, None)
        except BaseException:
            self.close()
            raise
        if step is None:
            self.close()
        elif isinstance(step, TileFinding):
            self.findings.append(step)
        elif isinstance(step, TileProgress):
            self._progress = step
        else:
            self._waiting = step
            return None  # the clock keeps running: the budget includes compiling
        self._spent_s, self._since_s = self._now_s(), None
        return step if isinstance(step, TileFinding) else None

    def close(self) -> None:
        """Free the GPU; what was found stays in the table. May be called twice."""
        self.is_done = True
        if self._steps is not None:
            self._steps.close()

    def _now_s(self) -> float:
        return self._spent_s + (0.0 if self._since_s is None else self._clock() - self._since_s)
