"""A sheet that was opened: a click on one of its pictures takes it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QImageReader, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from explorer_app.exporting.sheet import MAX_PIXELS, SheetDocument
from explorer_app.window.look import theme

_MOST_PX = 1024
"""Side of the picture in memory: a sheet for print may be much larger than a screen."""


_LARGEST_MB = (4 * MAX_PIXELS >> 20) + 1
"""Of the largest sheet in memory; Qt reads a quarter of that by default."""


class SheetView(QWidget):
    """Shows a sheet, and marks the picture below the pointer or the one that the arrow keys chose.

    Signals
    -------
    chosen(int)
        A picture, by its place in reading order.
    """

    chosen = Signal(int)

    def __init__(self, picture: QPixmap, size: QSize, sheet: SheetDocument, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._picture = picture
        self._size = size
        self._sheet = sheet
        self.place = next((place for place, cell in enumerate(sheet.cells) if cell is not None), None)
        """The picture that is marked."""
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName("Pictures of the sheet")
        self.setMinimumSize(theme.px(320), theme.px(160))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Mark the picture below the pointer."""
        self._mark(self._place_at(event.position()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Take the picture below the pointer."""
        place = self._place_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and place is not None:
            self.chosen.emit(place)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Choose with the arrow keys, take with Enter or Space."""
        columns = self._sheet.columns
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Up: -columns, Qt.Key.Key_Down: columns}
        key = Qt.Key(event.key())
        if key in steps and self.place is not None:
            place = self.place + steps[key]
            if 0 <= place < len(self._sheet.cells) and self._sheet.cells[place] is not None:
                self._mark(place)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self.place is not None:
            self.chosen.emit(self.place)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the sheet, and a frame around the marked picture."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        shown = self._shown()
        painter.drawPixmap(shown, self._picture, QRectF(self._picture.rect()))
        if self.place is None or self._size.isEmpty():
            return
        scale = shown.width() / self._size.width()
        left, top = self._sheet.corner(self.place)
        width, height = self._sheet.cell
        marked = QRectF(shown.x() + left * scale, shown.y() + top * scale, width * scale, height * scale)
        painter.setPen(QPen(QColor(theme.current().accent), theme.px(2)))
        painter.drawRect(marked)

    def _shown(self) -> QRectF:
        """Return where the sheet is in the widget."""
        size = self._size.scaled(self.size(), Qt.AspectRatioMode.KeepAspectRatio)
        return QRectF(
            (self.width() - size.width()) / 2, (self.height() - size.height()) / 2, size.width(), size.height()
        )

    def _place_at(self, point: QPointF) -> int | None:
        shown = self._shown()
        if shown.isEmpty():
            return None
        scale = self._size.width() / shown.width()
        return self._sheet.place_at((point.x() - shown.x()) * scale, (point.y() - shown.y()) * scale)

    def _mark(self, place: int | None) -> None:
        if place is not None and place != self.place:
            self.place = place
            self.update()


class SheetDialog(QDialog):
    """Shows a sheet until one of its pictures is taken.

    Signals
    -------
    chosen(int)
        A picture, by its place in reading order.
    """

    chosen = Signal(int)

    def __init__(self, path: Path, sheet: SheetDocument, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(path.name)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        picture = QPixmap.fromImage(_read(path))
        size = picture.size()
        if max(size.width(), size.height()) > _MOST_PX:
            picture = picture.scaled(
                _MOST_PX, _MOST_PX, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
            )
        self.view = SheetView(picture, size, sheet, self)
        self.view.chosen.connect(self._choose)
        about = QLabel("Click a picture to open it with the session that made it.", self)
        theme.set_role(about, "dim")
        self.cancel = QPushButton("Cancel", self)
        self.cancel.setAutoDefault(False)
        self.cancel.clicked.connect(self.reject)
        bottom = QHBoxLayout()
        bottom.addWidget(about, 1)
        bottom.addWidget(self.cancel)
        whole = QVBoxLayout(self)
        edge = theme.px(16)
        whole.setContentsMargins(edge, edge, edge, edge)
        whole.setSpacing(theme.px(12))
        whole.addWidget(self.view, 1)
        whole.addLayout(bottom)
        shown = size.scaled(theme.px(760), theme.px(520), Qt.AspectRatioMode.KeepAspectRatio)
        chrome = whole.sizeHint() - self.view.minimumSize()
        self.resize(shown + QSize(2 * edge, chrome.height()))
        self.view.setFocus()

    def _choose(self, place: int) -> None:
        self.chosen.emit(place)
        self.accept()


def _read(path: Path) -> QImage:
    """Return a sheet of any size that can be written; an empty picture if the file is gone."""
    usual_mb = QImageReader.allocationLimit()
    QImageReader.setAllocationLimit(max(usual_mb, _LARGEST_MB))
    try:
        return QImageReader(str(path)).read()
    finally:
        QImageReader.setAllocationLimit(usual_mb)
