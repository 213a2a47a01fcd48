"""List model of a network's classes: numbers, names and weights."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QWidget

from explorer_app.session.class_names import class_text, classes_like
from explorer_app.window.controls.plain_tip import plain_tip

Classes = tuple[tuple[int, float], ...]
"""(class, weight) pairs."""

_Index = QModelIndex | QPersistentModelIndex

CLASS = Qt.ItemDataRole.UserRole
WEIGHT = Qt.ItemDataRole.UserRole + 1
NAME = Qt.ItemDataRole.UserRole + 2
COLUMN = Qt.ItemDataRole.UserRole + 3
"""Role: the longest number beside names; empty without names."""
PICTURE = Qt.ItemDataRole.UserRole + 4
"""Role: the thumbnail of a class, a QPixmap; None until it is rendered."""


class ClassListModel(QAbstractListModel):
    """The classes that match the filter by number or name; without a filter, "No class" comes first if allowed."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._count = 0
        self._names: Sequence[str] = ()
        self._has_none = True
        self._filter = ""
        self._shown: list[int] = []
        self._weights: dict[int, float] = {}
        self._pictures: OrderedDict[int, QPixmap] = OrderedDict()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: N802, B008 - Qt's signature
        """Return the number of shown classes."""
        return 0 if parent.isValid() else len(self._shown)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return a class's label, number, name or weight."""
        number = self._shown[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return "No class" if number < 0 else class_text(number, self._names)
        if role == NAME:
            return self._names[number] if 0 <= number < len(self._names) else ""
        if role == Qt.ItemDataRole.ToolTipRole and self._names and number >= 0:
            return plain_tip(class_text(number, self._names))
        if role == CLASS:
            return number
        if role == COLUMN:
            return str(self._count - 1) if self._names else ""
        if role == PICTURE:
            return self._pictures.get(number)
        if role == WEIGHT:
            return self._weights.get(number, 0.0) if number >= 0 else float(not self._weights)
        return None

    def show_classes(self, count: int, names: Sequence[str] = (), *, has_none: bool = True) -> None:
        """Set the number of classes, their names if known, and whether "No class" is allowed."""
        self._count, self._names, self._has_none = count, names, has_none
        self._rebuild()

    def show_picture(self, number: int, picture: QPixmap, most: int) -> None:
        """Show the picture of a class; keep at most `most` pictures and drop the oldest."""
        self._pictures[number] = picture
        self._pictures.move_to_end(number)
        while len(self._pictures) > most:
            self._pictures.popitem(last=False)
        if number in self._shown:
            index = self.index(self._shown.index(number))
            self.dataChanged.emit(index, index)

    def forget_pictures(self) -> None:
        """Drop all pictures, because the position or the model changed."""
        self._pictures.clear()

    def row_of(self, number: int) -> int:
        """Return the row of a class; 0 if it is filtered out."""
        return self._shown.index(number) if number in self._shown else 0

    def show_filter(self, text: str) -> None:
        """Show only classes whose number or name contains the words of a text."""
        self._filter = text.strip()
        self._rebuild()

    def show_weights(self, classes: Classes) -> None:
        """Mark the chosen classes."""
        self._weights = dict(classes)
        if self._shown:
            self.dataChanged.emit(self.index(0), self.index(len(self._shown) - 1))

    def _rebuild(self) -> None:
        self.beginResetModel()
        numbers = classes_like(self._filter, self._count, self._names)
        self._shown = numbers if self._filter or not self._has_none else [-1, *numbers]
        self.endResetModel()
