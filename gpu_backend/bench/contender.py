"""Who is measured: the same few calls for this renderer and for its peers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

ROTATION = 4
"""Inputs that take turns, so that no run finds its own of the run before."""


@dataclass(frozen=True, slots=True)
class Case:
    """An implementation of a network, measured at one precision and batch."""

    who: str
    precision: str
    batch: int

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.who}, {self.precision}, batch {self.batch}"


class CannotRunError(Exception):
    """A contender is not to be had here; the message says why."""


class Contender(Protocol):
    """One case, ready to be built, run and let go."""

    @property
    def case(self) -> Case:
        """Title in tables."""
        ...

    def prepare(self) -> None:
        """Build it and run it once. Raises CannotRunError, or the error of the library."""
        ...

    def settle(self) -> None:
        """Forget what warming up held, before the timed runs."""
        ...

    def times_ms(self, runs: int) -> list[float]:
        """Run `runs` times and return the time of each run, in ms."""
        ...

    @property
    def nbytes(self) -> int | None:
        """Memory of the device at its peak since `settle`; None where it is not measured."""
        ...

    def close(self) -> None:
        """Let everything go. May be called twice, and after a failure."""
        ...
