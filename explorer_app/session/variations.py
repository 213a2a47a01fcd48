"""Variations: neighbours of a latent, steps along two directions, style mixing and children, as whole sessions. Pure.

Each function returns sessions whose recipes consist of seeds, directions, mixes and stored latents, so a variation can
be shown, kept, saved and undone like any other session. Everything random follows from a seed: the same arguments give
the same variations on every machine.

A cell of a grid is named by its offset from the middle, (rows down, columns right), so that a larger grid keeps what a
smaller one shows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from explorer_app.session.blend import resolve_blend
from explorer_app.session.row_groups import RowGroup, held_rows
from explorer_app.session.session import Session, Slider, as_still
from gpu_backend import SEED_COUNT, Latent, Point, Recipe, RequestError, RowRange, combined_latent, dataclass

Cell = tuple[int, int]
"""Offset from the middle cell of a grid: rows down, columns right."""

MIDDLE: Cell = (0, 0)
"""The cell of the session itself."""

LEAST_SIDE, MOST_SIDE = 3, 8
"""How many rows and columns a grid of variations may have."""

Weights = Sequence[float]
"""One number a row of w."""

_NO_SUM = 1e-6
"""Sum of weights, relative to that of their magnitudes, below which they are taken to sum to zero."""


def grid_cells(rows: int, columns: int) -> tuple[Cell, ...]:
    """Return the cells of a grid in reading order; of an even number, the middle is the one after the centre."""
    return tuple((row - rows // 2, column - columns // 2) for row in range(rows) for column in range(columns))


def combined_session(base: Session, parts: Sequence[tuple[Session, Weights]]) -> Session:
    """Return `base` with the weighted sum of the latents of several sessions, row by row.

    Weights sum to one in each row. Mixes become part of the latent. Sliders stay sliders if all parts have the same
    amounts; otherwise they are merged into the latent and set to zero. Truncation is that of `base`.

    Raises
    ------
    RequestError
        If the sum is no recipe; see `gpu_backend.combined_latent`.
    """
    amounts = {_amounts(session) for session, _ in parts}
    are_shared = len(amounts) == 1
    latents: list[tuple[Latent, Weights]] = []
    for session, weights in parts:
        bare = replace(session, sliders=()) if are_shared else session
        for recipe, share in resolve_blend(bare):
            latents.append((recipe.latent, [share * weight for weight in weights]))
    recipe = Recipe(combined_latent(latents), base.truncation)
    sliders = parts[0][0].sliders if are_shared else _at_zero(base.sliders)
    pinned = ((recipe, 1.0),)
    return replace(as_still(base), pinned_blend=pinned, classes=recipe.latent.classes, mix=(), sliders=sliders)


def neighbour(session: Session, seed: int, spread: float, rows: RowRange, num_ws: int) -> Session:
    """Return a session on the way, in some rows of w, from a session's latent to a seed.

    Parameters
    ----------
    spread
        Share of the way, 0..1.
    """
    held = held_rows(rows, num_ws)
    shares = [spread if row in held else 0.0 for row in range(num_ws)]
    there = replace(
        session,
        pinned_blend=((Recipe(Latent(Point(((seed, 1.0),)), session.classes), session.truncation), 1.0),),
        mix=(),
    )
    return combined_session(session, [(session, [1.0 - share for share in shares]), (there, shares)])


def random_neighbours(
    session: Session, cells: Sequence[Cell], seed: int, spread: float, rows: RowRange, num_ws: int
) -> tuple[Session, ...]:
    """Return a neighbour for each cell, and the session itself for the middle one."""
    return tuple(
        as_still(session) if cell == MIDDLE else neighbour(session, _seed_of(seed, cell), spread, rows, num_ws)
        for cell in cells
    )


@dataclass(frozen=True, slots=True)
class GridAxis:
    """A direction along which a grid goes, and the amount added from the middle to the edge."""

    direction: str
    reach: float


def along_axes(session: Session, cells: Sequence[Cell], across: GridAxis, down: GridAxis) -> tuple[Session, ...]:
    """Return the session moved along two directions: to the right by `across`, upwards by `down`."""
    furthest = max((abs(number) for cell in cells for number in cell), default=0) or 1
    return tuple(
        _moved(_moved(as_still(session), across, column / furthest), down, -row / furthest) for row, column in cells
    )


def crossed(column: Session, row: Session, rows: RowRange, num_ws: int) -> Session:
    """Return a session that has the rows of a range from `row`, and the others and all else from `column`.

    This is a cell of StyleGAN's figure of style mixing (Karras et al. 2019, figure 3).
    """
    held = held_rows(rows, num_ws)
    shares = [1.0 if number in held else 0.0 for number in range(num_ws)]
    return combined_session(column, [(column, [1.0 - share for share in shares]), (row, shares)])


def child(
    parents: Sequence[Session],
    cell: Cell,
    seed: int,
    mutation: float,
    groups: Sequence[RowGroup],
    num_ws: int,
) -> Session:
    """Return a descendant of two or more sessions.

    Each group of rows comes from one parent or, as often, is a weighted mean of all; then every row goes part of the
    way to a random seed.

    Parameters
    ----------
    mutation
        Share of that way, 0..1.
    """
    draw = random.Random(f"child {seed} {cell}")
    weights = [[0.0] * num_ws for _ in parents]
    covered = [held_rows(group.rows, num_ws) for group in groups] or [range(num_ws)]
    for rows in covered:
        shares = _shares(draw, len(parents))
        for parent, share in zip(weights, shares, strict=True):
            for row in rows:
                parent[row] = share
    bred = combined_session(parents[0], list(zip(parents, weights, strict=True)))
    if mutation <= 0.0:
        return bred
    return neighbour(bred, draw.randrange(SEED_COUNT), mutation, RowRange(), num_ws)


def children(
    parents: Sequence[Session],
    cells: Sequence[Cell],
    seed: int,
    mutation: float,
    groups: Sequence[RowGroup],
    num_ws: int,
) -> tuple[Session, ...]:
    """Return a child for each cell, the same for the same cell in a larger grid."""
    return tuple(child(parents, cell, seed, mutation, groups, num_ws) for cell in cells)


def weighted_session(parts: Sequence[tuple[Session, float]], num_ws: int) -> Session:
    """Return the sum of several sessions' latents with weights that need not sum to one; they are scaled so.

    Raises
    ------
    RequestError
        If a weight is not finite, the weights sum to zero, or the sum is no recipe.
    """
    size = sum(abs(weight) for _, weight in parts)
    if not math.isfinite(size):
        raise RequestError("Weights of latents must be finite numbers, but one is not.")
    total = sum(weight for _, weight in parts)
    if abs(total) <= _NO_SUM * size:  # 0.1 + 0.2 - 0.3 is not quite zero
        raise RequestError("Weights of latents must not sum to zero: that is a direction, not a latent.")
    scale = 1.0 / total
    return combined_session(parts[0][0], [(session, [weight * scale] * num_ws) for session, weight in parts])


def _shares(draw: random.Random, count: int) -> list[float]:
    """Return the share of each parent in a group of rows: one parent's all, or random ones that sum to one."""
    if draw.random() < 0.5:
        chosen = draw.randrange(count)
        return [1.0 if number == chosen else 0.0 for number in range(count)]
    raw = [draw.expovariate(1.0) for _ in range(count)]
    return [value / sum(raw) for value in raw]


def _seed_of(seed: int, cell: Cell) -> int:
    return random.Random(f"neighbour {seed} {cell}").randrange(SEED_COUNT)


def _moved(session: Session, axis: GridAxis, share: float) -> Session:
    if share == 0.0 or not axis.direction:
        return session
    slider = session.slider(axis.direction)
    return session.with_slider(replace(slider, amount=slider.amount + share * axis.reach))


def _amounts(session: Session) -> tuple[tuple[str, float, RowRange | None], ...]:
    return tuple((item.direction, item.amount, item.rows) for item in session.sliders if item.amount != 0.0)


def _at_zero(sliders: tuple[Slider, ...]) -> tuple[Slider, ...]:
    zeroed = (replace(slider, amount=0.0) for slider in sliders)
    return tuple(slider for slider in zeroed if slider != Slider(slider.direction))
