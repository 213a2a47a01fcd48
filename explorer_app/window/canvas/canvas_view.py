"""Zoom and pan of the picture on the canvas, as pure numbers without Qt.

Lengths are in device px, so that 1:1 means one pixel of the picture on one pixel of the screen at any scale factor.
"""

from __future__ import annotations

from dataclasses import replace

from gpu_backend import dataclass

MIN_ZOOM = 0.05
MAX_ZOOM = 64.0
_KEPT_PX = 48.0
"""Smallest part of the picture that panning leaves visible."""


@dataclass(frozen=True, slots=True)
class CanvasView:
    """Zoom and pan.

    Attributes
    ----------
    zoom
        Device px per picture px; None fits the picture into the canvas.
    dx, dy
        Offset of the picture's centre from the canvas's centre, in device px.
    """

    zoom: float | None = None
    dx: float = 0.0
    dy: float = 0.0

    def scale(self, picture: tuple[int, int], canvas: tuple[float, float]) -> float:
        """Return the scale in device px per picture px."""
        if self.zoom is not None:
            return self.zoom
        return max(1e-6, min(canvas[0] / max(1, picture[0]), canvas[1] / max(1, picture[1])))

    def place(self, picture: tuple[int, int], canvas: tuple[float, float]) -> tuple[float, float, float, float]:
        """Return (left, top, width, height) of the picture on the canvas, in device px, rounded to whole pixels."""
        scale = self.scale(picture, canvas)
        width, height = picture[0] * scale, picture[1] * scale
        left, top = (canvas[0] - width) / 2 + self.dx, (canvas[1] - height) / 2 + self.dy
        return round(left), round(top), round(width), round(height)

    def zoomed(
        self, factor: float, at: tuple[float, float], picture: tuple[int, int], canvas: tuple[float, float]
    ) -> CanvasView:
        """Return the view scaled by `factor` around the point `at`, which stays over the same picture point."""
        old = self.scale(picture, canvas)
        new = max(MIN_ZOOM, min(MAX_ZOOM, old * factor))
        for whole in (1.0, 2.0, 4.0, 8.0):
            if abs(new / whole - 1) < 0.03 and abs(old / whole - 1) > 0.03:
                new = whole
        ratio = new / old
        from_centre_x, from_centre_y = at[0] - canvas[0] / 2, at[1] - canvas[1] / 2
        return CanvasView(
            new,
            from_centre_x - (from_centre_x - self.dx) * ratio,
            from_centre_y - (from_centre_y - self.dy) * ratio,
        ).kept(picture, canvas)

    def panned(self, dx: float, dy: float, picture: tuple[int, int], canvas: tuple[float, float]) -> CanvasView:
        """Return the view moved by device px. A fitted picture keeps its size and is no longer fitted."""
        return CanvasView(self.scale(picture, canvas), self.dx + dx, self.dy + dy).kept(picture, canvas)

    def kept(self, picture: tuple[int, int], canvas: tuple[float, float]) -> CanvasView:
        """Return the view moved as little as needed to keep an edge of the picture visible."""
        scale = self.scale(picture, canvas)
        reach_x = max(0.0, (canvas[0] + picture[0] * scale) / 2 - _KEPT_PX)
        reach_y = max(0.0, (canvas[1] + picture[1] * scale) / 2 - _KEPT_PX)
        return replace(
            self,
            dx=max(-reach_x, min(reach_x, self.dx)),
            dy=max(-reach_y, min(reach_y, self.dy)),
        )


def is_smooth(scale: float) -> bool:
    """Return whether a picture enlarged by this factor is interpolated: not at 1:1, and not at whole factors from 4."""
    whole = abs(scale - round(scale)) < 1e-3
    return not (whole and (round(scale) == 1 or scale >= 4))
