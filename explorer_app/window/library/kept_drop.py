"""Kept pictures that are dragged from the library onto another panel."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QMimeData, QObject, QPointF
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget

KEPT_MIME = "application/x-latentloom-kept"
"""Type of a drag of kept pictures; its data are their numbers, with commas between them."""

_DRAGS = (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop)


def kept_data(numbers: tuple[int, ...]) -> QMimeData:
    """Return the data of a drag of kept entries."""
    data = QMimeData()
    data.setData(KEPT_MIME, ",".join(map(str, numbers)).encode())
    return data


def kept_numbers(data: QMimeData) -> tuple[int, ...]:
    """Return the numbers of the kept entries in a drag; none if it is of something else."""
    text = bytes(data.data(KEPT_MIME).data()).decode("ascii", "replace")
    parts = text.split(",")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()


class KeptDrop(QObject):
    """Lets a widget take drops of kept entries; `take` gets their numbers and the place in the widget."""

    def __init__(self, widget: QWidget, take: Callable[[tuple[int, ...], QPointF], object]) -> None:
        super().__init__(widget)
        self._take = take
        widget.setAcceptDrops(True)
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        """Accept drags and drops of kept entries."""
        if event.type() not in _DRAGS or not isinstance(event, QDropEvent):
            return False
        numbers = kept_numbers(event.mimeData())
        if not numbers:
            event.ignore()  # the window takes files
            return True
        event.acceptProposedAction()
        if event.type() == QEvent.Type.Drop:
            self._take(numbers, event.position())
        return True
