"""Exports that were stopped, killed or left, and continue from their manifests."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import manifest_bytes, read_manifest
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import Level, Message
from explorer_app.session.edits import GoToSeed
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference
from tests.helpers.controller_harness import Harness


def sequence(harness: Harness, folder: str = "out", frames: int = 6) -> SequenceSettings:
    """A way from the picture as it is to another seed."""
    session = harness.controller.editing.session
    keys = tuple(Keyframe.of(resolve(item)) for item in (session, GoToSeed(77).apply(session)))
    return SequenceSettings(keys, harness.folder / folder, "walk", session.model, "w-linear", frames - 1, z_dim=8)


def content(folder: Path) -> dict[str, bytes]:
    """Finished files. Beside them may lie part files of an export that runs, which go while one looks."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".part"}


def is_complete(settings: SequenceSettings) -> bool:
    return read_manifest(settings.manifest_path).state == "complete"


def stop_after(harness: Harness, settings: SequenceSettings, frames: int, stop: Callable[[], None]) -> None:
    """Begin an export and stop it when it has rendered some frames."""
    harness.engine.gate.shut()
    harness.controller.export.start(settings)
    harness.engine.gate.wait_for_knock()
    harness.engine.gate.let_through(frames)
    harness.until((settings.folder / f"walk_{frames - 1:05d}.png").exists)
    stop()
    harness.engine.gate.open()


def offers(harness: Harness) -> list[Message]:
    return [message for message in harness.messages.messages if message.action and "not finished" in message.sentence]


@pytest.fixture
def undisturbed(open_harness: Harness) -> dict[str, bytes]:
    settings = sequence(open_harness, "undisturbed")
    open_harness.controller.export.start(settings)
    open_harness.until(lambda: open_harness.controller.export.progress is None)
    return content(settings.folder)


def test_an_export_that_was_stopped_goes_on_after_the_picture_has_changed(
    open_harness: Harness, undisturbed: dict[str, bytes]
) -> None:
    harness = open_harness
    settings = sequence(harness)
    stop_after(harness, settings, 2, harness.controller.export.cancel)
    harness.until(lambda: harness.controller.export.progress is None)
    harness.controller.editing.edit(GoToSeed(5))
    harness.rest()
    harness.controller.files.open(settings.manifest_path)
    harness.until(lambda: is_complete(settings))
    assert content(settings.folder) == undisturbed
    assert harness.said(Level.WARNING) == []


def test_an_unfinished_export_is_offered_at_the_next_start_and_ends_byte_for_byte(
    open_harness: Harness, undisturbed: dict[str, bytes]
) -> None:
    settings = sequence(open_harness)
    stop_after(open_harness, settings, 2, lambda: None)
    again = open_harness.reopened()
    assert read_manifest(settings.manifest_path).state == "unfinished"
    again.start()
    again.until(lambda: offers(again))
    (offer,) = offers(again)
    assert offer.sentence == f"The export “walk” of 6 frames in {settings.folder} is not finished."
    assert offer.action is not None
    assert offer.action.is_needed()
    offer.action.call()
    again.until(lambda: again.controller.export.progress)
    assert not offer.action.is_needed()
    again.until(lambda: is_complete(settings))
    again.until(lambda: again.controller.export.progress is None)
    assert content(settings.folder) == undisturbed
    third = again.reopened()
    third.start()
    third.close()
    assert len(offers(third)) == 1, "the log is the same: nothing was offered anew"


@pytest.mark.parametrize("end", ["complete", "cancelled"])
def test_nothing_is_offered_of_an_export_that_was_ended(open_harness: Harness, end: str) -> None:
    harness = open_harness
    settings = sequence(harness)
    if end == "cancelled":
        stop_after(harness, settings, 2, harness.controller.export.cancel)
    else:
        harness.controller.export.start(settings)
    harness.until(lambda: harness.controller.export.progress is None)
    again = harness.reopened()
    again.start()
    again.close()
    assert offers(again) == []
    assert again.said(Level.WARNING) == []
    assert [job.state for job in again.controller.export.jobs] == ["done" if end == "complete" else "cancelled"]


def test_an_export_whose_end_was_not_noted_is_done_by_its_manifest(open_harness: Harness) -> None:
    settings = sequence(open_harness)
    stop_after(open_harness, settings, 2, lambda: None)
    open_harness.close()
    settings.manifest_path.write_bytes(manifest_bytes(settings, "complete", 6))
    again = open_harness.reopened()
    again.start()
    again.until(lambda: [job.state for job in again.controller.export.jobs] == ["done"])
    assert offers(again) == []


def test_an_export_whose_files_were_deleted_meanwhile_starts_over(
    open_harness: Harness, undisturbed: dict[str, bytes]
) -> None:
    settings = sequence(open_harness)
    stop_after(open_harness, settings, 2, lambda: None)
    again = open_harness.reopened()
    shutil.rmtree(settings.folder)
    again.start()
    again.until(lambda: offers(again))
    action = offers(again)[0].action
    assert action is not None
    action.call()
    again.until(lambda: settings.manifest_path.exists() and is_complete(settings))
    again.until(lambda: again.controller.export.progress is None)
    assert content(settings.folder) == undisturbed


