"""Decibels to shades, places to waves, pixels to numbers."""

from __future__ import annotations

import numpy as np
import pytest

from explorer_app.window.layers.spectrum_scale import ends_of, picture_values, shades, wave_at


@pytest.mark.parametrize(
    ("levels", "ends"),
    [
        ((-93.0, -12.0), (-100.0, -10.0)),
        ((-35.0, -32.0), (-70.0, -30.0)),
        ((-160.0, 3.0), (-90.0, 10.0)),
        ((-160.0, -160.0), (-200.0, -160.0)),
    ],
)
def test_the_shades_span_what_there_is_in_whole_steps(levels: tuple[float, float], ends: tuple[float, float]) -> None:
    assert ends_of(np.array([[levels[0], levels[0]], [levels[0], levels[1]]], np.float32)) == ends


def test_shades_go_from_the_weakest_wave_to_the_strongest() -> None:
    found = shades(np.array([[-200.0, -80.0, -40.0, 0.0, 5.0]], np.float32), (-80.0, 0.0))
    assert found.tolist() == [[0, 0, 127, 255, 255]]
    assert not found.flags.writeable


def test_the_middle_is_the_wave_that_does_not_change_and_the_border_is_half_a_cycle_a_pixel() -> None:
    assert wave_at(4, 4, (8, 8)) == (0.0, 0.0)
    assert wave_at(0, 7, (8, 8)) == (-0.5, 0.375)
    assert wave_at(2, 2, (5, 5)) == (0.0, 0.0)


def test_a_picture_counts_as_grey_from_black_to_white() -> None:
    pixels = np.array([[[0, 0, 0, 255], [255, 255, 255, 255], [0, 255, 255, 255]]], np.uint8)
    assert picture_values(pixels).tolist() == [pytest.approx([-1.0, 1.0, 1 / 3])]
    assert picture_values(pixels).dtype == np.float32
