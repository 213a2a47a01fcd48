"""First layout of the docks: a pure function of the workspace and the available size.

Sizes are in px at the usual font size. In Explore the picture gets at least half of the width. A window too narrow for
two columns tabs the panels in one column, and leaves the least important ones in the View menu.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from gpu_backend import dataclass

WorkspaceName = Literal["explore", "animate", "measure"]

WORKSPACES: tuple[WorkspaceName, ...] = ("explore", "animate", "measure")

Area = Literal["left", "right", "bottom"]

HOMES: dict[str, Area] = {
    "latent": "left",
    "sliders": "left",
    "mix": "left",
    "library": "right",
    "performance": "right",
    "model": "right",
    "layers": "right",
    "edits": "right",
    "history": "bottom",
    "timeline": "bottom",
    "pad": "right",
    "controllers": "right",
}
"""Dock key -> the side where it appears in a workspace whose first layout omits it."""

_TWO_COLUMNS = 1200
"""Smallest width with columns on both sides, in px."""

_LOW = 770
"""Below this height in px, docks that cannot be stacked are tabbed."""

_TALL = 900
"""From this height in px on, the controllers are below the performance panel; in lower windows they are tabbed."""

_BETWEEN = 24
"""Total width of margins and gaps, in px."""

_HISTORY = 113

_TIMELINE, _LOW_TIMELINE, _LOWEST_TIMELINE = 320, 236, 140
"""Height of the timeline, its height in a low window and in a very low one, in px."""

_HEIGHTS = {"history": _HISTORY, "timeline": _LOW_TIMELINE}
"""Height in px of a dock that is alone at the bottom, since the user hid the others there."""

_LOWEST = 420
"""Below this height in px, the timeline leaves room for a picture."""

_LEFT = 304
"""Smallest width of the left column, in px."""


@dataclass(frozen=True, slots=True)
class Column:
    """One side of the canvas.

    Attributes
    ----------
    groups
        Keys of docks, from top to bottom; the docks of one group are tabbed, the first in front.
    size
        Width of a side column, or height of the bottom one, in px.
    grows
        Key of the dock that takes the remaining height.
    """

    area: Area
    groups: tuple[tuple[str, ...], ...]
    size: int
    grows: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """All sides.

    Attributes
    ----------
    has_wide_bottom
        Whether the bottom column lies below the left one, too: time wants width. The only column of a narrow window has
        many tabs, and keeps its height.
    """

    columns: tuple[Column, ...]
    has_wide_bottom: bool = False

    @property
    def structure(self) -> tuple[tuple[Area, tuple[tuple[str, ...], ...]], ...]:
        """The placement of the docks without sizes, for comparison."""
        return tuple((column.area, column.groups) for column in self.columns)

    @property
    def keys(self) -> Iterator[str]:
        """Keys of all docks in the layout."""
        return (key for column in self.columns for group in column.groups for key in group)


def first_layout(workspace: WorkspaceName, width: float, height: float, least_left: float = _LEFT) -> Layout:
    """Return the first layout of a workspace for a width and height.

    `least_left` is the width that the left panels need; a wide font increases it.
    """
    if workspace == "measure":
        return Layout(_measure(width, height))
    if workspace == "animate":
        columns = _animate(width, height, max(_LEFT, round(least_left)))
        return Layout(columns, has_wide_bottom=width >= _TWO_COLUMNS)
    return Layout(_explore(width, height, max(_LEFT, round(least_left))))


def with_toggled(layout: Layout, shown: Mapping[str, bool]) -> Layout:
    """Return a layout without the docks that a user hid, and with those that a user showed.

    Parameters
    ----------
    shown
        Key of a dock -> whether it is shown. A dock that the layout lacks becomes the last tab of its side; at the
        bottom, it has a place of its own.
    """
    columns, there = list(layout.columns), set(layout.keys)
    for key in (key for key in HOMES if shown.get(key) and key not in there):
        _add(key, columns)
    kept = (_without_hidden(column, shown) for column in columns)
    return replace(layout, columns=tuple(column for column in kept if column.groups))


def _add(key: str, columns: list[Column]) -> None:
    home = HOMES[key]
    place = next((place for place, column in enumerate(columns) if column.area == home), None)
    if place is None and home != "bottom":  # a narrow window has no room for one more column
        place = next((place for place, column in reversed(list(enumerate(columns))) if column.area != "bottom"), None)
    if place is None:
        columns.append(Column(home, ((key,),), _HEIGHTS.get(key, _LEFT), key))
        return
    column = columns[place]
    front, *below = column.groups
    groups = (front, *below, (key,)) if home == "bottom" else ((*front, key), *below)
    columns[place] = replace(column, groups=groups)


def _without_hidden(column: Column, shown: Mapping[str, bool]) -> Column:
    left = (tuple(key for key in group if shown.get(key, True)) for group in column.groups)
    groups = tuple(group for group in left if group)
    is_other = column.area == "bottom" and groups and groups[0][0] != column.groups[0][0]
    return replace(column, groups=groups, size=_HEIGHTS[groups[0][0]] if is_other else column.size)


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


def _animate(width: float, height: float, least_left: int) -> tuple[Column, ...]:
    is_low = height < _LOW
    size = _LOWEST_TIMELINE if height < _LOWEST else _LOW_TIMELINE if is_low else _TIMELINE
    timeline = Column("bottom", (("timeline", "history"),), size)
    if width < _TWO_COLUMNS:
        groups = (("library", "sliders", "pad", "latent", "mix", "controllers", "performance"),)
        return Column("left", groups, least_left, "library"), timeline
    both = width / 2 - _BETWEEN
    left = round(max(least_left, min(344, 0.445 * both)))
    right = round(min(428, both - left))
    beside: tuple[tuple[str, ...], ...] = (("performance", "model"), ("controllers",))
    if height < _TALL:
        beside = (("controllers", "performance", "model"),)
    return (
        Column("left", (("library", "sliders", "pad", "latent", "mix"),), left, "library"),
        Column("right", beside, right, "controllers"),
        timeline,
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
