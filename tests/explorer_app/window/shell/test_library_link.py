"""The library in the window: it opens in Animate, follows the history, and its requests arrive."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QFileDialog

from explorer_app.rendering.thumbnails import w_signature
from explorer_app.session.edits import GoToSeed
from explorer_app.session.history import KeptSession
from explorer_app.session.session import Session
from explorer_app.window.library.kept_drop import kept_data
from tests.helpers.fake_controller import FakeController
from tests.helpers.panels import LEFT, NO_KEYS
from tests.helpers.windows import dialog_of

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


def test_latents_are_imported_from_the_file_that_a_dialog_chose(make: Make, tmp_path: Path) -> None:
    controller = FakeController()
    window = make(controller)
    window.docks["library"].panel.import_requested.emit()
    chooser = dialog_of(window, QFileDialog)
    chooser.fileSelected.emit(str(tmp_path / "both.npz"))
    chooser.close()
    assert controller.calls[-1] == ("import_kept", tmp_path / "both.npz")


def test_latents_are_exported_under_a_name_that_every_system_takes(make: Make, tmp_path: Path) -> None:
    controller = FakeController()
    kept = tuple(KeptSession(GoToSeed(seed).apply(Session()), label) for seed, label in ((3, "a/b: c"), (8, "..")))
    controller.editing.history = controller.editing.history.with_kept(kept)
    window = make(controller)
    entries = controller.editing.history.kept
    for chosen, name in ((entries[:1], "a-b- c.npz"), (entries[1:], "--.npz"), (entries, "latents.npz")):
        window.docks["library"].panel.export_requested.emit(tuple(entry.number for entry in chosen))
        chooser = dialog_of(window, QFileDialog)
        assert [Path(path).name for path in chooser.selectedFiles()] == [name]
        chooser.fileSelected.emit(str(tmp_path / name))
        chooser.close()
        assert controller.calls[-1] == ("export_latents", [entry.label for entry in chosen], tmp_path / name)


def test_two_kept_pictures_are_compared_on_the_canvas(make: Make) -> None:
    controller = FakeController()
    kept = tuple(KeptSession(GoToSeed(seed).apply(Session()), f"seed {seed}") for seed in (3, 8))
    controller.editing.history = controller.editing.history.with_kept(kept)
    window = make(controller)
    panel = window.docks["library"].panel
    panel.compare_requested.emit(tuple(entry.number for entry in controller.editing.history.kept))
    assert [side.name for side in window.comparing.view.sides] == ["seed 3", "seed 8"]


def test_likeness_is_that_to_the_latent_of_the_picture_on_the_screen(make: Make) -> None:
    controller = FakeController()
    window = make(controller)
    signature = window.docks["library"].panel.shown_signature
    controller.engine.preview.frame = None
    assert signature() is None
    frame = controller.render()
    assert signature() is None, "a frame without its latent"
    ws = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    controller.engine.preview.frame = replace(frame, ws=ws)
    assert np.array_equal(signature(), w_signature(ws))
