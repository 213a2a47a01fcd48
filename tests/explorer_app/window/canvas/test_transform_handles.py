"""Handles of a transform: where they lie, and what dragging them does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from explorer_app.window.canvas.transform_handles import Box, Handles, Part, dragged, without
from gpu_backend import Transform

PICTURE = Box(100.0, 50.0, 400.0, 400.0)
WIDE = Box(-1e6, -1e6, 2e6, 2e6)
MIDDLE = (300.0, 250.0)
TURNED = Transform(0.1, -0.2, 30.0, 0.5)


def handles(transform: Transform, seen: Box = WIDE) -> Handles:
    return Handles.of(transform, PICTURE, seen, 26.0)


def test_at_rest_the_frame_is_the_picture_and_the_knob_stands_above_it() -> None:
    rest = handles(Transform())
    assert rest.corners == rest.frame == ((100, 50), (500, 50), (500, 450), (100, 450))
    assert rest.middle == MIDDLE
    assert (rest.stem, rest.knob) == ((300, 50), (300, 24))


def test_the_frame_goes_where_the_network_sends_the_picture() -> None:
    # The matrix of the request takes a place in the new picture to the one before, in widths from the middle.
    before = np.linalg.inv(np.array(TURNED.matrix).reshape(3, 3))
    for corner, place in zip(handles(TURNED).frame, ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)), strict=True):
        x, y, _ = before @ (*place, 1.0)
        assert corner == pytest.approx((MIDDLE[0] + 400 * x, MIDDLE[1] + 400 * y))


def test_the_knob_stays_above_the_turned_frame() -> None:
    turned = handles(Transform(degrees=90.0))
    assert turned.stem == pytest.approx((100, 250)), "counterclockwise: what was above is left"
    assert turned.knob == pytest.approx((74, 250))


def test_a_handle_that_would_lie_outside_waits_at_the_edge() -> None:
    seen = Box(10.0, 10.0, 580.0, 480.0)
    large = handles(Transform(scale=3.0), seen)
    assert large.corners == ((10, 10), (590, 10), (590, 490), (10, 490))
    assert large.knob == (300, 10)
    assert large.frame[0] == pytest.approx((-300, -350))


def test_the_nearest_handle_within_reach_is_taken() -> None:
    rest = handles(Transform())
    assert rest.at((302, 27), 10) == "angle"
    assert rest.at((495, 448), 10) == "scale"
    assert rest.at((296, 255), 10) == "place"
    assert rest.at((200, 200), 10) is None


def test_inside_is_inside_the_turned_frame() -> None:
    small = handles(Transform(degrees=45.0, scale=0.5))
    assert small.holds(MIDDLE)
    assert small.holds((300, 250 - 130))
    assert not small.holds((300 + 90, 250 - 90)), "inside at rest, outside when turned"


def test_dragging_inside_moves_by_widths_of_the_picture() -> None:
    assert dragged(TURNED, "place", PICTURE, ((200, 200), (240, 180))) == Transform(0.2, -0.25, 30.0, 0.5)


def test_a_corner_follows_the_pointer() -> None:
    pressed = handles(Transform()).corners[2]
    assert dragged(Transform(), "scale", PICTURE, (pressed, (400, 350))).scale == 0.5
    grown = dragged(TURNED, "scale", PICTURE, (handles(TURNED).corners[0], (0.0, 0.0)))
    assert math.dist(handles(grown).corners[0], handles(grown).middle) == pytest.approx(
        math.dist((0.0, 0.0), handles(TURNED).middle), abs=0.05
    )


def test_the_scale_stays_where_a_session_may_have_it() -> None:
    assert dragged(Transform(), "scale", PICTURE, ((500, 450), MIDDLE)).scale == 1e-3
    assert dragged(Transform(scale=900.0), "scale", PICTURE, ((301, 250), (400, 250))).scale == 1e3


@pytest.mark.parametrize(
    ("start", "to", "degrees"),
    [(0.0, (100, 250), 90.0), (0.0, (500, 250), -90.0), (0.0, (300, 450), 180.0), (170.0, (200, 50), -163.43)],
)
def test_the_knob_turns_counterclockwise_and_the_angle_stays_within_half_a_turn(
    start: float, to: tuple[float, float], degrees: float
) -> None:
    turned = dragged(Transform(degrees=start), "angle", PICTURE, ((300, 50), to))
    assert turned.degrees == pytest.approx(degrees)


def test_snapping_takes_the_angle_to_fifteen_degrees() -> None:
    assert dragged(Transform(degrees=4.0), "angle", PICTURE, ((300, 50), (200, 50)), snaps=True).degrees == 30.0
    assert dragged(Transform(degrees=4.0), "angle", PICTURE, ((300, 50), (301, 50)), snaps=True).degrees == 0.0


def test_shift_keeps_other_drags_to_an_axis() -> None:
    assert dragged(Transform(), "place", PICTURE, ((200, 200), (240, 180)), snaps=True) == Transform(x=0.1)
    assert dragged(Transform(), "place", PICTURE, ((200, 200), (210, 160)), snaps=True) == Transform(y=-0.1)
    free = dragged(Transform(), "scale", PICTURE, ((500, 450), (450, 445)), snaps=True)
    assert free == dragged(Transform(), "scale", PICTURE, ((500, 450), (450, 450)))


def test_a_handle_that_is_not_moved_changes_nothing() -> None:
    parts: tuple[Part, ...] = ("place", "angle", "scale")
    for part in parts:
        assert dragged(TURNED, part, PICTURE, ((321, 123), (321, 123))) == TURNED


def test_each_part_goes_back_alone() -> None:
    assert without(TURNED, "place") == Transform(0.0, 0.0, 30.0, 0.5)
    assert without(TURNED, "angle") == Transform(0.1, -0.2, 0.0, 0.5)
    assert without(TURNED, "scale") == Transform(0.1, -0.2, 30.0, 1.0)
