"""Points of a drag: handles that are moved, and pins that stay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpu_backend import dataclass

if TYPE_CHECKING:
    from gpu_backend import DragReport

Pixels = tuple[float, float]
"""x and y in pixels of the full picture; whole numbers are centres of pixels."""

WEAK = "The picture has no texture in this direction, so there is nothing to track"
LOST = "This model has no such picture: the handle is frozen"
COVERED = "A handle is on another picture of the blend than the one that was pressed, so it does not pull"

_MISSING = 1 / 3
"""Share of a handle's way that its content may stay behind."""


@dataclass(frozen=True, slots=True)
class DragPoint:
    """A handle, or a pin that stays where it is.

    Attributes
    ----------
    place
        Where the optimiser holds the content that was taken hold of.
    target
        Where it is to be; of a pin, `place`.
    found
        Where tracking through the pictures found the content last; None before the first look.
    is_weak
        The picture has too little texture along the way; the handle does not pull.
    is_lost
        The content did not come along, or comes no nearer; the handle is frozen until the next stroke.
    is_covered
        The content is that of another picture of a blend than the one that is dragged; the handle does not pull.
    """

    place: Pixels
    target: Pixels
    is_pin: bool = False
    is_weak: bool = False
    is_lost: bool = False
    is_covered: bool = False
    found: Pixels | None = None

    @property
    def pulls(self) -> bool:
        """Whether the picture can follow it."""
        return not (self.is_weak or self.is_lost or self.is_covered)

    @property
    def distance(self) -> float:
        """Pixels from the place to the target; 0 if it does not pull."""
        return math.dist(self.place, self.target) if self.pulls else 0.0

    @property
    def left(self) -> float:
        """Pixels that the content has to go; 0 if the handle does not pull.

        The optimiser may be at the target without the content, which tracking sees.
        """
        return max(self.distance, math.dist(self.content, self.target)) if self.pulls else 0.0

    @property
    def content(self) -> Pixels:
        """Where the content is, as far as it is known."""
        return self.place if self.found is None or not self.pulls else self.found


def followed(points: Sequence[DragPoint], report: DragReport) -> tuple[DragPoint, ...]:
    """Return the points with the handles where a report has them, in the same order; a lost one is at its content."""
    states = iter(report.handles)
    found = []
    for point in points:
        state = None if point.is_pin else next(states, None)
        if state is not None:
            place = state.tracked if state.is_lost else state.position
            point = replace(
                point,
                place=place,
                is_weak=state.is_weak,
                is_lost=state.is_lost,
                is_covered=state.is_covered,
                found=state.tracked,
            )
        found.append(point)
    return tuple(found)


def given_up(points: Sequence[DragPoint], least: float) -> tuple[DragPoint, ...]:
    """Return the points with those handles frozen that have at least so many pixels to go."""
    return tuple(replace(point, is_lost=True) if point.distance >= least else point for point in points)


def at_content(points: Sequence[DragPoint], ways: Mapping[int, float], least: float) -> tuple[DragPoint, ...]:
    """Return the points of a settled stroke with the handles where their content is, frozen if that did not follow.

    A handle is frozen if a third of its way is missing, and at least so many pixels.

    Parameters
    ----------
    ways
        Index of a handle -> pixels from where it was taken to its target; 0 for the others.
    """
    found = []
    for index, point in enumerate(points):
        if not point.is_pin and point.pulls and point.found is not None:
            is_lost = point.left >= max(least, ways.get(index, 0.0) * _MISSING)
            point = replace(point, place=point.found, is_lost=is_lost)
        found.append(point)
    return tuple(found)


def problem_of(points: Sequence[DragPoint]) -> str:
    """Return a sentence about a handle that does not follow; empty if all do."""
    if any(point.is_lost for point in points):
        return LOST
    if any(point.is_covered for point in points):
        return COVERED
    return WEAK if any(point.is_weak for point in points) else ""
