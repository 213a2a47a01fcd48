"""Finds the fastest correct tile of every convolution: times candidates, times the best few again, checks the best.

There are up to a few thousand candidates. They are timed in groups of a few dozen: half resemble the best so far, half
are the likeliest. The search ends when a group gains nothing or the time is over.

Pure: a `TileTimer` measures a tile's time and checks its result; on a GPU that is
`gpu_backend.cuda.tuning.tile_timer`.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from operator import attrgetter
from typing import Protocol

from gpu_backend.cuda.errors import KernelError
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile
from gpu_backend.quick_dataclass import dataclass

AT_ONCE = 32
"""Tiles that are compiled together."""

PATIENCE = 5
"""Groups without a gain after which the rest is skipped."""

FINALISTS = 4
ROUNDS = 3
"""Number of the best tiles that are timed again, in turn, and how often."""

WORTH = 0.01
"""A tile must be faster by this share to replace the one in use."""

_CHOICES = attrgetter(*(choice.name for choice in fields(ConvTile) if choice.name != "split_k"))


class Preparation(Protocol):
    """Kernels that are being compiled on other threads."""

    @property
    def is_done(self) -> bool:
        """Whether `wait` returns at once."""
        ...

    def wait(self) -> None:
        """Wait for the end; an interrupt starts no further kernel."""
        ...


class TileTimer(Protocol):
    """Runs a convolution with a tile."""

    def prepare(self, shape: ConvShape, tiles: Sequence[ConvTile]) -> Preparation:
        """Begin to compile what these tiles need, all at once; `time_us` reports a tile that does not compile."""
        ...

    def time_us(self, shape: ConvShape, tile: ConvTile) -> float:
        """Return the kernel's time.

        Raises
        ------
        KernelError
            If it cannot be compiled or launched with this tile, or spills registers.
        """
        ...

    def problem(self, shape: ConvShape, tile: ConvTile) -> str:
        """Return how its result differs from the plain kernel's; empty if it is correct."""
        ...


@dataclass(frozen=True, slots=True)
class Refused:
    """A discarded tile and the reason; a wrong one computed something other than the plain kernel."""

    tile: ConvTile
    why: str
    is_wrong: bool


@dataclass(frozen=True, slots=True)
class TileFinding:
    """Result for one shape.

    Attributes
    ----------
    before, before_us
        The tile that was in use, and its time; infinite if it does not run or is wrong.
    tile, time_us
        The tile to use; the same as `before` where nothing is clearly faster.
    tried, candidates
        How many were timed, of how many.
    times_us
        Microseconds of every tile that was timed.
    predicted_us
        What was predicted for `tile` from `before_us`, before this shape was searched; None without a prediction.
    """

    shape: ConvShape
    before: ConvTile
    before_us: float
    tile: ConvTile
    time_us: float
    tried: int
    candidates: int
    refused: tuple[Refused, ...] = ()
    times_us: tuple[tuple[ConvTile, float], ...] = ()
    predicted_us: float | None = None

    @property
    def trials(self) -> int:
        """Place of the tile in the order of timing, from 1; 0 if no timings are known."""
        return next((place for place, (tile, _) in enumerate(self.times_us, 1) if tile == self.tile), 0)


@dataclass(frozen=True, slots=True)
class TileProgress:
    """How far the search is: which shape of how many, and what was tried of it; no candidates while they are listed."""

    shape: ConvShape
    number: int
    shapes: int
    tried: int
    candidates: int
    best_us: float


Step = TileProgress | TileFinding | Preparation
"""What a bounded step of a search yields: its progress, a result, or kernels that have to be waited for."""


def findings_of(
    steps: Iterable[Step], progress: Callable[[TileProgress], None] = lambda progress: None
) -> Iterator[TileFinding]:
    """Run all steps of a search in sequence on the calling thread; yield the findings."""
    for step in steps:
        if isinstance(step, TileProgress):
            progress(step)
        elif isinstance(step, TileFinding):
            yield step
        else:
            step.wait()


def search_steps(
    shapes: Sequence[ConvShape],
    in_use: Callable[[ConvShape], ConvTile],
    candidates: Callable[[ConvShape], Iterable[ConvTile | None]],
    timer: TileTimer,
    *,
    budget_s: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
) -> Generator[Step, None, None]:
    """Yield after each bounded step: one tile was timed or checked, or kernels begin to be compiled.

    The calling thread may do other work between two steps, and returns to a `Preparation` once it is done.

    Parameters
    ----------
    in_use
        The tile of a shape as it is; always timed, first.
    candidates
        The likeliest first, since a budget may end before the last. None ends a bounded step of listing them.
    budget_s
        Time for all shapes, by `clock`. Time that one does not use goes to the following ones; each has at least its
        tile in use timed.
    """
    end = clock() + budget_s
    for number, shape in enumerate(shapes, 1):
        share = clock() + (end - clock()) / (len(shapes) - number + 1)

        def has_time(share: float = share) -> bool:
            return clock() < share

        def at(tried: int, count: int, best_us: float, number: int = number, shape: ConvShape = shape) -> TileProgress:
            return TileProgress(shape, number, len(shapes), tried, count, best_us)

        listed: list[ConvTile] = []
        for tile in candidates(shape):
            if tile is None:
                yield at(0, 0, math.inf)
            else:
                listed.append(tile)
        finding = yield from _search_one(shape, in_use(shape), listed, timer, has_time, at, clock)
        if finding is not None:
            yield finding


