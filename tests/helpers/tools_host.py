"""The canvas with its editing tools over a controller that obeys at once, without the rest of the window."""

from __future__ import annotations

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QVBoxLayout, QWidget

from explorer_app.messages import MessageLog
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.shell.editing_tools import EditingTools
from tests.helpers.fake_controller import FakeController


class ToolsHost(QWidget):
    """Shows the picture of the controller, with the tool that drags points switched on."""

    def __init__(self, controller: FakeController, messages: MessageLog) -> None:
        super().__init__()
        self.canvas = Canvas()
        self.actions_by_key = {key: QAction(key, self, checkable=True) for key in ("drag-points", "transform")}
        column = QVBoxLayout(self)
        column.addWidget(self.canvas, 1)
        self.tools = EditingTools(
            self.canvas,
            column,
            controller.engine,  # type: ignore[arg-type]
            controller.editing,  # type: ignore[arg-type]
            controller.point_drag,
            controller.photo_projection,
            controller.files,  # type: ignore[arg-type]
            messages,
            self.actions_by_key,
            self,
        )
        self.actions_by_key["drag-points"].triggered.connect(self.tools.points.set_on)
        self.canvas.edited.connect(controller.editing.edit)
        self.canvas.follow(controller.engine.preview)  # type: ignore[arg-type]
        self.canvas.show_model(controller.engine.model.facts)
        self.canvas.show_frame(controller.engine.preview.frame)
        self.resize(900, 700)
        self.show()
        self.tools.points.set_on(True)
