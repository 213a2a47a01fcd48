"""The dialog that finds the latent of a photo: a crop frame, then the photo and the nearest picture side by side."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt, Signal, Slot
from PySide6.QtGui import (
    QCloseEvent,
    QColor,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from explorer_app.controller import Photo, PhotoProjection, Preview
from explorer_app.window.canvas.frame_image import frame_image
from explorer_app.window.controls.share_bar import ShareBar
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.gestures.plane_drag import ARROWS
from explorer_app.window.look import ink, theme
from gpu_backend import LEAST_PHOTO_PX, Crop, printable

_VIEW_PX = 380
_REACH_PX = 12
_KEY_STEP = 0.01
"""Step of an arrow key, in the photo's shorter side."""
_STOP_TIP = "End the search; the best latent so far becomes the picture and is kept."
_STOP_UNTUNED = "Stop and keep leaves the tuning out."
_TUNE_TIP = "End the search, and tune the model with the best latent so far."
_STOP_TUNED = "The model is tuned as far as it is now."
_HINT = "Frame the photo like the model's picture on the right, with the subject where its own is."


class CropView(QWidget):
    """A photo with a square frame: drag it, drag a corner or turn the wheel for its size; a double-click resets it.

    Signals
    -------
    changed()
        The frame was moved.
    """

    changed = Signal()

    def __init__(self, photo: Photo, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._photo = photo
        # Copied, since QImage keeps only an address.
        width, height = photo.shown_width, photo.shown_height
        self._image = QImage(photo.pixels, width, height, 3 * width, QImage.Format.Format_RGB888).copy()
        self.is_locked = False
        self._held: tuple[str, QPointF, Crop] | None = None
        """What is dragged, where it was pressed in pixels of the photo, and the frame then."""
        self.crop = self._largest()
        self.setAccessibleName("Crop frame")
        self.setToolTip("Drag the frame; a corner or the wheel sizes it, a double-click takes the largest square.")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return a comfortable size."""
        return QSize(theme.px(_VIEW_PX), theme.px(_VIEW_PX))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the smallest usable size."""
        return QSize(theme.px(160), theme.px(160))

    def set_locked(self, locked: bool) -> None:
        """Show the part inside the frame alone, which cannot be moved meanwhile."""
        self.is_locked, self._held = locked, None
        self.unsetCursor()
        self.update()

    # -- geometry ---------------------------------------------------------------------------------------------------

    def _largest(self) -> Crop:
        side = float(min(self._photo.width, self._photo.height))
        return Crop((self._photo.width - side) / 2, (self._photo.height - side) / 2, side)

    def picture_rect(self) -> QRectF:
        """Return the rectangle of the photo in the widget."""
        photo = QSizeF(self._photo.width, self._photo.height)  # whole px could be none of a long strip's width
        size = photo.scaled(self.size().toSizeF(), Qt.AspectRatioMode.KeepAspectRatio)
        return QRectF(
            (self.width() - size.width()) / 2, (self.height() - size.height()) / 2, size.width(), size.height()
        )

    def frame_rect(self) -> QRectF:
        """Return the rectangle of the frame in the widget."""
        rect, crop = self.picture_rect(), self.crop
        scale = rect.width() / self._photo.width
        return QRectF(rect.x() + crop.left * scale, rect.y() + crop.top * scale, crop.side * scale, crop.side * scale)

    def _pixels(self, at: QPointF) -> QPointF:
        rect = self.picture_rect()
        return (at - rect.topLeft()) * (self._photo.width / rect.width())

    def _part_at(self, at: QPointF) -> str:
        frame, reach = self.frame_rect(), theme.px(_REACH_PX)
        corners = {"tl": frame.topLeft(), "tr": frame.topRight(), "bl": frame.bottomLeft(), "br": frame.bottomRight()}
        for name, corner in corners.items():
            if (at - corner).manhattanLength() <= reach:
                return name
        return "inside" if frame.contains(at) else ""

    def show_crop(self, crop: Crop) -> None:
        """Place the frame, as far as it fits into the photo."""
        self._set(crop.left, crop.top, crop.side)

    def _set(self, left: float, top: float, side: float) -> None:
        """Move the frame, kept inside the photo."""
        width, height = self._photo.width, self._photo.height
        side = min(max(side, min(LEAST_PHOTO_PX, width, height)), width, height)
        crop = Crop(min(max(left, 0.0), width - side), min(max(top, 0.0), height - side), side)
        if crop != self.crop:
            self.crop = crop
            self.update()
            self.changed.emit()

    # -- mouse and keyboard -----------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Take hold of the frame or a corner."""
        part = self._part_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and part and not self.is_locked:
            self._held = part, self._pixels(event.position()), self.crop

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Move the frame or its grabbed corner."""
        if self.is_locked:
            return
        if self._held is None:
            part = self._part_at(event.position())
            shapes = {"": Qt.CursorShape.ArrowCursor, "inside": Qt.CursorShape.SizeAllCursor}
            diagonal = Qt.CursorShape.SizeFDiagCursor if part in ("tl", "br") else Qt.CursorShape.SizeBDiagCursor
            self.setCursor(shapes.get(part, diagonal))
            return
        part, pressed, crop = self._held
        way = self._pixels(event.position()) - pressed
        if part == "inside":
            self._set(crop.left + way.x(), crop.top + way.y(), crop.side)
            return
        right, bottom = crop.left + crop.side, crop.top + crop.side
        across = way.x() if "r" in part else -way.x()
        down = way.y() if "b" in part else -way.y()
        room_x = self._photo.width - crop.left if "r" in part else right
        room_y = self._photo.height - crop.top if "b" in part else bottom
        side = min(max(crop.side + max(across, down), LEAST_PHOTO_PX), room_x, room_y)
        self._set(crop.left if "r" in part else right - side, crop.top if "b" in part else bottom - side, side)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Let go."""
        self._held = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Take the largest square in the middle."""
        if not self.is_locked:
            largest = self._largest()
            self._set(largest.left, largest.top, largest.side)

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Size the frame around its middle."""
        if not self.is_locked:
            self._grow(1.1 ** (-event.angleDelta().y() / 120))
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Move the frame by arrows, size it by + and -."""
        key = event.key()
        if self.is_locked:
            super().keyPressEvent(event)
        elif key in ARROWS:
            right, down = ARROWS[Qt.Key(key)]
            step = _KEY_STEP * min(self._photo.width, self._photo.height)
            self._set(self.crop.left + right * step, self.crop.top + down * step, self.crop.side)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Minus):
            self._grow(1.05 if key == Qt.Key.Key_Plus else 1 / 1.05)
        else:
            super().keyPressEvent(event)

    def _grow(self, factor: float) -> None:
        crop = self.crop
        side = min(max(crop.side * factor, LEAST_PHOTO_PX), self._photo.width, self._photo.height)
        self._set(crop.left + (crop.side - side) / 2, crop.top + (crop.side - side) / 2, side)

    # -- painting ---------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the photo, darker outside the frame; while locked, what is inside it alone."""
        painter = QPainter(self)
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
        if self.is_locked:
            scale = self._image.width() / self._photo.width
            crop = self.crop
            source = QRectF(crop.left * scale, crop.top * scale, crop.side * scale, crop.side * scale)
            square = square_in(self.rect().toRectF())
            painter.drawImage(square, self._image, source)
            if self.hasFocus():
                painter.setPen(QPen(QColor(theme.current().accent), theme.px(2)))
                painter.drawRect(square.adjusted(1, 1, -1, -1))
            return
        picture, frame = self.picture_rect(), self.frame_rect()
        painter.drawImage(picture, self._image)
        outside = [
            QRectF(picture.left(), picture.top(), picture.width(), frame.top() - picture.top()),
            QRectF(picture.left(), frame.bottom(), picture.width(), picture.bottom() - frame.bottom()),
            QRectF(picture.left(), frame.top(), frame.left() - picture.left(), frame.height()),
            QRectF(frame.right(), frame.top(), picture.right() - frame.right(), frame.height()),
        ]
        for part in outside:
            painter.fillRect(part, ink.shade(0.6))
        paint_thirds(painter, frame)
        for pen in (QPen(ink.veil(0.75), theme.px(4)), QPen(QColor(theme.current().accent), theme.px(2))):
            pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
            painter.setPen(pen)
            painter.drawRect(frame.adjusted(1, 1, -1, -1))
        painter.setPen(QPen(ink.dark(), theme.px(2)))
        painter.setBrush(QColor(theme.current().accent) if self.hasFocus() else ink.light())
        half = theme.px(4)
        for corner in (frame.topLeft(), frame.topRight(), frame.bottomLeft(), frame.bottomRight()):
            painter.drawRect(QRectF(corner.x() - half, corner.y() - half, 2 * half, 2 * half))


class ResultView(QWidget):
    """The model's picture: before the search the present one with lines at its thirds, then the nearest so far."""

    def __init__(self, preview: Preview, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._preview = preview
        self.is_searching = False
        self.setAccessibleName("Nearest picture")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        preview.frame_changed.connect(self.update)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return a comfortable size."""
        return QSize(theme.px(_VIEW_PX), theme.px(_VIEW_PX))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the smallest usable size."""
        return QSize(theme.px(160), theme.px(160))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the picture."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        target, frame = square_in(self.rect().toRectF()), self._preview.frame
        if frame is None:
            painter.fillRect(target, QColor(theme.current().well))
            return
        painter.drawImage(target, frame_image(frame))
        if not self.is_searching:
            paint_thirds(painter, target)


def paint_thirds(painter: QPainter, square: QRectF) -> None:
    """Paint lines at the thirds of a square."""
    painter.setPen(QPen(ink.veil(0.5), theme.px(1)))
    for third in (1 / 3, 2 / 3):
        x, y = square.x() + square.width() * third, square.y() + square.height() * third
        painter.drawLine(QPointF(x, square.top()), QPointF(x, square.bottom()))
        painter.drawLine(QPointF(square.left(), y), QPointF(square.right(), y))


def square_in(area: QRectF) -> QRectF:
    """Return the largest square in the middle of an area."""
    side = min(area.width(), area.height())
    return QRectF(area.center().x() - side / 2, area.center().y() - side / 2, side, side)


class FromPictureDialog(QDialog):
    """Choose a square of a photo, then search; the window behind it stays usable and shows the picture too."""

    def __init__(
        self, photo: Photo, projection: PhotoProjection, preview: Preview, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._path = photo.path
        self._projection = projection
        self.setWindowTitle(f"From a picture – {printable(photo.path.name)}")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.crop = CropView(photo)
        self.nearest = ResultView(preview)
        self.text = WrappedLabel(_HINT)
        theme.set_role(self.text, "dim")
        self.bar = ShareBar("Progress of the search")
        self.tune_box = QCheckBox("Also tune the model to this photo")
        self.tune_box.setToolTip(
            "Afterwards, tune the model's weights until the picture is nearer still. The tuned model is opened; its "
            "changes are kept beside the model, of the bundled one in your own folder."
        )
        self.start_button = QPushButton("Start")
        self.start_button.setToolTip("Search for the latent whose picture is nearest to the part inside the frame.")
        self.start_button.setDefault(True)
        theme.set_role(self.start_button, "main")
        self.stop_button = QPushButton("Stop and keep")
        self.tune_button = QPushButton("Tune now")
        self.tune_button.setToolTip(_TUNE_TIP)
        self.close_button = QPushButton("Cancel")
        self.close_button.setToolTip("Cancel the search and restore the former picture (Escape).")
        self.start_button.clicked.connect(lambda _=False: self._start())
        self.stop_button.clicked.connect(lambda _=False: projection.stop())
        self.tune_button.clicked.connect(lambda _=False: projection.tune_now())
        self.close_button.clicked.connect(lambda _=False: self.reject())
        views = QHBoxLayout()
        views.setSpacing(theme.px(12))
        self.nearest_title = QLabel()
        for label, view in ((QLabel("A  Photo"), self.crop), (self.nearest_title, self.nearest)):
            column = QVBoxLayout()
            theme.set_role(label, "strong")
            column.addWidget(label)
            column.addWidget(view, 1)
            views.addLayout(column, 1)
        buttons = QHBoxLayout()
        buttons.addWidget(self.tune_box)
        buttons.addStretch(1)
        for button in (self.close_button, self.tune_button, self.stop_button, self.start_button):
            buttons.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.px(16), theme.px(14), theme.px(16), theme.px(14))
        layout.setSpacing(theme.px(10))
        layout.addLayout(views, 1)
        layout.addWidget(self.bar)
        layout.addWidget(self.text)
        layout.addLayout(buttons)
        projection.changed.connect(self._show)
        projection.ended.connect(self._end)
        self._is_searching = False
        search = projection.continued
        if search is not None and search.photo == photo.path:
            self.crop.show_crop(search.crop)
            self.tune_box.setChecked(search.tunes)
        self._show()
        self.crop.setFocus()

    def reject(self) -> None:
        """Cancel the search, and close."""
        if self._is_searching:
            self._is_searching = False
            self._projection.cancel()
        super().reject()

    def closeEvent(self, event: QCloseEvent) -> None:  # noqa: N802 - Qt's name
        """Cancel the search when the window manager closes the dialog."""
        if self._is_searching:
            self._is_searching = False
            self._projection.cancel()
        super().closeEvent(event)

    def _start(self) -> None:
        self._is_searching = True
        if not self._projection.begin(self._path, self.crop.crop, tune=self.tune_box.isChecked()):
            self._is_searching = False
            self.text.setText(self._projection.obstacle or _HINT)
        self._show()

    @Slot()
    def _show(self) -> None:
        is_on = self._is_searching
        if self.crop.is_locked != is_on:
            self.crop.set_locked(is_on)
        report = self._projection.report
        self.nearest.is_searching = is_on and report is not None and math.isfinite(report.loss)
        self.nearest_title.setText("B  Nearest picture" if self.nearest.is_searching else "B  The model's picture now")
        self.nearest.update()
        self.tune_box.setEnabled(not is_on)
        self.start_button.setVisible(not is_on)
        self.stop_button.setVisible(is_on)
        self.stop_button.setEnabled(self.nearest.is_searching and self._projection.phase == "searching")
        is_ahead = self._projection.tuning_is_ahead
        self.tune_button.setVisible(is_on and is_ahead)
        self.tune_button.setEnabled(self._projection.can_tune_now)
        stop_note = "" if not self.tune_box.isChecked() else _STOP_UNTUNED if is_ahead else _STOP_TUNED
        self.stop_button.setToolTip(f"{_STOP_TIP} {stop_note}".rstrip())
        self.bar.setVisible(is_on)
        self.bar.show_share(self._projection.share)
        if is_on:
            text = self._projection.text
            self.text.setText(f"{text.rstrip('.')}. {_STOP_UNTUNED}" if is_ahead else text)

    @Slot(bool)
    def _end(self, has_taken: bool) -> None:
        """Close once the latent was taken; otherwise the frame can be placed again."""
        if self._is_searching:
            self._is_searching = False
            if has_taken:
                self.close()
            else:
                self.text.setText(_HINT)
                self._show()
