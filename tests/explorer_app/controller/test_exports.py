"""Exports beside the preview: their frames, what has to wait for them, and what closing leaves."""

from __future__ import annotations

import json
from typing import Any

from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.picture import read_picture
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import Level
from explorer_app.session.resolve import resolve
from gpu_backend import (
    Latent,
    Recipe,
)
from tests.helpers.controller_harness import Harness


def sequence(harness: Harness, frames: int = 3, name: str = "walk", **options: Any) -> SequenceSettings:
    moved = Keyframe(((Recipe(Latent()), 1.0),))
    return SequenceSettings(
        (Keyframe.of(resolve(harness.controller.editing.session)), moved),
        harness.folder / "out",
        name,
        harness.controller.editing.session.model,
        kind="w-linear",
        frames_per_step=frames - 1,
        z_dim=8,
        **options,
    )


def test_an_export_writes_every_frame_while_the_preview_goes_on(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.export.start(sequence(harness, 6))
    assert harness.controller.export.progress is not None
    assert (harness.controller.export.progress.name, harness.controller.export.progress.total) == ("walk", 6)
    harness.drag(2.5)
    harness.rest()
    harness.until(lambda: harness.controller.export.progress is None)
    assert harness.has_said("Exported 6 frames")
    assert harness.messages.messages[-1].picture == harness.folder / "out" / "walk_00005.png"
    assert len(list((harness.folder / "out").glob("walk_*.png"))) == 6
    assert json.loads((harness.folder / "out" / "walk.manifest.json").read_text())["state"] == "complete"


def test_a_cancelled_export_says_how_far_it_came_and_goes_on_another_time(open_harness: Harness) -> None:
    harness = open_harness
    settings = sequence(harness, 5)
    harness.engine.gate.shut()
    harness.controller.export.start(settings)
    harness.engine.gate.wait_for_knock()
    harness.engine.gate.let_through()
    harness.until((harness.folder / "out" / "walk_00000.png").exists)
    harness.engine.gate.wait_for_knock()
    harness.controller.export.cancel()
    assert harness.controller.export.progress is not None
    assert harness.controller.export.progress.is_stopping
    harness.engine.gate.open()
    harness.until(lambda: harness.controller.export.progress is None)
    assert harness.has_said("The export “walk” was stopped after 1 of 5 frames.")
    rendered = len(harness.engine.requests)
    harness.controller.export.start(settings)
    harness.until(lambda: harness.has_said("Exported 5 frames"))
    assert len(harness.engine.requests) - rendered == 4


def test_another_model_has_to_wait_for_an_export(open_harness: Harness) -> None:
    harness = open_harness
    harness.engine.gate.shut()
    harness.controller.export.start(sequence(harness))
    harness.controller.files.open_model(harness.path("dogs"))
    assert harness.controller.engine.model.loading is None
    assert len(harness.said(Level.WARNING)) == 1
    harness.engine.gate.open()
    harness.until(lambda: harness.controller.export.progress is None)


def test_the_model_of_something_kept_has_to_wait_for_an_export(open_harness: Harness) -> None:
    harness = open_harness
    number = harness.controller.editing.history.entries[0].number
    harness.controller.editing.kept.star(number, True)
    harness.open("dogs")
    harness.drag(2.0)
    harness.engine.gate.shut()
    harness.controller.export.start(sequence(harness))
    harness.controller.editing.go_to_kept(number)
    assert harness.controller.engine.model.loading is None
    assert harness.has_said("“Kept” was made with cats, which has to wait for the export; dogs shows it.")
    harness.engine.gate.open()
    harness.until(lambda: harness.controller.export.progress is None)


def test_an_export_that_cannot_be_written_stops_with_its_sentence(open_harness: Harness) -> None:
    harness = open_harness
    (harness.folder / "out").write_text("in the way")
    harness.controller.export.start(sequence(harness))
    harness.until(lambda: harness.controller.export.progress is None)
    assert len(harness.said(Level.ERROR)) == 1
    harness.drag(1.0)
    harness.rest()


def test_an_export_for_a_model_that_is_not_open_is_refused(open_harness: Harness) -> None:
    harness = open_harness
    settings = sequence(harness)
    harness.open("dogs")
    harness.controller.export.start(settings)
    assert harness.controller.export.progress is None
    assert "open it first" in harness.said(Level.WARNING)[0]


def test_a_picture_saved_during_an_export_passes_the_frames_that_wait(open_harness: Harness) -> None:
    harness = open_harness
    harness.engine.gate.shut()
    harness.controller.export.start(sequence(harness, 5))
    harness.engine.gate.wait_for_knock()
    harness.drag(9.0)
    harness.controller.pictures.save(harness.folder / "kept.png")
    harness.engine.gate.let_through(3)
    harness.until(lambda: "Saved kept.png." in harness.said())
    assert harness.controller.export.progress is not None
    harness.engine.gate.open()
    harness.until(lambda: harness.controller.export.progress is None)


def test_a_picture_saved_just_before_closing_is_there(open_harness: Harness) -> None:
    harness = open_harness
    harness.engine.gate.shut()
    harness.drag(1.0)
    harness.engine.gate.wait_for_knock()
    harness.drag(2.0)
    harness.controller.pictures.save(harness.folder / "kept.png")
    harness.engine.gate.open()
    harness.controller.close()
    saved = read_picture(harness.folder / "kept.png").session
    assert saved is not None
    assert saved.position.x == 2.0


def test_closing_during_an_export_leaves_no_half_file(open_harness: Harness) -> None:
    harness = open_harness
    harness.engine.gate.shut()
    harness.controller.export.start(sequence(harness, 50))
    harness.engine.gate.wait_for_knock()
    harness.engine.gate.let_through(2)
    harness.engine.gate.open()
    harness.controller.close()
    files = sorted((harness.folder / "out").iterdir())
    assert not [file for file in files if file.name.startswith(".")]
    for file in files:
        if file.suffix == ".png":
            read_picture(file)
