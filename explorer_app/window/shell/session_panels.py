"""The panels that follow the session: each gets sessions and models, and its edits reach the controller."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Slot

from explorer_app.controller import Editing, Engine
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.docks.dock import Dock
from explorer_app.window.docks.session_views import SessionViews
from explorer_app.window.shell.dock_table import SessionPanel

if TYPE_CHECKING:
    from gpu_backend import Directions


class SessionPanels(QObject):
    """Passes sessions and models to the canvas and to panels, and their edits to the controller."""

    def __init__(self, canvas: Canvas, editing: Editing, engine: Engine, parent: QObject) -> None:
        super().__init__(parent)
        self._editing = editing
        self._model = engine.model
        self._panels: list[SessionPanel] = []
        self._views = SessionViews([canvas])
        self._connect_editor(canvas)
        editing.session_changed.connect(self._show_session)
        engine.model_changed.connect(self._show_model)
        self._show_session()

    def add(self, panel: SessionPanel, dock: Dock) -> None:
        """Connect a panel, and pass it the current model and session; it is updated while its dock is visible."""
        self._connect_editor(panel)
        panel.show_model(self._model.facts, cast("Directions | None", self._model.directions))
        self._panels.append(panel)
        self._views.add(panel)
        dock.visibilityChanged.connect(partial(self._views.set_on_show, panel))

    def _connect_editor(self, panel: Canvas | SessionPanel) -> None:
        source = type(panel).__name__
        panel.edited.connect(partial(self._editing.edit, source=source))
        panel.gesture_cancelled.connect(partial(self._editing.cancel_gesture, source))

    @Slot()
    def _show_session(self) -> None:
        self._views.show(self._editing.session)

    @Slot()
    def _show_model(self) -> None:
        facts, directions = self._model.facts, cast("Directions | None", self._model.directions)
        for panel in self._panels:
            panel.show_model(facts, directions)
