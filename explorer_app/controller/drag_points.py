"""Points of a drag: handles that are moved, and pins that stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpu_backend import dataclass

if TYPE_CHECKING:
    from gpu_backend import DragReport

Pixels = tuple[float, float]
"""x and y in pixels of the full picture; whole numbers are centres of pixels."""

WEAK = "The picture has no texture in this direction, so there is nothing to track."
LOST = "This model has no such picture: the handle is frozen until the next stroke."
COVERED = "A handle is on another picture of the blend than the one that was pressed, so it does not pull."


@dataclass(frozen=True, slots=True)
class DragPoint:
    """A handle, or a pin that stays where it is.

    Attributes
    ----------
    place
        Where the content is that was taken hold of.
    target
        Where it is to be; of a pin, `place`.
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

    @property
    def pulls(self) -> bool:
        """Whether the picture can follow it."""
        return not (self.is_weak or self.is_lost or self.is_covered)

    @property
    def distance(self) -> float:
        """Pixels from the place to the target; 0 if it does not pull."""
        return math.dist(self.place, self.target) if self.pulls else 0.0


def followed(points: Sequence[DragPoint], report: DragReport) -> tuple[DragPoint, ...]:
    """Return the points with the handles where a report has them, in the same order; a lost one is at its content."""
    states = iter(report.handles)
    found = []
    for point in points:
        state = None if point.is_pin else next(states, None)
        if state is not None:
            place = state.tracked if state.is_lost else state.position
            point = replace(
                point, place=place, is_weak=state.is_weak, is_lost=state.is_lost, is_covered=state.is_covered
            )
        found.append(point)
    return tuple(found)


def given_up(points: Sequence[DragPoint], least: float) -> tuple[DragPoint, ...]:
    """Return the points with those handles frozen that have at least so many pixels to go."""
    return tuple(replace(point, is_lost=True) if point.distance >= least else point for point in points)


def problem_of(points: Sequence[DragPoint]) -> str:
    """Return a sentence about a handle that does not follow; empty if all do."""
    if any(point.is_lost for point in points):
        return LOST
    if any(point.is_covered for point in points):
        return COVERED
    return WEAK if any(point.is_weak for point in points) else ""
