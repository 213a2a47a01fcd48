"""The tools that edit the picture by hand: their layers over the canvas, their bars below it, and their actions."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QBoxLayout

from explorer_app.controller import Engine, PointDrag
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.canvas.drag_bar import DragBar
from explorer_app.window.canvas.point_tool import PointTool


class EditingTools(QObject):
    """Creates the tools and connects them.

    Parameters
    ----------
    below
        The column of the canvas; bars are put below it.
    actions
        By key; ``"drag-points"`` shows whether the tool is on.
    """

    def __init__(
        self,
        canvas: Canvas,
        below: QBoxLayout,
        engine: Engine,
        drag: PointDrag,
        actions: Mapping[str, QAction],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        action = actions["drag-points"]
        self.points = PointTool(canvas, drag, action)
        self.bar = DragBar(drag, engine)
        below.insertWidget(below.indexOf(canvas) + 1, self.bar)
        action.enabledChanged.connect(self.points.place)
        self.points.switched.connect(self.bar.setVisible)
        self.bar.left.connect(self._leave)
        actions["transform"].triggered.connect(self._leave_for)

    @Slot()
    def _leave(self) -> None:
        self.points.set_on(False)

    @Slot(bool)
    def _leave_for(self, other_is_on: bool) -> None:
        """Leave the tool for another one."""
        if other_is_on:
            self.points.set_on(False)
