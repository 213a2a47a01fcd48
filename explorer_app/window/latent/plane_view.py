"""View of the seed plane: visible cells, and the mapping from positions to pixels. Pure geometry, no Qt."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from explorer_app.session.session import Position
from gpu_backend import dataclass

MIN_ROWS, MAX_ROWS = 1.5, 9.0
_ASPECT = 1.5
"""Approximate aspect ratio (width / height) of a cell."""

_INSET = 0.3
"""Distance between the ring and the edge at which the view starts to scroll, in cells."""


@dataclass(frozen=True, slots=True)
class PlaneView:
    """A view of the seed plane.

    A seed's cell extends half a unit to each side of its integer position.

    Attributes
    ----------
    width, height
        Size in px.
    left, top
        Position of the upper left corner, in units of the plane.
    rows
        Number of rows of cells that fit.
    """

    width: float
    height: float
    left: float = -1.5
    top: float = -1.5
    rows: float = 3.0

    @property
    def cell_height(self) -> float:
        """Height of a cell in px."""
        return self.height / self.rows

    @property
    def cell_width(self) -> float:
        """Width of a cell in px, chosen so that a whole number of columns fits."""
        return self.width / self.columns

    @property
    def columns(self) -> int:
        """Number of columns of cells that fit."""
        return max(1, round(self.width / (_ASPECT * self.cell_height)))

    def to_px(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel coordinates of a position."""
        return (x - self.left) * self.cell_width, (y - self.top) * self.cell_height

    def to_place(self, px_x: float, px_y: float) -> Position:
        """Return the position under a pixel."""
        return Position(self.left + px_x / self.cell_width, self.top + px_y / self.cell_height)

    def cells(self) -> Iterator[tuple[int, int]]:
        """Yield the integer positions of the visible cells, row by row."""
        first, last = self.to_place(0.0, 0.0), self.to_place(self.width, self.height)
        last_x, last_y = math.ceil(last.x - 0.5 - 1e-9), math.ceil(last.y - 0.5 - 1e-9)
        for row in range(math.floor(first.y + 0.5 + 1e-9), last_y + 1):
            for column in range(math.floor(first.x + 0.5 + 1e-9), last_x + 1):
                yield column, row

    def resized(self, width: float, height: float) -> PlaneView:
        """Return the view at another size in px, with the same upper left corner."""
        return replace(self, width=max(width, 1.0), height=max(height, 1.0))

    def panned(self, px_x: float, px_y: float) -> PlaneView:
        """Return the view with its content moved by a distance in px."""
        return replace(self, left=self.left - px_x / self.cell_width, top=self.top - px_y / self.cell_height)

    def zoomed(self, factor: float, px_x: float, px_y: float) -> PlaneView:
        """Return the view magnified around a pixel."""
        anchor = self.to_place(px_x, px_y)
        result = replace(self, rows=min(max(self.rows / factor, MIN_ROWS), MAX_ROWS))
        return replace(result, left=anchor.x - px_x / result.cell_width, top=anchor.y - px_y / result.cell_height)

    def following(self, position: Position) -> PlaneView:
        """Return the view moved as little as needed to show a position; a far jump centres its seed."""
        far_x = not -1.0 <= position.x - self.left <= self.columns + 1.0
        far_y = not -1.0 <= position.y - self.top <= self.rows + 1.0
        if far_x or far_y:
            return self.around(position)
        left = min(max(self.left, position.x + _INSET - self.columns), position.x - _INSET)
        top = min(max(self.top, position.y + _INSET - self.rows), position.y - _INSET)
        return self if (left, top) == (self.left, self.top) else replace(self, left=left, top=top)

    def around_neighbours(self, position: Position) -> PlaneView:
        """Return the view moved as little as needed to show the cell of a position and, with room, those around it."""
        x, y = math.floor(position.x + 0.5), math.floor(position.y + 0.5)
        inset_x, inset_y = min(1.5, self.columns / 2), min(1.5, self.rows / 2)
        left = min(max(self.left, x + inset_x - self.columns), x - inset_x)
        top = min(max(self.top, y + inset_y - self.rows), y - inset_y)
        return self if (left, top) == (self.left, self.top) else replace(self, left=left, top=top)

    def around(self, position: Position) -> PlaneView:
        """Return the view aligned to whole cells, with a position's seed near the centre."""
        return replace(
            self,
            left=math.floor(position.x + 0.5) - (self.columns - 1) // 2 - 0.5,
            top=math.floor(position.y + 0.5) - (int(self.rows) - 1) // 2 - 0.5,
        )
