"""Frames that two workers render, to find out whether they give the same picture."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import numpy as np

from explorer_app.farm.dispatch import WorkerRecord
from explorer_app.farm.link import FarmLink
from gpu_backend import dataclass

ALLOWED_STEPS = 1
"""Steps of 255 by which a byte may differ between different devices."""


@dataclass(frozen=True, slots=True)
class SpotCheck:
    """What comparing gave.

    Attributes
    ----------
    frames
        Which frames were compared.
    steps
        Largest difference of a byte, in steps of 255; 0 if all are equal.
    pair
        The two workers that differ most; the first two if none do.
    is_same_kind
        Whether both workers have the same device and software, and so should give equal bytes.
    """

    frames: tuple[int, ...]
    steps: int
    pair: tuple[str, str]
    is_same_kind: bool

    @property
    def is_fine(self) -> bool:
        """Whether the difference is no larger than it may be."""
        return self.steps <= (0 if self.is_same_kind else ALLOWED_STEPS)

    @property
    def sentence(self) -> str:
        """For people."""
        count = len(self.frames)
        what = f"{count} frame{'' if count == 1 else 's'} rendered by two workers each"
        if not self.steps:
            return f"Spot check: {what} are equal."
        kind = "the same device and software" if self.is_same_kind else "different devices"
        return (
            f"Spot check: {what} differ by up to {self.steps} of 255 between {self.pair[0]} and {self.pair[1]}, "
            f"which have {kind}{'' if self.is_fine else '; look at the frames of both'}."
        )


async def compared_frames(
    link: FarmLink, job: str, total: int, workers: Sequence[tuple[str, WorkerRecord]], count: int
) -> SpotCheck:
    """Render `count` random frames of a job by two workers each.

    Parameters
    ----------
    workers
        At least two, by address, that have the job open.

    Raises
    ------
    WorkerLostError, StationError
        If a worker fails.
    """
    choice = random.Random(job)
    frames = tuple(sorted(choice.sample(range(total), min(count, total))))
    worst: tuple[int, tuple[WorkerRecord, WorkerRecord]] | None = None
    for index in frames:
        (first, one), (second, other) = choice.sample(list(workers), 2)
        pictures = await asyncio.gather(*(link.call(address, "sample", job, index) for address in (first, second)))
        steps = _difference(*pictures)
        if worst is None or steps > worst[0]:
            worst = steps, (one, other)
    assert worst is not None
    steps, (one, other) = worst
    return SpotCheck(frames, steps, (one.name, other.name), one.device == other.device)


def _difference(one: tuple[int, int, bytes], other: tuple[int, int, bytes]) -> int:
    """Return the largest difference of two pictures (width, height, bytes); 255 if their sizes differ."""
    if one[:2] != other[:2]:
        return 255
    values = [np.frombuffer(picture[2], np.uint8).astype(np.int16) for picture in (one, other)]
    return int(np.abs(values[0] - values[1]).max(initial=0))