def test_an_export_that_is_resumed_before_the_last_model_is_read_goes_on_with_it(
    open_harness: Harness, undisturbed: dict[str, bytes]
) -> None:
    harness = open_harness
    settings = sequence(harness)
    stop_after(harness, settings, 2, harness.controller.export.cancel)
    harness.until(lambda: harness.controller.export.progress is None)
    again = harness.reopened()
    again.library.gate.shut()
    again.controller.start()
    assert again.controller.engine.model.facts is not None, "known from the last start"
    again.controller.export.resume(settings.manifest_path)
    again.until(lambda: any(job.state == "waiting" for job in again.controller.export.jobs))
    again.library.gate.open()
    again.until(lambda: is_complete(settings))
    again.close()
    assert content(settings.folder) == undisturbed


def test_an_export_of_another_model_opens_that_model(open_harness: Harness, undisturbed: dict[str, bytes]) -> None:
    harness = open_harness
    settings = sequence(harness)
    stop_after(harness, settings, 2, harness.controller.export.cancel)
    harness.until(lambda: harness.controller.export.progress is None)
    harness.open("dogs")
    harness.controller.export.resume(settings.manifest_path)
    harness.until(lambda: is_complete(settings))
    assert content(settings.folder) == undisturbed
    assert harness.controller.engine.model.facts is not None
    assert harness.controller.engine.model.facts.name == "cats"


def test_an_export_of_a_missing_model_reports_it(open_harness: Harness) -> None:
    harness = open_harness
    settings = sequence(harness)
    settings = replace(settings, model=replace(settings.model, path="", name="zebras", model_id="f" * 64))
    settings.folder.mkdir()
    settings.manifest_path.write_bytes(manifest_bytes(settings, "unfinished", None))
    harness.controller.export.resume(settings.manifest_path)
    harness.until(lambda: harness.said(Level.WARNING))
    assert (
        "was made with zebras, which was not found; open that model to continue the export"
        in harness.said(Level.WARNING)[0]
    )
    assert harness.controller.export.progress is None


def test_without_a_model_an_export_says_which_one_it_needs(harness: Harness) -> None:
    settings = replace(sequence(harness), model=ModelReference("", "zebras", "f" * 64))
    settings.folder.mkdir()
    settings.manifest_path.write_bytes(manifest_bytes(settings, "unfinished", None))
    again = harness.reopened()
    again.bundled = None  # as if the installation were damaged
    again.controller.start()
    again.controller.export.resume(settings.manifest_path)
    again.until(lambda: again.has_said("was made with zebras, which was not found; open that model"))
    count = len(again.said())
    again.controller.export.open_model_of(again.controller.export.jobs[0].job_id)
    assert len(again.said()) == count + 1, "its button is not dead"


def test_an_export_whose_model_file_was_replaced_says_so_and_waits(open_harness: Harness) -> None:
    harness = open_harness
    settings = sequence(harness)
    settings = replace(settings, model=replace(settings.model, path="", model_id="f" * 64))
    settings.folder.mkdir()
    settings.manifest_path.write_bytes(manifest_bytes(settings, "unfinished", None))
    harness.open("dogs")
    harness.controller.export.resume(settings.manifest_path)
    harness.until(lambda: any("made with another file named cats" in text for text in harness.said(Level.WARNING)))
    (job,) = harness.controller.export.jobs
    assert job.state == "waiting"


def test_a_manifest_can_be_what_the_program_starts_with(open_harness: Harness, undisturbed: dict[str, bytes]) -> None:
    settings = sequence(open_harness)
    stop_after(open_harness, settings, 2, open_harness.controller.export.cancel)
    open_harness.until(lambda: open_harness.controller.export.progress is None)
    again = open_harness.reopened()
    again.controller.start(document=settings.manifest_path)
    again.until(lambda: settings.folder.exists() and content(settings.folder) == undisturbed)


def test_frames_that_came_while_the_window_was_busy_are_shown_as_one_step(open_harness: Harness) -> None:
    harness = open_harness
    settings = sequence(harness, frames=40)
    harness.heard.clear()
    harness.controller.export.start(settings)
    for _ in range(4000):  # without a look at events, as a window that is held up
        if (settings.folder / "walk_00039.png").exists():
            break
        threading.Event().wait(0.005)
    harness.until(lambda: harness.controller.export.progress is None)
    assert harness.heard.count("export") <= 6


def test_an_export_that_runs_is_not_begun_twice(open_harness: Harness) -> None:
    harness = open_harness
    settings = sequence(harness)
    harness.engine.gate.shut()
    harness.controller.export.start(settings)
    harness.until(settings.manifest_path.exists)
    harness.controller.export.start(settings)
    assert harness.said()[-1] == "The export “walk” is running already."
    harness.engine.gate.open()
    harness.until(lambda: harness.controller.export.progress is None)
