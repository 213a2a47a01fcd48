"""Positions of the transform handles and the transforms that drags produce: pure numbers, without Qt.

The frame is the outline of the untransformed picture under the transform. With y down, a point p in picture widths from
the centre maps to [[k cos, k sin], [-k sin, k cos]] p + (x, y), as in `gpu_backend.Transform`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from explorer_app.session.session import MAX_SCALE, MIN_SCALE
from gpu_backend import Transform, dataclass

Part = Literal["place", "angle", "scale"]
Place = tuple[float, float]
"""x and y in px of the canvas."""

ANGLE_STEP = 15.0
"""Degrees between the angles that Ctrl snaps to."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in px."""

    left: float
    top: float
    width: float
    height: float

    def kept(self, place: Place) -> Place:
        """Return the nearest point inside the rectangle."""
        return (
            max(self.left, min(self.left + self.width, place[0])),
            max(self.top, min(self.top + self.height, place[1])),
        )


@dataclass(frozen=True, slots=True)
class Handles:
    """The transform frame and its handles.

    Attributes
    ----------
    middle
        Handle of the translation.
    corners
        Handles of the scale, clockwise from the top left corner of the untransformed frame.
    knob
        Handle of the rotation, above the untransformed frame.
    frame, stem
        The frame's true corners, which may be outside the visible area, and the point where the knob's line meets the
        frame.
    """

    middle: Place
    corners: tuple[Place, ...]
    knob: Place
    frame: tuple[Place, ...]
    stem: Place

    @classmethod
    def of(cls, transform: Transform, picture: Box, seen: Box, knob_px: float) -> Handles:
        """Return the handles of a transform.

        Parameters
        ----------
        picture
            Rectangle of the untransformed picture on the canvas.
        seen
            Area for the handles; a handle outside it is moved to its edge.
        knob_px
            Distance of the knob from the frame, in px.
        """
        left, top = -0.5, -0.5 * picture.height / picture.width
        right, bottom = -left, -top
        frame = tuple(
            _sent(transform, picture, at) for at in ((left, top), (right, top), (right, bottom), (left, bottom))
        )
        stem = _sent(transform, picture, (0.0, top))
        turn = math.radians(transform.degrees)
        knob = (stem[0] - knob_px * math.sin(turn), stem[1] - knob_px * math.cos(turn))
        return cls(
            seen.kept(_sent(transform, picture, (0.0, 0.0))),
            tuple(seen.kept(corner) for corner in frame),
            seen.kept(knob),
            frame,
            stem,
        )

    def at(self, place: Place, reach: float) -> Part | None:
        """Return the part with the nearest handle within `reach` px of a point; or None."""
        near: list[tuple[float, Part]] = [(math.dist(place, self.knob), "angle")]
        near += [(math.dist(place, corner), "scale") for corner in self.corners]
        near += [(math.dist(place, self.middle), "place")]
        distance, part = min(near, key=lambda found: found[0])
        return part if distance <= reach else None

    def holds(self, place: Place) -> bool:
        """Return whether a point is inside the frame."""
        sides = [
            (x1 - x0) * (place[1] - y0) - (y1 - y0) * (place[0] - x0)
            for (x0, y0), (x1, y1) in zip(self.frame, (*self.frame[1:], self.frame[0]), strict=True)
        ]
        return all(side >= 0 for side in sides) or all(side <= 0 for side in sides)


def dragged(start: Transform, part: Part, picture: Box, way: tuple[Place, Place], *, snaps: bool = False) -> Transform:
    """Return the transform that dragging a handle produces.

    Parameters
    ----------
    start
        The transform at the start of the drag.
    way
        Start and current position of the pointer.
    snaps
        Round the angle to steps of `ANGLE_STEP`; restrict other drags to the axis of the larger movement.
    """
    pressed, now = way
    if part == "angle":
        return _turned(start, picture, pressed, now, snaps=snaps)
    right, down = now[0] - pressed[0], now[1] - pressed[1]
    if snaps:
        right, down = (right, 0.0) if abs(right) >= abs(down) else (0.0, down)
    if part == "place":
        return replace(start, x=round(start.x + right / picture.width, 4), y=round(start.y + down / picture.width, 4))
    middle = _sent(start, picture, (0.0, 0.0))
    before, after = math.dist(pressed, middle), math.dist((pressed[0] + right, pressed[1] + down), middle)
    scale = start.scale * after / max(before, 1.0)
    return replace(start, scale=max(MIN_SCALE, min(MAX_SCALE, round(scale, 4))))


def without(transform: Transform, part: Part) -> Transform:
    """Return the transform with one part reset to the identity."""
    rest = Transform()
    match part:
        case "place":
            return replace(transform, x=rest.x, y=rest.y)
        case "angle":
            return replace(transform, degrees=rest.degrees)
        case "scale":
            return replace(transform, scale=rest.scale)


def _turned(start: Transform, picture: Box, pressed: Place, now: Place, *, snaps: bool) -> Transform:
    middle = _sent(start, picture, (0.0, 0.0))
    before, after = (math.atan2(at[1] - middle[1], at[0] - middle[0]) for at in (pressed, now))
    degrees = start.degrees - math.degrees(after - before)
    if snaps:
        degrees = ANGLE_STEP * round(degrees / ANGLE_STEP)
    turned = round(180.0 - (180.0 - degrees) % 360.0, 2)
    return replace(start, degrees=turned or 0.0)


def _sent(transform: Transform, picture: Box, place: Place) -> Place:
    """Map a point, in picture widths from the centre of the untransformed picture, to the canvas in px."""
    turn = math.radians(transform.degrees)
    cos, sin = transform.scale * math.cos(turn), transform.scale * math.sin(turn)
    x = cos * place[0] + sin * place[1] + transform.x
    y = -sin * place[0] + cos * place[1] + transform.y
    return (
        picture.left + picture.width * (0.5 + x),
        picture.top + picture.height / 2 + picture.width * y,
    )
