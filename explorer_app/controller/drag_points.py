"""Points of a drag: handles that are moved, and pins that stay."""

from __future__ import annotations

import math
from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class DragPoints:
    """The points that are set, in the order that they were set.

    Attributes
    ----------
    selected
        Index of the point that keys move and remove; None for none.
    """

    points: tuple[DragPoint, ...] = ()
    selected: int | None = None

    @property
    def handles(self) -> tuple[DragPoint, ...]:
        """The points that are not pins."""
        return tuple(point for point in self.points if not point.is_pin)

    @property
    def pins(self) -> tuple[DragPoint, ...]:
        """The points that stay."""
        return tuple(point for point in self.points if point.is_pin)

    @property
    def distance(self) -> float:
        """Pixels from where the optimiser holds the farthest handle to its target."""
        return max((handle.distance for handle in self.handles), default=0.0)

    @property
    def left(self) -> float:
        """Pixels that the content of the farthest handle has to go."""
        return max((handle.left for handle in self.handles), default=0.0)

    @property
    def problem(self) -> str:
        """A sentence about a handle that does not follow; empty if all do."""
        if any(point.is_lost for point in self.points):
            return LOST
        if any(point.is_covered for point in self.points):
            return COVERED
        return WEAK if any(point.is_weak for point in self.points) else ""

    def place_among_handles(self, index: int) -> int:
        """Return the place of a handle among the handles."""
        return sum(not point.is_pin for point in self.points[:index])

    def selecting(self, index: int | None) -> DragPoints:
        """Return the points with another selected, or none."""
        return DragPoints(self.points, index)

    def with_added(self, point: DragPoint) -> DragPoints:
        """Return the points with one more, which is selected."""
        return DragPoints((*self.points, point), len(self.points))

    def with_replaced(self, index: int, point: DragPoint) -> DragPoints:
        """Return the points with another one at an index."""
        return replace(self, points=(*self.points[:index], point, *self.points[index + 1 :]))

    def without_selected(self) -> DragPoints:
        """Return the points without the selected one; none is selected then."""
        if self.selected is None:
            return self
        return DragPoints((*self.points[: self.selected], *self.points[self.selected + 1 :]))

    def without_handles(self) -> DragPoints:
        """Return the pins; the same points, with the selection, if there is no handle."""
        pins = self.pins
        return self if pins == self.points else DragPoints(pins)

    def taken(self, index: int | None, place: Pixels, *, together: bool) -> DragPoints:
        """Return the points at the start of a stroke, with the handle that the hand holds selected.

        Parameters
        ----------
        index
            The point that is taken hold of; a pin becomes a handle. None sets a handle at `place`.
        together
            A new handle leaves the former ones in place.
        """
        points = tuple(
            replace(point, is_weak=False, is_lost=False, is_covered=False, found=None) for point in self.points
        )
        if index is None:
            former = DragPoints(points)
            return (former if together else former.without_handles()).with_added(DragPoint(place, place))
        return DragPoints(points, index).with_replaced(index, replace(points[index], is_pin=False))

    def followed(self, report: DragReport) -> DragPoints:
        """Return the points with the handles where a report has them; a lost one is at its content."""
        states = iter(report.handles)
        found = []
        for point in self.points:
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
        return DragPoints(tuple(found), self.selected)

    def given_up(self, least: float) -> DragPoints:
        """Return the points with those handles frozen that have at least so many pixels to go."""
        points = (replace(point, is_lost=True) if point.distance >= least else point for point in self.points)
        return DragPoints(tuple(points), self.selected)

    def at_content(self, ways: Mapping[int, float], least: float) -> DragPoints:
        """Return the points of a settled stroke with the handles where their content is, frozen if that did not follow.

        A handle is frozen if a third of its way is missing, and at least so many pixels.

        Parameters
        ----------
        ways
            Index of a handle -> pixels from where it was taken to its target; 0 for the others.
        """
        found = []
        for index, point in enumerate(self.points):
            if not point.is_pin and point.pulls and point.found is not None:
                is_lost = point.left >= max(least, ways.get(index, 0.0) * _MISSING)
                point = replace(point, place=point.found, is_lost=is_lost)
            found.append(point)
        return DragPoints(tuple(found), self.selected)

    def at_rest(self) -> DragPoints:
        """Return the points after a stroke: no handle has a way to go."""
        points = (replace(point, target=point.place, found=None) for point in self.points)
        return DragPoints(tuple(points), self.selected)
