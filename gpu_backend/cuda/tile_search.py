"""Finding the fastest right tile of every convolution: candidates are timed, the best few again, the best one checked.

Pure: what a tile costs and whether it is right is asked of a `TileTimer`; on a GPU that is
`gpu_backend.cuda.tile_timer`.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.tiles import TileTable
from gpu_backend.ops.conv_tile import ConvShape, ConvTile

FINALISTS = 4
ROUNDS = 3
"""How many of the best are timed again, in turn, and how often."""

WORTH = 0.01
"""A tile that is faster by less than this share does not take the place of the one in use."""


class TileTimer(Protocol):
    """Runs a convolution with a tile."""

    def prepare(self, shape: ConvShape, tiles: Sequence[ConvTile]) -> None:
        """Compile what these tiles need, all at once; a tile that does not compile is told by `time_us`."""
        ...

    def time_us(self, shape: ConvShape, tile: ConvTile) -> float:
        """Return what the kernel takes.

        Raises
        ------
        KernelError
            If it cannot be compiled or launched with this tile.
        """
        ...

    def problem(self, shape: ConvShape, tile: ConvTile) -> str:
        """Return in what its result differs from that of the plain kernel; empty if it is right."""
        ...


@dataclass(frozen=True, slots=True)
class Refused:
    """A tile that was discarded, and why."""

    tile: ConvTile
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What came out for one shape.

    Attributes
    ----------
    before, before_us
        The tile that was in use, and its time; infinite if it does not run or is wrong.
    tile, time_us
        The tile to use; the same as `before` where nothing is clearly faster.
    tried, candidates
        How many were timed, of how many.
    """

    shape: ConvShape
    before: ConvTile
    before_us: float
    tile: ConvTile
    time_us: float
    tried: int
    candidates: int
    refused: tuple[Refused, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far the search is: which shape of how many, and what was tried of it."""

    shape: ConvShape
    number: int
    shapes: int
    tried: int
    candidates: int
    best_us: float


def search(
    shapes: Sequence[ConvShape],
    table: TileTable,
    candidates: Callable[[ConvShape], Iterable[ConvTile]],
    timer: TileTimer,
    *,
    budget_s: float = math.inf,
    progress: Callable[[SearchProgress], None] = lambda progress: None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Finding]:
    """Yield a finding for every shape, in order.

    Parameters
    ----------
    table
        What is in use; its tile is always timed, first.
    budget_s
        Time for all shapes. What one leaves goes to those after it; each has at least its tile in use timed.
    """
    end = clock() + budget_s
    for number, shape in enumerate(shapes, 1):
        share = clock() + (end - clock()) / (len(shapes) - number + 1)

        def has_time(share: float = share) -> bool:
            return clock() < share

        def tell(tried: int, count: int, best_us: float, number: int = number, shape: ConvShape = shape) -> None:
            progress(SearchProgress(shape, number, len(shapes), tried, count, best_us))

        finding = _search_one(shape, table.choose(shape), candidates(shape), timer, has_time, tell)
        if finding is not None:
            yield finding


def _search_one(
    shape: ConvShape,
    before: ConvTile,
    candidates: Iterable[ConvTile],
    timer: TileTimer,
    has_time: Callable[[], bool],
    tell: Callable[[int, int, float], None],
) -> Finding | None:
    """Return what is fastest and right for a shape; None if nothing is."""
    others = [tile for tile in dict.fromkeys(candidates) if tile != before]
    # In no order, so that a budget that ends early has seen all kinds.
    random.Random(0).shuffle(others)
    tiles = [before, *others]
    tell(0, len(tiles), math.inf)
    timer.prepare(shape, tiles)
    times: dict[ConvTile, float] = {}
    refused: list[Refused] = []

    def try_out(tile: ConvTile) -> None:
        try:
            times[tile] = timer.time_us(shape, tile)
        except KernelError as error:
            times.pop(tile, None)
            refused.append(Refused(tile, error.sentence))

    tried = 0
    for tile in tiles:
        if tried and not has_time():
            break
        try_out(tile)
        tried += 1
        tell(tried, len(tiles), min(times.values(), default=math.inf))
    times.update(_finals(shape, times, before, timer))
    return _chosen(shape, before, times, timer, refused, (tried, len(tiles)))


def _finals(
    shape: ConvShape, times: dict[ConvTile, float], before: ConvTile, timer: TileTimer
) -> dict[ConvTile, float]:
    """Return medians of the best few and of the tile in use, timed in turn: whatever else happens meets them all."""
    best = sorted(times, key=times.__getitem__)[:FINALISTS]
    if before in times and before not in best:
        best.append(before)
    rounds: dict[ConvTile, list[float]] = {tile: [times[tile]] for tile in best}
    for _ in range(ROUNDS):
        for tile in best:
            rounds[tile].append(timer.time_us(shape, tile))
    return {tile: statistics.median(found) for tile, found in rounds.items()}


def _chosen(
    shape: ConvShape,
    before: ConvTile,
    times: dict[ConvTile, float],
    timer: TileTimer,
    refused: list[Refused],
    counts: tuple[int, int],
) -> Finding | None:
    """Go from the fastest to the slowest until one is right."""
    before_us = times.get(before, math.inf)
    if before in times and (why := timer.problem(shape, before)):
        refused.append(Refused(before, why))
        del times[before]
        before_us = math.inf
    for tile in sorted(times, key=times.__getitem__):
        if tile != before and times[tile] > before_us * (1 - WORTH):
            tile = before
        elif tile != before and (why := timer.problem(shape, tile)):
            refused.append(Refused(tile, why))
            continue
        return Finding(shape, before, before_us, tile, times[tile], *counts, tuple(refused))
    return None
