"""Zoom and pan as numbers."""

from __future__ import annotations

import pytest

from explorer_app.window.canvas.canvas_view import MAX_ZOOM, MIN_ZOOM, CanvasView, is_smooth

PICTURE = (256, 256)
CANVAS = (800.0, 600.0)


def test_a_fitted_picture_touches_the_shorter_side_and_is_centred() -> None:
    assert CanvasView().place(PICTURE, CANVAS) == (100, 0, 600, 600)


def test_one_to_one_shows_the_pictures_own_size() -> None:
    assert CanvasView(1.0).place(PICTURE, CANVAS) == (272, 172, 256, 256)


@pytest.mark.parametrize("at", [(400.0, 300.0), (150.0, 40.0), (700.0, 580.0)])
@pytest.mark.parametrize("factor", [1.2, 0.7, 3.3])
def test_the_point_under_the_pointer_stays(at: tuple[float, float], factor: float) -> None:
    before = CanvasView()
    left, top, width, height = before.place(PICTURE, CANVAS)
    point = ((at[0] - left) / width, (at[1] - top) / height)

    left, top, width, height = before.zoomed(factor, at, PICTURE, CANVAS).place(PICTURE, CANVAS)

    assert left + point[0] * width == pytest.approx(at[0], abs=1)
    assert top + point[1] * height == pytest.approx(at[1], abs=1)


def test_zoom_has_ends() -> None:
    view = CanvasView()
    for _ in range(60):
        view = view.zoomed(1.5, (400, 300), PICTURE, CANVAS)
    assert view.zoom == MAX_ZOOM
    for _ in range(120):
        view = view.zoomed(1 / 1.5, (400, 300), PICTURE, CANVAS)
    assert view.zoom == MIN_ZOOM


def test_zoom_rests_on_one_to_one_when_it_comes_near() -> None:
    assert CanvasView(1.19).zoomed(1 / 1.2, (400, 300), PICTURE, CANVAS).zoom == 1.0


def test_panning_never_loses_the_picture() -> None:
    left, top, width, height = CanvasView().panned(1e6, -1e6, PICTURE, CANVAS).place(PICTURE, CANVAS)
    assert 0 < CANVAS[0] - left < width
    assert 0 < top + height < height


@pytest.mark.parametrize(
    ("scale", "smooth"), [(1.0, False), (2.0, True), (2.7, True), (4.0, False), (4.3, True), (8.0, False), (0.5, True)]
)
def test_only_whole_factors_show_the_pixels(scale: float, smooth: bool) -> None:
    assert is_smooth(scale) is smooth
