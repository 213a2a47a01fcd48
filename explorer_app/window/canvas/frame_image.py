"""Wraps a frame's bytes in a QImage without a copy or conversion."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage

from gpu_backend import Frame


def frame_image(frame: Frame) -> QImage:
    """Return an image over the bytes of a frame. The caller must keep the frame alive as long as the image."""
    kind = QImage.Format.Format_ARGB32 if frame.has_alpha else QImage.Format.Format_RGB32
    height, width = frame.pixels.shape[:2]
    return QImage(frame.pixels.data, width, height, width * 4, kind)


def shrunk(image: QImage, width: int) -> QImage:
    """Return a copy reduced to a width in px, averaged over all pixels (QPainter would sample only some)."""
    return image.scaledToWidth(max(1, width), Qt.TransformationMode.SmoothTransformation)
