"""Exact times of single kernels, from records of when each began and ended. Gaps between kernels belong to none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from gpu_backend.cuda.schedule import Launch
from gpu_backend.cuda.timing.kernel_timer import EventTimer, step_time
from gpu_backend.frame import KernelFacts, StepTime, TimingSource
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """One kernel's run."""

    name: str
    start_ns: int
    end_ns: int


class KernelRecords(Protocol):
    """What records kernels. Any exception of it means that it does not work here."""

    def start(self) -> None:
        """Record kernels from now on."""
        ...

    def stop(self) -> list[KernelRecord]:
        """Record no longer; return what was recorded, in any order."""
        ...


class CuptiTimer:
    """Implements `gpu_backend.cuda.timing.step_timer.StepTimer`: the plain graph runs and is recorded.

    Once the records fail or leave out a run, `fallback` measures from then on.
    """

    def __init__(
        self,
        launches: Sequence[Launch],
        records: KernelRecords,
        facts: Callable[[], tuple[KernelFacts, ...]],
        fallback: EventTimer,
    ) -> None:
        self._launches = tuple(launches)
        self._records = records
        self._make_facts = facts
        self._facts: tuple[KernelFacts, ...] = ()
        self._fallback = fallback
        self._works = True
        self._is_recording = False

    @property
    def source(self) -> TimingSource:
        """Records, as long as they work."""
        return "cupti" if self._works else "events"

    @property
    def captures(self) -> int:
        """None as long as records work."""
        return self._fallback.captures

    @property
    def replaces_run(self) -> bool:
        """Whether events measure instead of CUPTI."""
        return not self._works

    @property
    def has_total(self) -> bool:
        """Whether a plain replay was noted."""
        return self._fallback.has_total

    def prepare(self) -> None:
        """Begin to record."""
        if self._works:
            try:
                self._facts = self._facts or self._make_facts()
                self._records.start()
                self._is_recording = True
            except Exception:
                self._works = False
        if not self._works:
            self._fallback.prepare()

    def give_up(self) -> None:
        """Stop recording."""
        if self._is_recording:
            self._is_recording = False
            try:
                self._records.stop()
            except Exception:
                self._works = False

    def replay(self) -> None:
        """Launch the graph with events."""
        self._fallback.replay()

    def note_total(self, total_ms: float) -> None:
        """Take note of what a replay of the plain graph took; recorded ones are slower."""
        if not self._is_recording or not self.has_total:
            self._fallback.note_total(total_ms)

    def read(self, elapsed_ms: float) -> tuple[tuple[StepTime, ...], float]:
        """Return the launches' times; none of the run that the records leave out."""
        if not self._is_recording:
            return self._fallback.read(elapsed_ms)
        self._is_recording = False
        try:
            times_us = kernel_times_us(self._records.stop(), [launch.recipe.stem for launch in self._launches])
        except Exception:
            times_us = None
        total_ms = self._fallback.total_ms
        total_ms = elapsed_ms if total_ms is None else total_ms
        if times_us is None:
            self._works = False
            return (), total_ms
        steps = tuple(
            step_time(launch, time_us, facts)
            for launch, time_us, facts in zip(self._launches, times_us, self._facts, strict=True)
        )
        return steps, total_ms

    def close(self) -> None:
        """Stop recording and free what belongs to the events. May be called twice."""
        self.give_up()
        self._fallback.close()


def kernel_times_us(records: Sequence[KernelRecord], names: Sequence[str]) -> list[float] | None:
    """Return the times of the first whole run among records: kernels of these names, one after another.

    None if there is none. Runs before and after it may be among the records, whole or in part. A kernel that started
    before the one before it ended waited for that end: its time begins there.
    """
    ordered = sorted(records, key=lambda record: record.start_ns)
    found = [record.name for record in ordered]
    wanted = list(names)
    for first in range(len(ordered) - len(wanted) + 1):
        if found[first : first + len(wanted)] == wanted:
            run = ordered[first : first + len(wanted)]
            ends = [run[0].start_ns, *(record.end_ns for record in run[:-1])]
            return [(record.end_ns - max(record.start_ns, end)) / 1e3 for record, end in zip(run, ends, strict=True)]
    return None
