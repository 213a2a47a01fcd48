"""Which frames a worker gets next, and what is known of workers. Pure: no clock, no farm, no files."""

from __future__ import annotations

import bisect
import math
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

CHUNK_S = 4.0
"""How long a chunk should take: long beside a message to the farm, short beside a user's patience."""

MAX_CHUNK_FRAMES = 512
MAX_RETURNED_FRAMES = 16
"""Frames of a chunk that come back as one message."""

MAX_FAILURES = 3
"""A worker that fails so often is set aside; a chunk that fails so often ends the job."""

_FIRST_FRAMES = 2
_RATE_CHUNKS = 8


@dataclass
class WorkerRecord:
    """A job's record of a worker, by name: a worker that was started again is the same one."""

    name: str
    device: str = ""
    frames: int = 0
    failures: int = 0
    last_error: str = ""
    is_set_aside: bool = False
    paces: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_RATE_CHUNKS))
    """Frames and seconds of the last chunks."""

    def note_chunk(self, frames: int, seconds: float) -> None:
        """Take note of a chunk that was rendered."""
        self.frames += frames
        if frames and seconds > 0:
            self.paces.append((frames, seconds))

    def note_failure(self, sentence: str) -> bool:
        """Take note of a failure; return whether the worker is set aside now."""
        self.failures += 1
        self.last_error = sentence
        self.is_set_aside = self.failures >= MAX_FAILURES
        return self.is_set_aside

    @property
    def rate(self) -> float:
        """Frames a second within its chunks; 0 before the first."""
        seconds = sum(seconds for _, seconds in self.paces)
        return sum(frames for frames, _ in self.paces) / seconds if seconds else 0.0


class UnitPool:
    """Units (pictures, or segments of a video) that no worker renders yet.

    Parameters
    ----------
    units
        Their numbers, ascending.
    unit_frames
        Frames of a unit.
    """

    def __init__(self, units: Iterable[int], unit_frames: int) -> None:
        self._units = list(units)
        self.unit_frames = unit_frames
        self._failures: Counter[int] = Counter()
        self._alone: set[int] = set()
        """Units of chunks that failed."""
        self._failed_on: dict[int, set[str]] = {}
        self._died_with: set[int] = set()

    def __len__(self) -> int:
        return len(self._units)

    def take(self, worker: WorkerRecord, *, workers: int, others: Iterable[str], is_returned: bool) -> range | None:
        """Return units in a row for a worker, None if there are none for it now.

        What failed on this worker goes to another one if there is one that it has not failed on.

        Parameters
        ----------
        workers
            How many share what is left; the last chunks are small, so that all end together.
        others
            Names of the other workers that could take a chunk.
        is_returned
            Files come back as a message.
        """
        others = set(others)
        avoided = {
            unit
            for unit, names in self._failed_on.items()
            if worker.name in names and any(other not in names for other in others)
        }
        place = next((place for place, unit in enumerate(self._units) if unit not in avoided), None)
        if place is None:
            return None
        count = self._count(worker, workers, is_returned)
        first = self._units[place]
        end = place + 1
        while (
            end < len(self._units)
            and end - place < count
            and self._units[end] == first + end - place
            and self._units[end] not in avoided
            and first not in self._alone
            and self._units[end] not in self._alone
        ):
            end += 1
        del self._units[place:end]
        return range(first, first + end - place)

    def give_back(self, units: Iterable[int]) -> None:
        """Take units back that were not rendered."""
        for unit in units:
            bisect.insort(self._units, unit)

    def note_failure(self, units: range, worker: str) -> bool:
        """Take note that units failed on a worker; return whether one of them failed too often."""
        for unit in units:
            self._failed_on.setdefault(unit, set()).add(worker)
        if len(units) > 1:  # which of them it was is found out by trying each alone, so none has used up a try
            self._alone.update(units)
            return False
        self._alone.add(units[0])
        self._failures[units[0]] += 1
        return self._failures[units[0]] >= MAX_FAILURES

    def note_death(self, units: range, worker: str) -> bool:
        """Take note that a worker died with units; return whether one of them failed too often.

        The first death is not laid to what the worker had; if it happens again with a unit, that counts as a failure.
        """
        again = not self._died_with.isdisjoint(units)
        self._died_with.update(units)
        return again and self.note_failure(units, worker)

    def _count(self, worker: WorkerRecord, workers: int, is_returned: bool) -> int:
        frames = worker.rate * CHUNK_S if worker.rate else _FIRST_FRAMES
        frames = min(frames, MAX_RETURNED_FRAMES if is_returned else MAX_CHUNK_FRAMES)
        fair = math.ceil(len(self._units) / (2 * max(1, workers)))
        return max(1, min(round(frames / self.unit_frames), fair))
