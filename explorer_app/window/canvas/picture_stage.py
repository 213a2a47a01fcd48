"""Where the picture lies in its widget: size, zoom and pan, and the room kept free around it."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Signal
from PySide6.QtWidgets import QWidget

from explorer_app.window.canvas.canvas_view import CanvasView
from explorer_app.window.look import theme
from gpu_backend import Frame

EDGE_PX = 14
"""Margin around a fitted picture, in px."""
CAPTION_PX = 34
"""Height of the line below the picture, in px."""


class PictureStage(QWidget):
    """A widget with a picture in it. What lies over the picture takes its place from here.

    Attributes
    ----------
    view
        Zoom and pan.
    is_ready_to_pan
        Whether a left-drag pans: Space is held.
    drop_text
        What dropping a file here would do; empty while none is dragged over it.

    Signals
    -------
    resized()
        It has another size. An event filter would run for every picture that is painted.
    """

    resized = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.view = CanvasView()
        self.is_ready_to_pan = False
        self.drop_text = ""
        self._frame: Frame | None = None
        self._size: tuple[int, int] | None = None
        """Width and height of the full picture; None before there is one."""
        self._placed: tuple[object, QRectF] = None, QRectF()
        """Where the picture lies, and all that this depends on: each picture that is painted asks for it."""

    @property
    def frame(self) -> Frame | None:
        """The frame that is shown. Its bytes live as long as the picture made over them."""
        return self._frame

    @property
    def room_above(self) -> int:
        """Room above a fitted picture beside the margin, in px."""
        return 0

    @property
    def room_below(self) -> int:
        """Room below a fitted picture, in px."""
        return theme.px(CAPTION_PX)

    def caption_rect(self) -> QRectF:
        """Return where the line below the picture lies, in the widget's own coordinates."""
        line = QRectF(self.rect()).adjusted(theme.px(12), 0, -theme.px(12), 0)
        line.setTop(line.bottom() - theme.px(CAPTION_PX - 4))
        return line

    def fit(self) -> None:
        """Show the whole picture as large as it goes."""
        self._look(CanvasView())

    def one_to_one(self) -> None:
        """Show one pixel of the picture on one pixel of the screen."""
        self._look(CanvasView(1.0))

    def zoom_by(self, factor: float) -> None:
        """Zoom at the middle."""
        width, height = self._stage_size()
        self._look(self.view.zoomed(factor, (width / 2, height / 2), self.picture_size, (width, height)))

    @property
    def shown_size(self) -> tuple[tuple[int, int], float]:
        """Width and height of what is shown in its own pixels, and device px a pixel of it.

        A draft counts as the picture that it stands in for; a layer has a size of its own.
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
        """Return where the picture lies, in the widget's own coordinates."""
        ratio, size = self.devicePixelRatioF(), self.size()
        key = (self.view, self._size, size, ratio, theme.px(EDGE_PX), self.room_above, self.room_below)
        if self._placed[0] != key:
            stage = self._stage()
            left, top, width, height = self.view.place(self.picture_size, self._stage_size())
            place = QRectF((stage.x() + left) / ratio, (stage.y() + top) / ratio, width / ratio, height / ratio)
            self._placed = key, place
        return QRectF(self._placed[1])

    def picture_area(self) -> QRectF:
        """Return where a fitted picture may lie, in the widget's own coordinates."""
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
        """Zoom at a point of the widget, in px."""
        point = at * self.devicePixelRatioF() - self._stage().topLeft()
        self._look(self.view.zoomed(factor, (point.x(), point.y()), self.picture_size, self._stage_size()))

    def _pan(self, dx: float, dy: float) -> None:
        """Move the picture, in device px."""
        self._look(self.view.panned(dx, dy, self.picture_size, self._stage_size()))

    def _keep_in_sight(self) -> None:
        """Keep at least an edge of the picture in sight after a change of size."""
        self.view = self.view.kept(self.picture_size, self._stage_size())
