"""Where the docks are at first: a pure function of the workspace and of the room that there is.

Sizes are in px at the usual font size. The picture gets at least half of the width in Explore; where there is too
little room for two columns, the panels share one as tabs, and those that matter least there wait in the View menu.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

WorkspaceName = Literal["explore", "measure"]

WORKSPACES: tuple[WorkspaceName, ...] = ("explore", "measure")

Area = Literal["left", "right", "bottom"]

HOMES: dict[str, Area] = {
    "latent": "left",
    "sliders": "left",
    "mix": "left",
    "performance": "right",
    "model": "right",
    "layers": "right",
    "history": "bottom",
}
"""Dock -> on which side it appears in a workspace that does not show it at first."""

_TWO_COLUMNS = 1200
"""From this width on there are columns on both sides."""

_LOW = 770
"""Below this height, docks that do not fit under each other share a place as tabs."""

_BETWEEN = 24
"""What margins and gaps take of the width."""

_HISTORY = 113

_LEFT = 304
"""The least width of the left column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One side of the canvas.

    Attributes
    ----------
    groups
        Keys of docks, from top to bottom; those of one group share a place as tabs, the first in front.
    size
        Width of a column at the side, height of the one at the bottom.
    grows
        Key of the dock that takes the height that is left.
    """

    area: Area
    groups: tuple[tuple[str, ...], ...]
    size: int
    grows: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """All sides."""

    columns: tuple[Column, ...]

    @property
    def structure(self) -> tuple[tuple[Area, tuple[tuple[str, ...], ...]], ...]:
        """What is where, sizes aside."""
        return tuple((column.area, column.groups) for column in self.columns)

    @property
    def keys(self) -> Iterator[str]:
        """All docks that are shown."""
        return (key for column in self.columns for group in column.groups for key in group)


def first_layout(workspace: WorkspaceName, width: float, height: float, least_left: float = _LEFT) -> Layout:
    """Return where the docks of a workspace are at first, in so much room.

    `least_left` is the width that the panels at the left need, which a wide font makes larger.
    """
    if workspace == "measure":
        return Layout(_measure(width, height))
    return Layout(_explore(width, height, max(_LEFT, round(least_left))))


def _explore(width: float, height: float, least_left: int) -> tuple[Column, ...]:
    history = Column("bottom", (("history",),), _HISTORY)
    is_low = height < _LOW
    if width < _TWO_COLUMNS:
        groups = (
            (("latent", "sliders", "mix", "performance"),)
            if is_low
            else (("latent",), ("sliders", "mix", "performance"))
        )
        return Column("left", groups, least_left, "sliders" if not is_low else "latent"), history
    both = width / 2 - _BETWEEN
    left = round(max(least_left, min(344, 0.445 * both)))
    right = round(min(428, both - left))
    if is_low:
        return (
            Column("left", (("latent",), ("sliders", "mix")), left, "sliders"),
            Column("right", (("performance", "model"),), right, "performance"),
            history,
        )
    return (
        Column("left", (("latent",), ("sliders",), ("mix",)), left, "sliders"),
        Column("right", (("performance",), ("model",)), right, "performance"),
        history,
    )


def _measure(width: float, height: float) -> tuple[Column, ...]:
    if width < _TWO_COLUMNS:
        size = round(max(0.5 * width, 430))
        return (Column("right", (("performance", "layers", "model"),), size, "performance"),)
    is_low = height < _LOW
    groups = (("layers", "model"),) if is_low else (("layers",), ("model",))
    return (
        Column("left", groups, 344 if width >= 1400 else 330, "layers"),
        Column("right", (("performance",),), round(0.45 * width), "performance"),
    )
