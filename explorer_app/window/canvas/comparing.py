"""Comparison commands: the picture before the last step while a key is held, or two pictures with a divider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Slot
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QApplication

from explorer_app.controller import Editing, Engine, WholePictures
from explorer_app.session.session import Session
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.canvas.compare_view import CompareView, Side
from explorer_app.window.canvas.frame_image import frame_image
from explorer_app.window.model.model_names import distinct_names
from gpu_backend import Frame


class Comparing(QObject):
    """Fetches the compared pictures and shows them over the canvas.

    Parameters
    ----------
    before
        The action that is checked while the picture before the last step is shown. Releasing its key unchecks it; after
        a menu choice, pressing the key does.
    """

    def __init__(
        self,
        canvas: Canvas,
        engine: Engine,
        editing: Editing,
        pictures: WholePictures,
        before: QAction,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self.view = CompareView(canvas)
        self._engine = engine
        self._editing = editing
        self._pictures = pictures
        self._before = before
        self._compared: list[tuple[str, Session | Frame]] = []
        self._compares_models = False
        """Whether the second picture is that of the open model, to which the session may not be fitted yet."""
        self._held: tuple[Path, tuple[str, str], Frame] | None = None
        """The path of a model that is to be compared with, and name and picture of the one that was open before."""
        self._frames: list[Frame] = []
        """Frames of the shown images; a QImage does not own their bytes."""
        before.setAutoRepeat(False)
        self.view.left.connect(self._forget)
        pictures.changed.connect(self._show)
        engine.model_changed.connect(self._model_changed)

    def show_before(self, on: bool) -> None:
        """Show the picture before the active gesture or the last step; False shows the current picture again."""
        app = QApplication.instance()
        assert app is not None
        if not on:
            app.removeEventFilter(self)
            self.leave()
            return
        before = self._editing.session_before
        if before is None:
            self._before.setChecked(False)
            return
        self._compared, self._compares_models = [before], False
        app.installEventFilter(self)  # only while the key is held
        self._show()

    def compare(self, numbers: Sequence[int]) -> bool:
        """Compare two history entries by number; one entry with the picture; none: before and after the last step.

        Comparing the same pictures again ends the comparison. Returns whether there are two pictures.
        """
        history = self._editing.history
        entries = [entry for number in numbers[:2] if (entry := history.entry(number)) is not None]
        sides: list[tuple[str, Session | Frame]] = [(entry.label, entry.session) for entry in entries]
        before = self._editing.session_before
        if not sides and before is not None:
            sides.append(before)
        if len(sides) == 1:
            sides.append(("Now", self._editing.session))
        if len(sides) == 2 and sides == self._compared:
            self.leave()
        elif len(sides) == 2 and self._engine.model.facts is not None:
            self._before.setChecked(False)
            self._compared, self._compares_models = sides, False
            self._show()
        return len(sides) == 2

    def hold_model(self, other: Path) -> None:
        """Hold the picture, to compare it with the one that another model makes of the latent once that is open."""
        frame, facts = self._engine.preview.frame, self._engine.model.facts
        if frame is not None and facts is not None:
            self._held = other, (facts.name, facts.path), replace(frame, pixels=frame.pixels.copy())

    @Slot()
    def _model_changed(self) -> None:
        """Leave a comparison of the former model's pictures; compare models if that was requested."""
        self.leave()
        held, facts = self._held, self._engine.model.facts
        if held is None or facts is None:
            return
        self._held = None
        if Path(facts.path) == held[0]:
            before, now = distinct_names([held[1], (facts.name, facts.path)])
            self._compared = [(before, held[2]), (now, self._editing.session)]
            self._compares_models = True
            self._show()

    @property
    def is_on(self) -> bool:
        """Whether two pictures are compared."""
        return len(self._compared) == 2

    @Slot()
    def leave(self) -> None:
        """End the comparison and show the picture."""
        self._before.setChecked(False)
        self.view.leave()
        self._forget()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """End the comparison when the key is released or the window is deactivated."""
        is_key = event.type() == QEvent.Type.KeyRelease and isinstance(event, QKeyEvent) and not event.isAutoRepeat()
        is_own = is_key and isinstance(event, QKeyEvent) and QKeySequence(event.key()) in self._before.shortcuts()
        if is_own or event.type() == QEvent.Type.ApplicationDeactivate:
            self.show_before(False)
        return False

    @Slot()
    def _forget(self) -> None:
        self._compared = []
        self._compares_models = False
        self._frames = []

    @Slot()
    def _show(self) -> None:
        """Show the pictures that are rendered; the others are shown later."""
        facts = self._engine.model.facts
        if not self._compared or facts is None:
            return
        sides, frames = [], []
        for name, what in self._compared:
            frame = what if isinstance(what, Frame) else self._pictures.get(what)
            if frame is not None:
                frames.append(frame)
            is_of_other = isinstance(what, Session) and what.model.model_id not in ("", facts.model_id)
            if is_of_other and not self._compares_models:
                name = f"{name}, with {facts.name}"
            sides.append(Side(name, None if frame is None else frame_image(frame)))
        if len(sides) == 1:
            key = self._before.shortcut().toString()
            self.view.show_one(sides[0], f"release {key} to return")
        else:
            self.view.show_two(*sides)
        self._frames = frames
