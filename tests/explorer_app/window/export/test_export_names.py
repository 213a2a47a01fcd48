"""Names and places of exports: what is offered, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from explorer_app.exporting.export_list import JobState
from explorer_app.exporting.manifest import manifest_bytes
from explorer_app.session.history import History
from explorer_app.session.tracks import Sound
from explorer_app.settings import Settings
from explorer_app.window.export.export_dialog import ExportDialog
from tests.helpers.export_dialogs import FACTS, SESSION, choose, history, moving, opened, type_seeds


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "nul", "COM1.take", "x" * 101, "漢" * 80])
def test_a_name_that_no_file_can_have_is_refused_with_a_sentence(made: ExportDialog, name: str) -> None:
    type_seeds(made, "1-3")
    made.names.name.setText(name)
    assert not made.export.isEnabled()
    assert "name" in made.hint.text()


def test_without_a_folder_it_asks_for_one(made: ExportDialog) -> None:
    type_seeds(made, "1-3")
    made.names.folder.line.clear()
    assert not made.export.isEnabled()
    assert "folder" in made.hint.text()


def test_a_still_takes_no_other_files_place_unless_asked(qtbot: QtBot, settings: Settings, tmp_path: Path) -> None:
    settings.remember_folder("export", tmp_path)
    (tmp_path / "walk.png").write_bytes(b"a photograph")
    dialog = opened(qtbot, settings, History())
    choose(dialog, "still")
    assert dialog.wanted.name == "walk-2"
    dialog.names.name.setText("walk")
    assert not dialog.export.isEnabled()
    assert "There is a walk.png in this folder" in dialog.hint.text()
    dialog.names.overwrite.setChecked(True)
    assert dialog.export.isEnabled()


def test_the_name_that_is_offered_is_free_for_what_is_exported(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    taken = ["walk.png", "walk-2.webm", "walk-3_00000.png", "walk-4.manifest.json", "own.gif", "own_00000.png"]
    for name in taken:
        (tmp_path / name).touch()
    dialog = opened(qtbot, settings, History())
    names = {}
    for preset in ("still", "sequence", "web", "gif"):
        choose(dialog, preset)
        names[preset] = dialog.wanted.name
    assert names == {"still": "walk-2", "sequence": "walk", "web": "walk", "gif": "walk"}
    settings.choose("export.name", "walk-2")
    choose(dialog, "web")
    assert dialog.wanted.name == "walk-3"
    dialog.names.name.setText("own")
    choose(dialog, "gif")
    assert dialog.wanted.name == "own", "a name that the user typed stays"
    dialog.names.folder.line.setText("~no-such-user-anywhere/films")
    assert dialog.wanted.folder == Path("~no-such-user-anywhere/films")


def test_a_name_of_another_export_is_refused_before_the_dialog_closes(
    made: ExportDialog, qtbot: QtBot, tmp_path: Path
) -> None:
    type_seeds(made, "1-3")
    made.names.name.setText("mine")
    mine = made.wanted
    for state in ("unfinished", "cancelled", "complete"):
        mine.manifest_path.write_bytes(manifest_bytes(mine, state, None))
        made.interpolation.frames.setValue(made.interpolation.frames.value() + 1)
        assert "There is another export named mine in this folder" in made.hint.text()
        assert not made.export.isEnabled()
        made.interpolation.frames.setValue(made.interpolation.frames.value() - 1)
        assert made.export.isEnabled(), "the same export continues"
    made.interpolation.frames.setValue(made.interpolation.frames.value() + 1)
    made.names.overwrite.setChecked(True)
    assert made.export.isEnabled()
    made.names.overwrite.setChecked(False)
    mine.manifest_path.unlink()
    (tmp_path / "mine_00000.png").touch()
    made.names.name.setText("")
    made.names.name.setText("mine")
    assert "There is a mine_00000.png in this folder" in made.hint.text()


def test_the_names_of_exports_that_are_not_finished_are_neither_offered_nor_taken(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    states: dict[str, JobState] = {"walk": "running", "walk-2": "waiting", "walk-3": "paused"}

    def unfinished_in(folder: Path) -> dict[str, JobState]:
        return states if folder == tmp_path else {}

    dialog = ExportDialog(SESSION, history(), FACTS, settings, unfinished_in=unfinished_in)
    qtbot.addWidget(dialog)
    type_seeds(dialog, "1-3")
    assert dialog.wanted.name == "walk-4"
    for name, state in states.items():
        dialog.names.name.setText(name)
        assert f"The export “{name}” into this folder is {state}; choose another name." in dialog.hint.text()
        assert not dialog.export.isEnabled()
    wanted = dialog.wanted
    wanted.manifest_path.write_bytes(manifest_bytes(wanted, "unfinished", None))
    dialog.jobs_changed()
    assert dialog.export.isEnabled(), "a paused one continues"


def test_a_name_that_another_window_takes_meanwhile_is_given_up(
    made: ExportDialog, qtbot: QtBot, tmp_path: Path
) -> None:
    type_seeds(made, "1-3")
    assert made.wanted.name == "walk"
    (tmp_path / "walk_00000.png").touch()
    with qtbot.waitSignal(made.export_requested) as signal:
        qtbot.mouseClick(made.export, Qt.MouseButton.LeftButton)
    assert signal.args[0].name == "walk-2"


def test_a_typed_name_that_another_window_takes_meanwhile_keeps_the_dialog_open(
    made: ExportDialog, qtbot: QtBot, tmp_path: Path
) -> None:
    type_seeds(made, "1-3")
    made.names.name.setText("evening")
    (tmp_path / "evening_00000.png").touch()
    with qtbot.assertNotEmitted(made.export_requested):
        qtbot.mouseClick(made.export, Qt.MouseButton.LeftButton)
    assert made.isVisible()
    assert "There is a evening_00000.png" in made.hint.text()


def test_the_name_of_the_project_is_offered_until_another_one_is_chosen_in_it(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)

    def offered(project: str, chosen: str = "") -> str:
        dialog = ExportDialog(SESSION, history(), FACTS, settings, project=project)
        qtbot.addWidget(dialog)
        type_seeds(dialog, "1-3")
        name = dialog.wanted.name
        if chosen:
            dialog.names.name.setText(chosen)
            dialog.names.remember()
        return name

    assert offered("", "walk") == "walk"
    assert offered("evening", "take") == "evening"
    assert offered("evening") == "take"
    assert offered("morning") == "morning"
    assert offered("x" * 101) == "take", "no file can have such a name"
    (tmp_path / "morning_00000.png").touch()
    assert offered("morning") == "morning-2"


def test_a_disk_with_too_little_room_is_reported_before_the_export(
    made: ExportDialog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Path] = []

    def usage(folder: Path) -> SimpleNamespace:
        asked.append(folder)
        return SimpleNamespace(free=24_000)

    type_seeds(made, "1-3")
    assert "free" not in made.hint.text()
    monkeypatch.setattr("shutil.disk_usage", usage)
    made.names.folder.line.setText(str(tmp_path / "new" / "folder"))
    assert made.hint.text().endswith("Only 24 kB are free on this disk.")
    assert made.export.isEnabled(), "it is an estimate"
    assert asked[-1] == tmp_path, "the folder is made later"


def test_the_dialog_says_whether_the_sound_is_in_the_file(qtbot: QtBot, settings: Settings) -> None:
    session = moving()
    sound = Sound("drums", "ab" * 32, "drums.wav", 3.0)
    dialog = opened(qtbot, settings, history(), replace(session, timeline=replace(session.timeline, sounds=(sound,))))
    said = {}
    for preset in ("still", "sheet", "sequence", "web", "gif"):
        choose(dialog, preset)
        said[preset] = dialog.hint.text()
    assert "The sound is in the file." in said["web"]
    assert all("The sound is left out." in said[preset] for preset in ("sequence", "gif"))
    assert not any("sound" in said[preset] for preset in ("still", "sheet"))