def _search_one(
    shape: ConvShape,
    before: ConvTile,
    candidates: Iterable[ConvTile],
    timer: TileTimer,
    has_time: Callable[[], bool],
    at: Callable[[int, int, float], TileProgress],
    clock: Callable[[], float],
) -> Generator[Step, None, TileFinding | None]:
    """Return the fastest correct tile of a shape; None if there is none."""
    waiting = dict.fromkeys((before, *candidates))
    count = len(waiting)
    times: dict[ConvTile, float] = {}
    refused: list[Refused] = []
    best_us, in_vain = math.inf, 0
    yield at(0, count, best_us)
    while waiting and in_vain < PATIENCE:
        is_late = not has_time()
        if is_late and (times or refused):
            break
        turn = [before] if is_late else _next(waiting, times)
        for tile in turn:
            del waiting[tile]
        began = clock()
        preparation = timer.prepare(shape, turn)
        yield preparation
        preparation.wait()
        compiled = clock()
        for tile in turn:
            # Compiling takes far longer than timing, and would be in vain if the time were over right after it.
            is_cheap = clock() - compiled < compiled - began
            if (times or refused) and not is_cheap and not has_time():
                break
            try:
                times[tile] = timer.time_us(shape, tile)
            except KernelError as error:
                refused.append(Refused(tile, error.sentence, is_wrong=False))
            yield at(len(times) + len(refused), count, min(times.values(), default=math.inf))
        now_us = min(times.values(), default=math.inf)
        in_vain = 0 if now_us < best_us * (1 - WORTH) else in_vain + 1
        best_us = min(best_us, now_us)
    tried = len(times) + len(refused)
    done = at(tried, count, best_us)
    times.update((yield from _finals(shape, times, before, timer, done)))
    return (yield from _chosen(shape, before, times, timer, refused, done))


def _next(waiting: Iterable[ConvTile], times: Mapping[ConvTile, float]) -> list[ConvTile]:
    """Return the tiles to time next: tiles that resemble the best so far, and as many of the likeliest."""
    alike: list[ConvTile] = []
    if times:
        best = min(times, key=lambda tile: times[tile])
        alike = list(islice((tile for tile in waiting if resembles(tile, best)), AT_ONCE // 2))
    taken = set(alike)
    return [*alike, *islice((tile for tile in waiting if tile not in taken), AT_ONCE - len(alike))]


def resembles(one: ConvTile, other: ConvTile) -> bool:
    """Return whether two tiles differ in two fields at most; split-K follows from the others."""
    differing = [a for a, b in zip(_CHOICES(one), _CHOICES(other), strict=True) if a != b]
    return len(differing) <= 2


def _finals(
    shape: ConvShape, times: dict[ConvTile, float], before: ConvTile, timer: TileTimer, done: TileProgress
) -> Generator[Step, None, dict[ConvTile, float]]:
    """Return medians of the best few and of the tile in use, timed in turn, so that disturbances affect all of them."""
    best = sorted(times, key=times.__getitem__)[:FINALISTS]
    if before in times and before not in best:
        best.append(before)
    rounds: dict[ConvTile, list[float]] = {tile: [times[tile]] for tile in best}
    for _ in range(ROUNDS):
        for tile in best:
            rounds[tile].append(timer.time_us(shape, tile))
            yield done
    return {tile: statistics.median(found) for tile, found in rounds.items()}


def _chosen(
    shape: ConvShape,
    before: ConvTile,
    times: dict[ConvTile, float],
    timer: TileTimer,
    refused: list[Refused],
    done: TileProgress,
) -> Generator[Step, None, TileFinding | None]:
    """Check tiles from the fastest to the slowest until one is correct."""
    times_us = tuple(times.items())
    before_us = times.get(before, math.inf)
    if before in times and (why := timer.problem(shape, before)):
        refused.append(Refused(before, why, is_wrong=True))
        del times[before]
        before_us = math.inf
    yield done
    for tile in sorted(times, key=times.__getitem__):
        if tile != before and times[tile] > before_us * (1 - WORTH):
            tile = before
        elif tile != before and (why := timer.problem(shape, tile)):
            refused.append(Refused(tile, why, is_wrong=True))
            yield done
            continue
        counts = done.tried, done.candidates
        return TileFinding(shape, before, before_us, tile, times[tile], *counts, tuple(refused), times_us)
    return None
