"""The interface of what measures the launches of a run one by one."""

from __future__ import annotations

from typing import Protocol

from gpu_backend.frame import StepTime, TimingSource


class StepTimer(Protocol):
    """Measures a bound plan's launches, one run at a time."""

    @property
    def source(self) -> TimingSource:
        """Where the times come from."""
        ...

    @property
    def captures(self) -> int:
        """Graphs captured so far."""
        ...

    @property
    def replaces_run(self) -> bool:
        """Whether `replay` does the work of a run by itself; else the plain graph runs and is watched."""
        ...

    @property
    def has_total(self) -> bool:
        """Whether `note_total` was called."""
        ...

    def prepare(self) -> None:
        """Prepare to measure; called before a measured run is enqueued."""
        ...

    def give_up(self) -> None:
        """Cancel the preparation: the run is not enqueued. Never raises."""
        ...

    def replay(self) -> None:
        """Enqueue the work of a run, measured."""
        ...

    def note_total(self, total_ms: float) -> None:
        """Take note of what a replay of the plain graph took."""
        ...

    def read(self, elapsed_ms: float) -> tuple[tuple[StepTime, ...], float]:
        """Return the launches' times of the measured run, which is over, and what a plain run takes, in ms.

        `elapsed_ms` went by between the run's own events.
        """
        ...

    def close(self) -> None:
        """Free everything. Never raises; may be called twice."""
        ...
