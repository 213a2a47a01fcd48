"""Messages while there is no picture, or while a model is read: card, progress line, notices of docks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QObject, Slot

from explorer_app.controller import Engine
from explorer_app.window.canvas.canvas_overlay import CanvasOverlay
from explorer_app.window.controls.short_words import short_words
from explorer_app.window.docks.dock import Dock
from explorer_app.window.messages.message_strip import MessageStrip
from explorer_app.window.model.model_text import loading_text
from explorer_app.window.shell.dock_table import DOCKS
from gpu_backend import printable


class PictureState(QObject):
    """Chooses the card over an empty canvas, or the progress line below a picture.

    Panels without content until there is a model show which file is being read.

    Parameters
    ----------
    is_snapshot
        Whether a file is one of the folder of snapshots that is open: their bar says what is read, and a line below it
        would move it away from the pointer.
    """

    def __init__(
        self,
        card: CanvasOverlay,
        strip: MessageStrip,
        docks: Mapping[str, Dock],
        engine: Engine,
        is_snapshot: Callable[[str], bool],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._card = card
        self._strip = strip
        self._docks = docks
        self._engine = engine
        self._is_snapshot = is_snapshot
        engine.model_changed.connect(self._show)
        engine.devices.changed.connect(self._show)
        engine.model.loading_changed.connect(self._show)
        engine.preview.frame_changed.connect(self._frame_changed)
        self._show()

    @Slot()
    def _frame_changed(self) -> None:
        if self._engine.preview.frame is not None:  # and from now on: the last frame stays until the next one
            self._engine.preview.frame_changed.disconnect(self._frame_changed)
            self._show_card()

    @Slot()
    def _show(self) -> None:
        loading = self._engine.model.loading
        is_empty = loading is not None and self._engine.model.facts is None
        name = printable(Path(loading.path).name) if loading is not None else ""
        for spec in DOCKS:
            if spec.needs_model:
                self._docks[spec.key].show_notice(f"{short_words(name)} is being read." if is_empty else "")
        self._show_card()

    def _show_card(self) -> None:
        engine = self._engine
        loading, facts, frame = engine.model.loading, engine.model.facts, engine.preview.frame
        stored = engine.stored_picture
        is_stored = stored is not None and facts is not None and (loading is None or loading.path == facts.path)
        if loading is None or frame is None or is_stored:
            self._strip.hide_progress()
        if is_stored:
            self._card.show_nothing()  # the status bar shows the progress
        elif loading is not None:
            news = printable(Path(loading.path).name), loading_text(loading.stage, loading.share), loading.share
            if frame is not None and self._is_snapshot(loading.path):
                self._strip.hide_progress()
                self._card.show_nothing()
            elif frame is not None:
                self._strip.show_progress(*news)
                self._card.show_nothing()
            else:
                self._card.show_loading(*news)
        elif facts is None:
            self._card.show_no_model(has_bundled=engine.model.has_bundled)
        elif frame is None:
            self._card.show_waiting(printable(facts.name), "Rendering the first picture.")
        else:
            self._card.show_nothing()
