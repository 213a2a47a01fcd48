"""Closing the window at any moment, with everything real: it ends at once, and nothing half done is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QPoint

from explorer_app.exporting.job import SequenceJob
from explorer_app.messages import Level
from explorer_app.session.edits import GoToSeed
from explorer_app.session.storage import load_session
from tests.helpers import mouse
from tests.helpers.person import Person

Moment = Callable[[Person], object]


def leave(person: Person, before: set[threading.Thread]) -> None:
    """Close the window as a click on its frame does, keep an export for later, and see that the program ends whole."""
    person.window.close()
    if (question := person.window.quit_question.box) is not None:
        person.click(next(button for button in question.buttons() if "keep" in button.text()))
    assert not person.window.isVisible()
    person.app.close()  # as `run_window` does next; it also waits for the thread that imports torch
    assert [thread for thread in threading.enumerate() if thread not in before] == []
    assert person.said(Level.WARNING) == []


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("moves", [1, 2, 40])
def test_in_the_middle_of_a_drag(
    sit_down: Callable[..., Person], small_network: Path, tmp_path: Path, moves: int
) -> None:
    before = set(threading.enumerate())
    person = sit_down(bundled=small_network)
    person.start()
    at = person.canvas.rect().center()
    mouse.press(person.canvas, at)
    for step in range(1, moves + 1):
        mouse.move(person.canvas, at + QPoint(step, 0))
    session = person.session
    leave(person, before)
    assert load_session(tmp_path / "person" / "state" / "session.loom") == session


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(lambda person: person.controller.engine.model.loading, id="as soon as it is asked for"),
        pytest.param(
            lambda person: person.controller.engine.model.loading and person.controller.engine.model.loading.done,
            id="being read",
        ),
        pytest.param(
            lambda person: (
                person.controller.engine.model.loading and person.controller.engine.model.loading.stage == "Preparing"
            ),
            id="being prepared",
        ),
        pytest.param(
            lambda person: person.controller.engine.model.facts and not person.controller.engine.model.loading,
            id="before its first picture",
        ),
    ],
)
def test_while_a_model_is_opened(sit_down: Callable[..., Person], moment: Moment) -> None:
    before = set(threading.enumerate())
    person = sit_down()
    reached: list[bool] = []

    def look() -> None:
        if not reached and moment(person):
            reached.append(True)
            leave(person, before)

    person.app.start()
    for signal in (person.controller.engine.model.loading_changed, person.controller.engine.model_changed):
        signal.connect(look)
    person.until(lambda: reached)


def test_during_an_export_that_goes_on_the_next_time_byte_for_byte(
    sit_down: Callable[..., Person], small_network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(threading.enumerate())
    is_ready = SequenceJob.is_ready.__get__
    undisturbed, stopped = tmp_path / "undisturbed", tmp_path / "stopped"
    person = sit_down(bundled=small_network)
    person.start()
    person.ask_for_export(undisturbed, "walk", "3", 4)
    person.until(lambda: f"Exported 5 frames to {undisturbed}." in person.said())
    with monkeypatch.context() as slow:
        # Files lag behind from then on, so that the export is under way however slow this thread is.
        slow.setattr(SequenceJob, "is_ready", property(lambda job: job.delivered < 3 and is_ready(job)))
        person.ask_for_export(stopped, "walk", "3", 4)
        person.until(lambda: person.controller.export.progress and person.controller.export.progress.done >= 2)
        leave(person, before)

    left = contents(stopped)
    pictures = [name for name in left if name.endswith(".png")]
    assert 2 <= len(pictures) < 5
    assert set(left) == {*pictures, "walk.manifest.json"}, "no file that was being written"
    for name in pictures:
        with Image.open(stopped / name) as picture:
            picture.load()
    times = {name: (stopped / name).stat().st_mtime_ns for name in pictures}
    person.close()

    again = sit_down(bundled=small_network)
    again.start()
    again.ask_for_export(stopped, "walk", "3", 4)
    again.until(lambda: f"Exported 5 frames to {stopped}." in again.said())
    assert contents(stopped) == contents(undisturbed)
    assert {name: (stopped / name).stat().st_mtime_ns for name in pictures} == times, "what was there stayed"


def test_while_a_picture_is_saved_it_is_there_whole(
    sit_down: Callable[..., Person], small_network: Path, tmp_path: Path
) -> None:
    before = set(threading.enumerate())
    person = sit_down(bundled=small_network)
    person.start()
    person.controller.editing.edit(GoToSeed(7))
    person.press_keys("Ctrl+Shift+S")
    person.answer_file_dialog(tmp_path / "seven.png")
    leave(person, before)
    with Image.open(tmp_path / "seven.png") as picture:
        picture.load()
        assert picture.size == (32, 32)
