"""The brush that paints masks: what point dragging freezes, where a blend shows; and what shows a mask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QImage, QPainter, QPen

from explorer_app.session.parameters import SetParameter
from explorer_app.session.picture_mask import inverted, painted
from explorer_app.window.look import ink, theme
from gpu_backend import MASK_SIDE, LazyModule, PictureMask

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

Mode = Literal["points", "freeze", "thaw"]

LEAST_SIZE, MOST_SIZE = 0.02, 0.6
"""Diameter of the brush, in widths of the picture."""

_STEP = 1.15
"""Factor of a notch of the wheel and of a key."""
_SCALE = 4
"""Pixels of the overlay a value of the mask, along a side."""
_STRIPE = 8
"""Width of a stripe of the overlay, in its pixels."""
FROZEN = "mask"
"""Path of the mask that freezes parts of the picture."""
_LABELS = {"freeze": "Freeze", "thaw": "Thaw"}
_BLEND_LABELS = {"freeze": "Paint blend", "thaw": "Erase blend"}


class MaskBrush(QObject):
    """Paints a mask of the session. A stroke is one gesture.

    Signals
    -------
    edited(edit, is_final)
        The mask.
    gesture_cancelled()
        The stroke was cancelled.
    changed()
        Mode, size, softness or target; or a stroke was cancelled.
    """

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.mode: Mode = "points"
        self.target = FROZEN
        """Path of the mask that is painted."""
        self.size = 0.14
        self.softness = 0.4
        self.mask: PictureMask | None = None
        """That of the session at the target."""
        self._before: PictureMask | None = None
        self._way: list[tuple[float, float]] = []
        """Of the stroke under way, in widths of the picture; empty without one."""
        self._overlay: tuple[object, QImage] | None = None
        """Cached picture of the mask, and what it was made from."""

    @property
    def is_painting(self) -> bool:
        """Whether a stroke is under way."""
        return bool(self._way)

    @property
    def is_for_blend(self) -> bool:
        """Whether the mask of a blend is painted."""
        return self.target != FROZEN

    def set_target(self, target: str, mask: PictureMask | None) -> None:
        """Paint another mask, which is `mask` now."""
        if target != self.target:
            self.cancel()
            self.target, self.mask = target, mask
            self.changed.emit()

    def set_mode(self, mode: Mode) -> None:
        """Choose between points, freezing and thawing."""
        if mode != self.mode:
            self.cancel()
            self.mode = mode
            self.changed.emit()

    def set_size(self, size: float) -> None:
        """Set the diameter, in widths of the picture."""
        self.size = min(max(size, LEAST_SIZE), MOST_SIZE)
        self.changed.emit()

    def resize_by(self, steps: float) -> None:
        """Enlarge by notches; negative ones shrink."""
        self.set_size(self.size * _STEP**steps)

    def set_softness(self, softness: float) -> None:
        """Set the share of the radius over which the brush fades."""
        self.softness = softness
        self.changed.emit()

    # -- strokes ----------------------------------------------------------------------------------------------------

    def begin(self, at: tuple[float, float]) -> None:
        """Begin a stroke at a point in widths of the picture."""
        self._before, self._way = self.mask, []
        self.paint(at)

    def paint(self, at: tuple[float, float]) -> None:
        """Continue the stroke."""
        last = self._way[-1:]
        self._way.append(at)
        self.mask = painted(self.mask, [*last, at], self.size / 2, self.softness, freezes=self.mode == "freeze")
        self.edited.emit(SetParameter(self.target, self.mask, self._label), False)

    def end(self) -> None:
        """End the stroke as one step."""
        if self._way:
            self._way = []
            self.edited.emit(SetParameter(self.target, self.mask, self._label), True)
            self.changed.emit()

    def cancel(self) -> bool:
        """Bring the mask back that was there before the stroke; return whether there was one."""
        if not self._way:
            return False
        self._way, self.mask = [], self._before
        self.gesture_cancelled.emit()
        self.changed.emit()
        return True

    def invert(self) -> None:
        """Invert the mask."""
        self.cancel()
        self.edited.emit(SetParameter(self.target, inverted(self.mask), "Invert mask"), True)

    def clear(self) -> None:
        """Free everything."""
        self.cancel()
        if self.mask is not None:
            self.edited.emit(SetParameter(self.target, None, "Clear mask"), True)

    @property
    def _label(self) -> str:
        return (_BLEND_LABELS if self.is_for_blend else _LABELS)[self.mode]

    # -- painting ---------------------------------------------------------------------------------------------------

    def paint_overlay(self, painter: QPainter, picture: QRectF) -> None:
        """Paint the mask over the picture.

        What is frozen has stripes in a light and a coloured ink. Of a blend, which the picture itself shows, the mask
        has an outline.
        """
        if self.mask is not None:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawImage(picture, self._overlay_image(self.mask))

    def paint_outline(self, painter: QPainter, at: QPointF, picture: QRectF) -> None:
        """Paint the brush's circle, and where its hard part ends."""
        radius = self.size / 2 * picture.width()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for size, width in ((radius, 2.0), (radius * (1.0 - self.softness), 1.0)):
            for pen in (QPen(ink.veil(0.7), theme.px(width + 2)), QPen(ink.light(), theme.px(width))):
                painter.setPen(pen)
                painter.drawEllipse(at, size, size)

    def _overlay_image(self, mask: PictureMask) -> QImage:
        tokens = theme.current()
        key = mask, tokens.name, self.is_for_blend
        if self._overlay is None or self._overlay[0] != key:
            if self.is_for_blend:
                self._overlay = key, _outline(mask)
                return self._overlay[1]
            side = MASK_SIDE * _SCALE
            value = np.repeat(np.repeat(mask.shares, _SCALE, 0), _SCALE, 1)
            place = np.arange(side)
            is_light = ((place[:, None] + place[None, :]) // _STRIPE) % 2 == 0
            tint = theme.alpha(tokens.sources[1], 1.0)
            colour = np.where(is_light[..., None], (255, 255, 255), (tint.blue(), tint.green(), tint.red()))
            alpha = value * np.where(is_light, 0.38, 0.55)
            pixels = np.empty((side, side, 4), np.uint8)
            pixels[..., :3] = colour * alpha[..., None]
            pixels[..., 3] = np.rint(alpha * 255)
            image = QImage(pixels.tobytes(), side, side, 4 * side, QImage.Format.Format_ARGB32_Premultiplied)
            self._overlay = key, image.copy()  # the copy owns its bytes
        return self._overlay[1]


def _outline(mask: PictureMask) -> QImage:
    """Return the line around what a mask covers by more than half: light, with dark on both sides."""
    side = MASK_SIDE * _SCALE
    # Interpolated, so that the line is not made of the mask's squares.
    place = np.clip((np.arange(side) + 0.5) / _SCALE - 0.5, 0, MASK_SIDE - 1)
    low = place.astype(np.int64)
    high, share = np.minimum(low + 1, MASK_SIDE - 1), (place - low).astype(np.float32)
    rows = mask.shares[low] * (1 - share)[:, None] + mask.shares[high] * share[:, None]
    value = rows[:, low] * (1 - share) + rows[:, high] * share
    covered = np.pad(value > 0.5, 1, mode="edge")
    middle = covered[1:-1, 1:-1]
    edge = (covered[:-2, 1:-1] != middle) | (covered[1:-1, :-2] != middle)
    around = np.pad(edge, 1)
    wide = around[:-2, 1:-1] | around[2:, 1:-1] | around[1:-1, :-2] | around[1:-1, 2:] | edge
    pixels = np.zeros((side, side, 4), np.uint8)
    pixels[wide, 3] = 150
    pixels[edge] = 255
    image = QImage(pixels.tobytes(), side, side, 4 * side, QImage.Format.Format_ARGB32_Premultiplied)
    return image.copy()
