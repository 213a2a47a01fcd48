"""Placement of the picture in its widget: size, zoom, pan and margins."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Signal
from PySide6.QtWidgets import QWidget

from explorer_app.window.canvas.canvas_view import CanvasView
from explorer_app.window.look import theme
from gpu_backend import Frame

EDGE_PX = 14
"""Margin around a fitted picture, in px."""
CAPTION_PX = 34
"""Height of the caption below the picture, in px."""


class PictureStage(QWidget):
    """A widget that places one picture. Overlays take their geometry from it.

    Attributes
    ----------
    view
        Zoom and pan.
    is_ready_to_pan
        Whether a left-drag pans: Space is held.
    is_alone
        Whether the screen shows nothing but the picture: no buttons either.
    drop_text
        Effect of dropping the dragged file; empty while no file is dragged over the widget.

    Signals
    -------
    resized()
        The widget's size changed. A signal, because an event filter would run for every paint event.
    """

    resized = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = CanvasView()
        self.is_ready_to_pan = False
        self.is_alone = False
        self.drop_text = ""
        self._frame: Frame | None = None
        self._size: tuple[int, int] | None = None
        """Width and height of the full picture in px; None before the first picture."""
        self._placed: tuple[object, QRectF] = None, QRectF()
        """Cached rectangle of the picture with the values it depends on; every paint event needs it."""

    @property
    def frame(self) -> Frame | None:
        """The shown frame. It keeps the bytes of the image alive."""
        return self._frame

    @property
    def room_above(self) -> int:
        """Height to keep free above a fitted picture in addition to the margin, in px."""
        return 0

    @property
    def room_below(self) -> int:
        """Height to keep free below a fitted picture, in px."""
        return theme.px(CAPTION_PX)

    def caption_rect(self) -> QRectF:
        """Return the rectangle of the caption, in widget coordinates."""
        line = QRectF(self.rect()).adjusted(theme.px(12), 0, -theme.px(12), 0)
        line.setTop(line.bottom() - theme.px(CAPTION_PX - 4))
        return line

    def fit(self) -> None:
        """Fit the whole picture into the widget."""
        self._look(CanvasView())

    def one_to_one(self) -> None:
        """Show one picture pixel per screen pixel."""
        self._look(CanvasView(1.0))

    def zoom_by(self, factor: float) -> None:
        """Zoom around the centre."""
        width, height = self._stage_size()
        self._look(self.view.zoomed(factor, (width / 2, height / 2), self.picture_size, (width, height)))

    @property
    def shown_size(self) -> tuple[tuple[int, int], float]:
        """Width and height of the shown picture in its own pixels, and its scale in device px per pixel.

        A draft counts with the size of the full picture; a layer has its own size.
        """
        size, scale = self.picture_size, self.view.scale(self.picture_size, self._stage_size())
        if self._frame is not None and self._frame.tap is not None:
            return (self._frame.width, self._frame.height), scale * size[0] / self._frame.width
        return size, scale

    @property
    def picture_size(self) -> tuple[int, int]:
        """Width and height of the full picture in its own pixels."""
        return self._size or (1, 1)

    def picture_rect(self) -> QRectF:
        """Return the rectangle of the picture, in widget coordinates."""
        ratio, size = self.devicePixelRatioF(), self.size()
        key = (self.view, self._size, size, ratio, theme.px(EDGE_PX), self.room_above, self.room_below)
        if self._placed[0] != key:
            stage = self._stage()
            left, top, width, height = self.view.place(self.picture_size, self._stage_size())
            place = QRectF((stage.x() + left) / ratio, (stage.y() + top) / ratio, width / ratio, height / ratio)
            self._placed = key, place
        return QRectF(self._placed[1])

    def picture_area(self) -> QRectF:
        """Return the area for a fitted picture, in widget coordinates."""
        edge = theme.px(EDGE_PX)
        return QRectF(self.rect()).adjusted(edge, edge + self.room_above, -edge, -self.room_below)

    def _stage(self) -> QRectF:
        """Return `picture_area` in device px."""
        ratio = self.devicePixelRatioF()
        area = self.picture_area()
        return QRectF(
            round(area.x() * ratio),
            round(area.y() * ratio),
            max(1.0, area.width() * ratio),
            max(1.0, area.height() * ratio),
        )

    def _stage_size(self) -> tuple[float, float]:
        stage = self._stage()
        return stage.width(), stage.height()

    def _look(self, view: CanvasView) -> None:
        if view != self.view:
            self.view = view
            self.update()

    def _zoom_at(self, factor: float, at: QPointF) -> None:
        """Zoom around a point of the widget, in px."""
        point = at * self.devicePixelRatioF() - self._stage().topLeft()
        self._look(self.view.zoomed(factor, (point.x(), point.y()), self.picture_size, self._stage_size()))

    def _pan(self, dx: float, dy: float) -> None:
        """Move the picture, in device px."""
        self._look(self.view.panned(dx, dy, self.picture_size, self._stage_size()))

    def _keep_in_sight(self) -> None:
        """Keep at least an edge of the picture visible after a resize."""
        self.view = self.view.kept(self.picture_size, self._stage_size())
