"""The path of an export: keyframes in order, as a list that is reordered by dragging."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QImage, QKeyEvent, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QListWidget, QListWidgetItem, QWidget

from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.export.export_keys import ExportKey
from explorer_app.window.look import theme

_KEY_ROLE = Qt.ItemDataRole.UserRole
_SIDE_PX = 40


class ExportKeyList(QListWidget):
    """Keyframes with thumbnails. Delete removes the selected ones, dragging changes the order.

    Signals
    -------
    keys_changed()
        The keyframes or their order changed.
    icons_changed()
        A thumbnail arrived.
    thumbnail_wanted(key, session)
        A thumbnail is missing; the result arrives in `show_thumbnail`.
    """

    keys_changed = Signal()
    icons_changed = Signal()
    thumbnail_wanted = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Path")
        self.setProperty("role", "well")
        self.setToolTip("The path from top to bottom: drag to reorder, Delete removes.")
        self.setIconSize(QSize(theme.px(_SIDE_PX), theme.px(_SIDE_PX)))
        self.setSpacing(theme.px(1))
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setUniformItemSizes(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.model().rowsMoved.connect(self.keys_changed)
        self.model().rowsRemoved.connect(self.keys_changed)

    @property
    def keys(self) -> list[ExportKey]:
        """The keyframes from first to last."""
        return [self.item(row).data(_KEY_ROLE) for row in range(self.count())]

    def add(self, keys: Sequence[ExportKey]) -> None:
        """Append keyframes."""
        blank = QPixmap(self.iconSize())
        blank.fill(theme.alpha(theme.current().edge, 0.4))
        for key in keys:
            item = QListWidgetItem(QIcon(blank), key.label)
            item.setData(_KEY_ROLE, key)
            item.setToolTip(plain_tip(key.label))
            item.setSizeHint(QSize(1, theme.px(_SIDE_PX + 4)))  # as wide as the list, so that long names are elided
            self.addItem(item)
        for key in keys:
            self.thumbnail_wanted.emit(key.session, key.session)
        if keys:
            self.keys_changed.emit()

    def request_thumbnails(self) -> None:
        """Request the thumbnail of every keyframe, including those added before the signal was connected."""
        for key in self.keys:
            self.thumbnail_wanted.emit(key.session, key.session)

    def remove_selected(self) -> None:
        """Remove the selected keyframes with a single `keys_changed`."""
        selected = self.selectedItems()
        with QSignalBlocker(self):
            for item in selected:
                self.takeItem(self.row(item))
        if selected:
            self.keys_changed.emit()

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show the thumbnail of every keyframe with this session."""
        icon = QIcon(QPixmap.fromImage(image))
        for row in range(self.count()):
            if self.item(row).data(_KEY_ROLE).session == key:
                self.item(row).setIcon(icon)
        self.icons_changed.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Delete removes the selected keyframes."""
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.remove_selected()
        else:
            super().keyPressEvent(event)
