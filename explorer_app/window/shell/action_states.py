"""Keeps the actions in step with the session: which are enabled or checked, and what Undo and Redo are called."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QAction

from explorer_app.controller import Editing, Engine, ExportQueueController
from explorer_app.window.actions import actions
from explorer_app.window.controls.menu_text import menu_text


class ActionStates(QObject):
    """Enables, checks and names the actions of the table."""

    def __init__(
        self,
        by_key: Mapping[str, QAction],
        engine: Engine,
        editing: Editing,
        export: ExportQueueController,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._by_key = by_key
        self._engine = engine
        self._editing = editing
        self._export = export
        self._has_picture = False
        self._was_gesturing = False
        engine.model_changed.connect(self._enable)
        engine.devices.changed.connect(self._enable)
        engine.preview.frame_changed.connect(self._frame_changed)
        editing.session_changed.connect(self._session_changed)
        editing.drifting_changed.connect(self._check_drift)
        editing.history_changed.connect(self._show_history)
        export.changed.connect(self._enable)
        self._check_layer()
        self._check_drift()
        self._show_history()

    @Slot()
    def _frame_changed(self) -> None:
        if self._engine.preview.frame is not None:  # and from now on: the last frame stays until the next one
            self._engine.preview.frame_changed.disconnect(self._frame_changed)
            self._enable()

    @Slot()
    def _session_changed(self) -> None:
        self._check_layer()
        is_gesturing = self._editing.is_gesturing
        if is_gesturing != self._was_gesturing:
            self._was_gesturing = is_gesturing
            if not self._editing.history.can_undo:
                self._enable()

    def _check_layer(self) -> None:
        self._by_key["layer"].setChecked(self._editing.session.tap is not None)

    @Slot()
    def _check_drift(self) -> None:
        self._by_key["drift"].setChecked(self._editing.drifting)

    @Slot()
    def _show_history(self) -> None:
        history = self._editing.history
        for key, label in (("undo", history.undo_label), ("redo", history.redo_label)):
            action = self._by_key[key]
            word = key.capitalize()
            action.setText(f"&{word} {menu_text(_inside_a_sentence(label))}" if label else f"&{word}")
            action.setIconText(word)
        self._enable()

    @Slot()
    def _enable(self) -> None:
        facts, history = self._engine.model.facts, self._editing.history
        self._has_picture = self._engine.preview.frame is not None
        there = {
            "model": facts is not None,
            "transform": facts is not None and facts.has_transform,
            "picture": self._has_picture or self._engine.stored_picture is not None,
            "undo": history.can_undo or self._editing.is_gesturing,
            "redo": history.can_redo,
            "exporting": self._export.progress is not None,
            "gpu": facts is not None and self._engine.devices.state.is_on_gpu,
        }
        actions.enable(self._by_key, {need for need, is_there in there.items() if is_there})


def _inside_a_sentence(label: str) -> str:
    """Return a label that begins small, unless its first word is a name such as SeFa; names in it stay as they are."""
    first, space, rest = label.partition(" ")
    return (first.lower() if first[1:].islower() or len(first) == 1 else first) + space + rest
