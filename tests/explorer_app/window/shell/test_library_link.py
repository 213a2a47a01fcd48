"""The library in the window: it opens in Animate, follows the history, and its requests arrive."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication

from explorer_app.session.edits import GoToSeed
from explorer_app.session.history import KeptSession
from explorer_app.session.session import Session
from explorer_app.window.library.kept_drop import kept_data
from tests.helpers.fake_controller import FakeController
from tests.helpers.panels import LEFT, NO_KEYS

Make = Any
COPY = Qt.DropAction.CopyAction


def test_the_library_shows_what_is_kept_and_does_with_it_what_it_says(make: Make) -> None:
    controller = FakeController(serves_thumbnails=True)
    editing = controller.editing
    sessions = [GoToSeed(seed).apply(Session()) for seed in (3, 8)]
    editing.history = editing.history.with_kept(tuple(KeptSession(session, "kept") for session in sessions))
    window = make(controller)
    window.workspace.switch_to("animate")
    panel = window.docks["library"].panel
    first, second = (entry.number for entry in panel.grid.entries.entries)
    panel.tags_requested.emit((first, second), "snow")
    assert [entry.tags for entry in panel.grid.entries.entries] == [("snow",), ("snow",)]
    panel.mix_requested.emit((first, second))
    assert ("mix_in_kept", (first, second)) in controller.calls
    timeline, mix = window.docks["timeline"].panel, window.mix
    place = QPointF(timeline.view.axis.x(2.0), 60)
    for target, at in ((timeline.view.viewport(), place), (mix, QPointF(9, 9))):
        data = kept_data((second,))
        for event in (
            QDragEnterEvent(at.toPoint(), COPY, data, LEFT, NO_KEYS),
            QDropEvent(at, COPY, data, LEFT, NO_KEYS),
        ):
            QApplication.sendEvent(target, event)
    assert ("keep_entries", (second,), Fraction(2)) in controller.calls
    assert ("mix_in_kept", (second,)) in controller.calls
    panel.copy_requested.emit(first, "command")
    assert QGuiApplication.clipboard().text().startswith("latentloom render")
    panel.copy_requested.emit(second, "python")
    text = QGuiApplication.clipboard().text()
    assert "seeds=((8, 1.0),)" in text
    assert "open_renderer" in text
    window.actions_by_key["copy-command"].trigger()
    assert "recipe:" in QGuiApplication.clipboard().text()
    panel.remove_requested.emit((first, second))
    assert panel.grid.entries.entries == ()
