"""A full-screen window with the picture and nothing else."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QCloseEvent, QImage, QKeyEvent, QPainter, QPaintEvent, QRegion, QScreen
from PySide6.QtWidgets import QWidget

from explorer_app.controller import Preview
from explorer_app.window.canvas.frame_image import frame_image
from explorer_app.window.look import ink
from gpu_backend import Frame

Scaling = Literal["smooth", "whole"]
Borders = Literal["black", "blurred"]

_BLURRED_PX = 16
"""Side of the picture that is enlarged to fill the borders: few pixels, enlarged smoothly, look blurred."""

_BORDER_SHADE = 0.45
"""Opacity of the black over blurred borders, so that the picture stays the brightest."""


class OutputWindow(QWidget):
    """Shows every new frame of the preview on one screen: the frames of the canvas, rendered once.

    It has no frame, no pointer and no controls; Escape closes it.

    Signals
    -------
    closed()
        The window was closed, by Escape or otherwise.
    took_focus()
        Keys go to this window.
    """

    closed = Signal()
    took_focus = Signal()

    def __init__(
        self,
        preview: Preview,
        *,
        scaling: Scaling = "smooth",
        borders: Borders = "black",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent, Qt.WindowType.Window | Qt.WindowType.FramelessWindowHint)
        self.setWindowTitle("Latent Loom output")
        self.setAccessibleName("Picture")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)  # the hand stays in the main window
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setCursor(Qt.CursorShape.BlankCursor)
        self._preview = preview
        self._scaling: Scaling = scaling
        self._borders: Borders = borders
        self._frame: Frame | None = None
        self._image: QImage | None = None
        self._size = QSize()
        """Of the newest full picture; a draft takes its place."""
        preview.frame_changed.connect(self._show_frame)
        self._show_frame()

    @property
    def frame(self) -> Frame | None:
        """The shown frame. It keeps the bytes of the image alive."""
        return self._frame

    def open_on(self, screen: QScreen) -> None:
        """Fill a screen."""
        self.setScreen(screen)
        self.setGeometry(screen.geometry())
        self.showFullScreen()

    def set_look(self, scaling: Scaling, borders: Borders) -> None:
        """Choose how the picture is enlarged and what surrounds it."""
        self._scaling, self._borders = scaling, borders
        self.update()

    def picture_rect(self) -> QRectF:
        """Return the rectangle of the picture, in widget coordinates."""
        if self._image is None:
            return QRectF()
        ratio = self.devicePixelRatioF()
        width, height = self.width() * ratio, self.height() * ratio
        return _placed(self._size, width, height, is_whole=self._scaling == "whole", ratio=ratio)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Close on Escape."""
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Say that it has the focus."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.took_focus.emit()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Say that it is closed."""
        self._preview.frame_changed.disconnect(self._show_frame)
        super().closeEvent(event)
        self.closed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the borders and the picture."""
        painter = QPainter(self)
        image = self._image
        if image is None:
            painter.fillRect(self.rect(), ink.shade(1.0))
            painter.end()
            return
        place = self.picture_rect()
        borders = QRegion(self.rect()) - QRegion(place.toAlignedRect())
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, True)
        if not borders.isEmpty():
            self._paint_borders(painter, borders, image)
        if image.hasAlphaChannel():
            painter.fillRect(place, ink.shade(1.0))
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, self._scaling == "smooth")
        painter.drawImage(place, image)
        painter.end()

    def _paint_borders(self, painter: QPainter, borders: QRegion, image: QImage) -> None:
        painter.save()
        painter.setClipRegion(borders)
        if self._borders == "black":
            painter.fillRect(self.rect(), ink.shade(1.0))
        else:
            ignore = Qt.AspectRatioMode.IgnoreAspectRatio
            small = image.scaled(_BLURRED_PX, _BLURRED_PX, ignore, Qt.TransformationMode.SmoothTransformation)
            painter.drawImage(_covering(self.rect()), small)
            painter.fillRect(self.rect(), ink.shade(_BORDER_SHADE))
        painter.restore()

    @Slot()
    def _show_frame(self) -> None:
        frame = self._preview.frame
        if frame is not None and frame is not self._frame:
            self._frame, self._image = frame, frame_image(frame)
            if self._size.isEmpty() or not frame.is_draft:
                self._size = self._image.size()
            self.update()


def _placed(size: QSize, width: float, height: float, *, is_whole: bool, ratio: float) -> QRectF:
    """Return the centred rectangle of a picture in a window of width x height device px, in widget coordinates.

    With `is_whole` a pixel of the picture is a whole number of device px, unless the picture is larger than the window.
    """
    scale = min(width / size.width(), height / size.height())
    if is_whole and scale >= 1.0:
        scale = float(int(scale))
    w, h = round(size.width() * scale), round(size.height() * scale)
    left, top = round((width - w) / 2), round((height - h) / 2)
    return QRectF(left / ratio, top / ratio, w / ratio, h / ratio)


def _covering(area: QRect) -> QRect:
    """Return the square around the centre of an area that covers it."""
    side = max(area.width(), area.height())
    return QRect(area.center() - QPoint(side // 2, side // 2), QSize(side + 1, side + 1))
