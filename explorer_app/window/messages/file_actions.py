"""Actions for a file that was just written: show it in its folder, copy it, drag it to another program."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QMimeData, QPoint, QProcess, QSize, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QDrag, QGuiApplication, QImageReader, QMouseEvent, QPixmap
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QPushButton, QWidget

from explorer_app.window.controls.elided_label import ElidedLabel
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.look import theme
from explorer_app.window.look.icons import icon

_SHOWN = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff")
"""Suffixes of pictures that Qt reads."""

_WEBP_HEAD_NBYTES = 21
_WEBP_ANIMATION = 2
"""Bit of the last byte of that head, the flags of an extended WebP (RFC 9649)."""

_DRAGGED_PX = 96


class FileActions(QWidget):
    """The path of a file or a folder, with buttons for it.

    Parameters
    ----------
    path
        The file or folder.
    picture
        The picture that can be copied if Qt reads it, such as the last frame in a folder; None for the file itself,
        which is copied without its picture if it is an animation or Qt cannot read it.
    shows_path
        Whether to show the path; False where the text beside it already does.
    """

    def __init__(
        self, path: Path, parent: QWidget | None = None, *, picture: Path | None = None, shows_path: bool = True
    ) -> None:
        super().__init__(parent)
        self._path = path
        self._picture = picture or path
        is_folder = picture is not None or path.is_dir()
        self.place = ElidedLabel(str(path.parent), self, mode=Qt.TextElideMode.ElideMiddle)
        self.place.setToolTip(plain_tip(str(path)))
        self.place.setAccessibleName("Folder")
        self.place.setVisible(shows_path)
        theme.set_role(self.place, "dim")
        self.handle = FileHandle(path, self)
        self.reveal_button = QPushButton("Show in folder", self)
        self.reveal_button.setToolTip(plain_tip(f"Open {path if is_folder else path.parent} in the file manager."))
        self.reveal_button.clicked.connect(self._reveal)
        is_shown = self._picture.suffix.lower() in _SHOWN and not _is_animation(self._picture)
        text = "Copy last frame" if picture is not None else "Copy picture" if is_shown else "Copy file"
        kind = "as a picture and as a file" if is_shown else "as a file"
        self.copy_button = QPushButton(text, self)
        self.copy_button.setToolTip(plain_tip(f"Copy {self._picture.name} to the clipboard, {kind}."))
        self.copy_button.clicked.connect(self._copy_picture if is_shown else self._copy_file)
        self.copy_button.setVisible(is_shown or not is_folder)
        for button in (self.reveal_button, self.copy_button):
            theme.set_role(button, "flat")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.px(6))
        row.addWidget(self.place, 1)
        for widget in (self.handle, self.reveal_button, self.copy_button):
            row.addWidget(widget)

    def _reveal(self) -> None:
        if not reveal(self._path):
            QGuiApplication.clipboard().setText(str(self._path))
            self.reveal_button.setText("Path copied")
            self.reveal_button.setToolTip("No file manager answered, so the path is on the clipboard instead.")

    def _copy_file(self) -> None:
        if self._picture.exists():
            self._put(file_data(self._picture))
        else:
            self._refuse()

    def _copy_picture(self) -> None:
        data = file_data(self._picture)
        reader = QImageReader(str(self._picture))
        size = reader.size()
        is_readable = 4 * size.width() * size.height() <= QImageReader.allocationLimit() << 20
        if is_readable:  # others are copied as a file alone
            image = reader.read()
            if image.isNull():
                self._refuse()
                return
            data.setImageData(image)
        self._put(data)

    def _put(self, data: QMimeData) -> None:
        QGuiApplication.clipboard().setMimeData(data)
        self.copy_button.setText("Copied")

    def _refuse(self) -> None:
        self.copy_button.setText("No longer there")
        self.copy_button.setEnabled(False)


class FileHandle(QLabel):
    """A drag handle that drops the file into other programs."""

    def __init__(self, path: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._pressed: QPoint | None = None
        self.setPixmap(icon("open" if path.is_dir() else "picture", "dim").pixmap(theme.px(18), theme.px(18)))
        self.setCursor(Qt.CursorShape.OpenHandCursor)
        self.setToolTip(plain_tip(f"Drag {path.name} into another program."))
        self.setAccessibleName("Drag the file")

    def drag(self) -> QDrag:
        """Return a drag with the file and a thumbnail of it."""
        drag = QDrag(self)
        drag.setMimeData(file_data(self._path))
        reader = QImageReader(str(self._path))
        size = reader.size()
        if size.isValid():
            reader.setScaledSize(size.scaled(QSize(_DRAGGED_PX, _DRAGGED_PX), Qt.AspectRatioMode.KeepAspectRatio))
            drag.setPixmap(QPixmap.fromImage(reader.read()))
        return drag

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Record the start position of a drag."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = event.position().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Begin the drag once the pointer has moved far enough."""
        start = self._pressed
        if start is None or not event.buttons() & Qt.MouseButton.LeftButton:
            return
        if (event.position().toPoint() - start).manhattanLength() >= QApplication.startDragDistance():
            self._pressed = None
            self.drag().exec(Qt.DropAction.CopyAction)


def _is_animation(path: Path) -> bool:
    """Return whether a file is an animated WebP, whose suffix is that of pictures."""
    try:
        with path.open("rb") as file:
            head = file.read(_WEBP_HEAD_NBYTES)
    except OSError:
        return False
    is_extended = head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and len(head) == _WEBP_HEAD_NBYTES
    return is_extended and bool(head[-1] & _WEBP_ANIMATION)


def file_data(path: Path) -> QMimeData:
    """Return MIME data with a file's URL, for the clipboard or a drag."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    return data


def reveal(path: Path) -> bool:
    """Show a file in the file manager, or a folder's content; return whether a file manager was found."""
    if path.is_dir():
        return QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
    if sys.platform == "win32":
        return bool(QProcess.startDetached("explorer", [f"/select,{path}"])[0])
    if sys.platform == "darwin":
        return bool(QProcess.startDetached("open", ["-R", str(path)])[0])
    return QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent)))
