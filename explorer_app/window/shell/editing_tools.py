"""The tools that edit the picture by hand: their layers over the canvas, their bars below it, and their actions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QBoxLayout

from explorer_app.controller import Editing, Engine, Files, Photo, PhotoProjection, PointDrag, VariationGrid
from explorer_app.messages import MessageLog
from explorer_app.session.parameters import parameter
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.canvas.drag_bar import DragBar
from explorer_app.window.canvas.mask_brush import FROZEN, MaskBrush
from explorer_app.window.canvas.point_tool import PointTool
from explorer_app.window.controls.screen_fit import fit_to_screen

if TYPE_CHECKING:
    from explorer_app.window.dialogs.from_picture import FromPictureDialog

_MASK = "MaskBrush"
"""Source of the edits of the mask."""


class EditingTools(QObject):
    """Creates the tools and connects them.

    Signals
    -------
    painting_changed(int)
        Number of the blend whose mask the brush paints; 0 for none.

    Parameters
    ----------
    below
        The column of the canvas; bars are put below it.
    actions
        By key; ``"drag-points"`` shows whether the tool is on.
    """

    painting_changed = Signal(int)

    def __init__(
        self,
        canvas: Canvas,
        below: QBoxLayout,
        engine: Engine,
        editing: Editing,
        drag: PointDrag,
        projection: PhotoProjection,
        files: Files,
        messages: MessageLog,
        actions: Mapping[str, QAction],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._window = canvas.window
        self._canvas = canvas
        self._engine = engine
        self._projection = projection
        self._messages = messages
        self.dialog: FromPictureDialog | None = None
        """The photo whose latent is searched; None while there is none."""
        self._waiting: Photo | None = None
        """A photo that was opened before the first picture of a model."""
        files.photo_opened.connect(self.open_photo)
        action = actions["drag-points"]
        self._editing = editing
        self.brush = MaskBrush(self)
        self.points = PointTool(canvas, drag, self.brush, action)
        self.bar = DragBar(drag, self.brush, engine)
        self.bar.take_key = self._take_key
        self.brush.edited.connect(partial(editing.edit, source=_MASK))
        self.brush.gesture_cancelled.connect(partial(editing.cancel_gesture, _MASK))
        editing.session_changed.connect(self._show_mask)
        editing.stepped.connect(self.points.cancel_stroke)  # what was drawn until then is a step already
        self._show_mask()
        below.insertWidget(below.indexOf(canvas) + 1, self.bar)
        action.enabledChanged.connect(self.points.place)
        self.points.switched.connect(self.bar.setVisible)
        self.points.switched.connect(self._end_painting)
        self.bar.left.connect(self._leave)
        self._transform = actions["transform"]
        self._transform.triggered.connect(self._leave_for)
        self._shows_layer = False

    def share_canvas(self, grid: VariationGrid) -> None:
        """Leave the tools once the grid covers the picture, and the grid for a tool, or for a layer that is chosen."""
        self._grid = grid
        grid.changed.connect(self._leave_for_grid)
        self.points.switched.connect(self._leave_grid)
        self._transform.toggled.connect(self._leave_grid)
        self._editing.session_changed.connect(self._show_layer)

    @Slot()
    def _leave_for_grid(self) -> None:
        if self._grid.is_on:
            self.points.set_on(False)
            if self._canvas.transform.is_on:
                self._canvas.transform.set_on(False)

    @Slot(bool)
    def _leave_grid(self, tool_is_on: bool) -> None:
        if tool_is_on:
            self._grid.set_on(False)

    @Slot()
    def _show_layer(self) -> None:
        shows_layer = self._editing.session.tap is not None
        if shows_layer and not self._shows_layer:
            self._grid.set_on(False)
        self._shows_layer = shows_layer

    @Slot()
    def _show_mask(self) -> None:
        """Take the mask from the session, unless it is being painted; leave the tool if its blend is gone."""
        session, number = self._editing.session, self._painted
        if number and session.blend(number) is None:
            self.points.set_on(False)
            return
        mask = parameter(self.brush.target).read(session)
        if mask != self.brush.mask and not self.brush.is_painting:
            self.brush.mask = mask
            self.brush.changed.emit()

    @property
    def _painted(self) -> int:
        """Number of the blend whose mask the brush paints; 0 for none."""
        return int(self.brush.target.split("/")[1]) if self.brush.is_for_blend else 0

    @Slot(int)
    def paint_blend(self, number: int) -> None:
        """Let the brush paint the mask of a blend; 0 leaves the tool."""
        if not number:
            self.points.set_on(False)
            return
        path = f"blend/{number}/mask"
        self.brush.set_target(path, parameter(path).read(self._editing.session))
        self.brush.set_mode("freeze")
        self.points.set_on(True)
        self.painting_changed.emit(number)

    @Slot(bool)
    def _end_painting(self, on: bool) -> None:
        """Give the brush back to dragging once the tool is left."""
        if not on and self.brush.is_for_blend:
            self.brush.set_target(FROZEN, self._editing.session.mask)
            self.painting_changed.emit(0)

    @Slot(object)
    def open_photo(self, photo: Photo) -> None:
        """Open the dialog that finds the latent of a photo; a search in one that is open ends with what it has found.

        While a model is being opened, the dialog waits for its first picture.
        """
        from explorer_app.window.dialogs.from_picture import FromPictureDialog

        model, preview = self._engine.model, self._engine.preview
        if preview.frame is None:
            if model.loading is None and model.facts is None:
                self._messages.warning("Open a model first: the search looks for a latent of the open model.")
                return
            if self._waiting is None:
                preview.frame_changed.connect(self._open_waiting)
            self._waiting = photo
            return
        self._projection.finish()
        if self.dialog is not None:
            self.dialog.close()
        dialog = self.dialog = FromPictureDialog(photo, self._projection, self._engine.preview, self._window())
        dialog.finished.connect(self._forget_dialog)
        dialog.adjustSize()
        fit_to_screen(dialog)
        dialog.show()

    @Slot()
    def _open_waiting(self) -> None:
        """Open the dialog of a photo that waited for the first picture."""
        photo = self._waiting
        if photo is not None and self._engine.preview.frame is not None:
            self._engine.preview.frame_changed.disconnect(self._open_waiting)
            self._waiting = None
            self.open_photo(photo)

    @Slot()
    def _forget_dialog(self) -> None:
        self.dialog = None

    def _take_key(self, event: QKeyEvent) -> bool:
        """Pass a key of the bar to the tool; one that it uses gives the focus back to the canvas."""
        is_taken = self.points.take_key(event)
        if is_taken:
            self._canvas.setFocus()
        return is_taken

    @Slot()
    def _leave(self) -> None:
        self.points.set_on(False)

    @Slot(bool)
    def _leave_for(self, other_is_on: bool) -> None:
        """Leave the tool for another one."""
        if other_is_on:
            self.points.set_on(False)
