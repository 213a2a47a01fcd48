"""Asking for a sequence."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QScrollArea
from pytestqt.qtbot import QtBot

from explorer_app.exporting.export_list import JobState
from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.manifest import manifest_bytes
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.session.edits import GoToSeed
from explorer_app.session.history import History, KeptSession, place_name
from explorer_app.session.session import ModelReference, Position, Session, Slider, Source
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.tracks import Timeline
from explorer_app.settings import Settings
from explorer_app.window.export.export_dialog import ExportDialog
from explorer_app.window.export.export_keys import MAX_SEEDS, length_text, parse_seeds
from explorer_app.window.export.presets import PresetName
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import Latent, Noise, Tap, Transform
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.requests import point_of

FACTS = facts()
MODEL = ModelReference(FACTS.path, FACTS.name, FACTS.model_id)
SESSION = Session(model=MODEL, position=Position(3.25, 1.5), noise=Noise("random", seed=4))


def history(steps: int = 3, kept: int = 0) -> History:
    made = History()
    for number in range(steps):
        made = made.added(Session(model=MODEL, position=Position(number + 0.5, 0.0)), "Walk")
    for entry in made.entries[:kept]:
        made = made.starred(entry.number, True)
    return made


@pytest.fixture
def made(qtbot: QtBot, settings: Settings, tmp_path: Path) -> ExportDialog:
    """A dialog with a folder, and a path that was emptied."""
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history())
    dialog.path.keys.selectAll()
    QTest.keyClick(dialog.path.keys, Qt.Key.Key_Delete)
    return dialog


def opened(qtbot: QtBot, settings: Settings, past: History, session: Session = SESSION) -> ExportDialog:
    dialog = ExportDialog(session, past, FACTS, settings)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def type_seeds(dialog: ExportDialog, text: str) -> None:
    QTest.keyClicks(dialog.path.seeds, text)
    QTest.keyClick(dialog.path.seeds, Qt.Key.Key_Return)


def is_possible(combo: QComboBox, row: int) -> bool:
    return bool(combo.model().flags(combo.model().index(row, 0)) & Qt.ItemFlag.ItemIsEnabled)


def test_seeds_that_are_typed_become_a_path_and_the_exporter_gets_it(made: ExportDialog, qtbot: QtBot) -> None:
    type_seeds(made, "0,1,4-6")
    assert [key.label for key in made.path.keys.keys] == ["seed 0", "seed 1", "seed 4", "seed 5", "seed 6"]
    assert made.isVisible(), "Enter in the field adds; it does not export"
    made.frames.setValue(10)
    with qtbot.waitSignal(made.export_requested) as signal:
        qtbot.mouseClick(made.export, Qt.MouseButton.LeftButton)
    wanted: SequenceSettings = signal.args[0]
    assert wanted.frame_count == 41
    assert {key.noise for key in wanted.keys} == {SESSION.noise}
    assert wanted.model == SESSION.model
    assert wanted.z_dim == 512
    assert [point_of(key.blend[0][0].latent).seeds for key in wanted.keys] == [
        ((seed, 1.0),) for seed in (0, 1, 4, 5, 6)
    ]
    assert len(plan_sequence(wanted)) == 41
    assert not made.isVisible()


def test_that_frames_show_the_picture_is_said_while_a_layer_is_shown(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    of_picture = opened(qtbot, settings, history())
    assert not of_picture.picture_hint.isVisible()
    of_layer = opened(qtbot, settings, history(), replace(SESSION, tap=Tap("b64.conv1")))
    hint = of_layer.picture_hint
    assert hint.isVisible()
    assert "the picture, not the layer" in hint.text()
    assert hint.fontMetrics().horizontalAdvance(hint.text()) <= hint.width(), "in one line"
    assert of_layer.size() == of_picture.size()


def test_count_and_duration_follow_what_is_chosen(made: ExportDialog, qtbot: QtBot) -> None:
    type_seeds(made, "1-4")
    made.frames.setValue(24)
    assert made.length.text() == length_text(73, 24)
    qtbot.mouseClick(made.loop, Qt.MouseButton.LeftButton, pos=QPoint(8, made.loop.height() // 2))
    assert made.loop.isChecked()
    assert made.length.text() == "96 frames · 4.0 s at 24 fps"


def test_ways_through_z_are_possible_only_between_whole_seeds(made: ExportDialog, qtbot: QtBot) -> None:
    type_seeds(made, "7,9")
    rows = {made.kind.itemData(row): row for row in range(made.kind.count())}
    assert all(is_possible(made.kind, row) for row in rows.values())
    qtbot.mouseClick(made.path.add_current, Qt.MouseButton.LeftButton)  # stands between seeds
    assert {kind for kind, row in rows.items() if not is_possible(made.kind, row)} == {"z-linear", "z-slerp"}
    reason = made.kind.itemData(rows["z-slerp"], Qt.ItemDataRole.ToolTipRole)
    assert "seed" in reason
    made.kind.setCurrentIndex(rows["z-slerp"])
    assert not made.export.isEnabled()
    assert "seed" in made.hint.text()


def test_an_empty_path_says_what_to_add_and_cannot_be_exported(made: ExportDialog) -> None:
    assert made.path.empty.isVisible()
    assert not made.export.isEnabled()
    assert "Add at least two latents" in made.hint.text()


def test_the_path_begins_with_the_picture_as_it_is_now(qtbot: QtBot, settings: Settings, tmp_path: Path) -> None:
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history())
    assert [(key.label, key.session) for key in dialog.path.keys.keys] == [("current", SESSION)]
    assert dialog.path.empty.isHidden()
    assert dialog.hint.property("role") == "dim"
    type_seeds(dialog, "7")
    assert dialog.export.isEnabled()
    assert dialog.wanted.frame_count == dialog.frames.value() + 1


@pytest.mark.parametrize("loop", [False, True])
def test_one_frame_is_no_sequence(qtbot: QtBot, settings: Settings, tmp_path: Path, loop: bool) -> None:
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history())
    dialog.loop.setChecked(loop)
    assert dialog.path.keys.count() == 1
    assert not dialog.export.isEnabled()
    assert "Still" in dialog.hint.text()
    assert dialog.length.text() == length_text(0, 24)


def test_a_keyframe_brings_its_own_noise_and_transform(qtbot: QtBot, settings: Settings, tmp_path: Path) -> None:
    settings.remember_folder("export", tmp_path)
    turned = replace(SESSION, transform=Transform(degrees=30.0), noise=Noise("none"))
    past = History().added(turned, "Turn")
    dialog = ExportDialog(
        SESSION, past.starred(past.entries[0].number, True), replace(FACTS, has_transform=True), settings
    )
    qtbot.addWidget(dialog)
    first, second = dialog.wanted.keys
    assert (first.noise, first.transform) == (SESSION.noise, None)
    assert (second.noise, second.transform) == (Noise("none"), Transform(degrees=30.0).matrix)


def test_kept_latents_are_on_the_path_at_once_after_the_current_one(qtbot: QtBot, settings: Settings) -> None:
    dialog = opened(qtbot, settings, history(steps=5, kept=2))
    assert [key.session.position.x for key in dialog.path.keys.keys] == [SESSION.position.x, 0.5, 1.5]
    assert dialog.path.add_kept.text() == "+ Kept (2)"


def test_a_kept_latent_that_is_the_current_one_is_passed_once(qtbot: QtBot, settings: Settings) -> None:
    past = history(steps=3, kept=2)
    dialog = opened(qtbot, settings, past, past.kept[1].session)
    assert [key.session.position.x for key in dialog.path.keys.keys] == [1.5, 0.5]


def test_a_way_that_was_used_last_but_cannot_go_there_gives_way_without_a_warning(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    settings.choose("export.kind", "z-slerp")
    assert opened(qtbot, settings, history(), Session(position=Position(3.0, 1.0))).wanted.kind == "z-slerp"
    between_seeds = opened(qtbot, settings, history())
    assert between_seeds.wanted.kind == "w-cubic"
    assert between_seeds.hint.property("role") == "dim"


def test_latents_kept_of_another_model_are_fitted_to_the_open_one(qtbot: QtBot, settings: Settings) -> None:
    other = Session(
        ModelReference("faces.pkl", "Faces", "cd" * 32),
        Position(0.5, 0.0),
        classes=((7, 1.0),),
        sliders=(Slider("faces/smile", 2.0), Slider("sefa/0", 1.0)),
        mix=(Source(Latent(), (1.0,) * 18, "seed 0"),),
    )
    dialog = opened(qtbot, settings, History().with_kept((KeptSession(other, "Walk"),)).added(other, "Walk"))
    qtbot.mouseClick(dialog.path.add_recent, Qt.MouseButton.LeftButton)
    assert dialog.path.keys.count() == 3
    for key in dialog.wanted.keys[1:]:
        latent = key.blend[0][0].latent
        assert latent.classes == ()
        assert [item.name for item in latent.directions] == ["sefa/0"]
        assert [len(source.strengths) for source in latent.mix] == [FACTS.num_ws]


def test_thousands_of_kept_latents_wait_until_they_are_requested(qtbot: QtBot, settings: Settings) -> None:
    many = History().with_kept(tuple(KeptSession(Session(position=Position(i, 0.5)), "Walk") for i in range(3000)))
    dialog = opened(qtbot, settings, many)
    assert [key.session for key in dialog.path.keys.keys] == [SESSION]
    assert dialog.path.add_kept.text() == "+ Kept (3,000)"


def test_the_path_of_the_last_export_comes_back_and_what_was_offered_is_offered_anew(
    window: MainWindow, controller: FakeController, tmp_path: Path
) -> None:
    def open_dialog() -> ExportDialog:
        window.commands.files.export_sequence()
        (dialog,) = (item for item in window.findChildren(ExportDialog) if item.isVisible())
        dialog.folder.setText(str(tmp_path))
        return dialog

    def export(dialog: ExportDialog) -> None:
        choose(dialog, "sequence")
        QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
        assert not dialog.isVisible()

    dialog = open_dialog()
    first = [key.label for key in dialog.path.keys.keys]
    type_seeds(dialog, "4,7")
    labels = [key.label for key in dialog.path.keys.keys]
    assert labels != first
    export(dialog)
    dialog = open_dialog()
    assert [key.label for key in dialog.path.keys.keys] == labels
    dialog.path.keys.selectAll()
    QTest.keyClick(dialog.path.keys, Qt.Key.Key_Delete)
    type_seeds(dialog, "1")
    dialog.reject()
    dialog = open_dialog()
    assert [key.label for key in dialog.path.keys.keys] == labels, "only an export is remembered"
    export(dialog)
    before = place_name(controller.editing.session)
    controller.editing.session = GoToSeed(55).apply(controller.editing.session)
    dialog = open_dialog()
    assert [key.label for key in dialog.path.keys.keys] == [before, *labels[1:]], "it is not the current picture now"
    dialog.reject()


def test_recent_steps_are_added_oldest_first(qtbot: QtBot, settings: Settings) -> None:
    dialog = opened(qtbot, settings, history(steps=12))
    qtbot.mouseClick(dialog.path.add_recent, Qt.MouseButton.LeftButton)
    assert [key.session.position.x for key in dialog.path.keys.keys[1:]] == [i + 0.5 for i in range(4, 12)]


def test_delete_takes_selected_latents_off_the_path(made: ExportDialog) -> None:
    type_seeds(made, "1-4")
    made.path.keys.setCurrentRow(1)
    QTest.keyClick(made.path.keys, Qt.Key.Key_Delete)
    assert [key.label for key in made.path.keys.keys] == ["seed 1", "seed 3", "seed 4"]
    assert made.wanted.frame_count == 2 * made.frames.value() + 1


def test_taking_away_many_at_once_is_one_change(made: ExportDialog, qtbot: QtBot) -> None:
    type_seeds(made, "0-99")
    made.path.keys.selectAll()
    changes: list[int] = []
    made.path.keys.keys_changed.connect(lambda: changes.append(len(made.path.keys.keys)))
    QTest.keyClick(made.path.keys, Qt.Key.Key_Delete)
    assert changes == [0]
    assert made.path.empty.isVisible()


def test_the_order_of_the_list_is_the_order_of_the_path(made: ExportDialog) -> None:
    type_seeds(made, "1-3")
    item = made.path.keys.takeItem(2)
    made.path.keys.insertItem(0, item)
    assert [key.label for key in made.path.keys.keys] == ["seed 3", "seed 1", "seed 2"]
    assert point_of(made.wanted.keys[0].blend[0][0].latent).seeds == ((3, 1.0),)


def test_tab_goes_through_the_dialog_as_the_eye_does(made: ExportDialog, qtbot: QtBot) -> None:
    type_seeds(made, "1-3")
    made.place.where.setCurrentIndex(made.place.where.findData("farm"))
    made.place.address.setText("127.0.0.1")
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    made.presets.segments["sequence"].setFocus()
    names: list[str] = []
    while (focused := made.focusWidget()) is not None and focused is not made.export and len(names) < 60:
        names.append(focused.accessibleName())
        QTest.keyClick(focused, Qt.Key.Key_Tab)
    wanted = ["Path", "Current", "Seeds", "Add", "Format", "Size", "Interpolation", "Frames per step", "Where"]
    assert [name for name in names if name in wanted] == wanted
    assert names.index("Where") < names.index("Folder") < names.index("Name") < len(names)


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "nul", "COM1.take", "x" * 101, "漢" * 80])
def test_a_name_that_no_file_can_have_is_refused_with_a_sentence(made: ExportDialog, name: str) -> None:
    type_seeds(made, "1-3")
    made.name.setText(name)
    assert not made.export.isEnabled()
    assert "name" in made.hint.text()


def test_without_a_folder_it_asks_for_one(made: ExportDialog) -> None:
    type_seeds(made, "1-3")
    made.folder.clear()
    assert not made.export.isEnabled()
    assert "folder" in made.hint.text()


def test_choices_are_remembered(made: ExportDialog, qtbot: QtBot, settings: Settings, tmp_path: Path) -> None:
    type_seeds(made, "1-3")
    made.kind.setCurrentIndex(1)
    made.frames.setValue(60)
    made.loop.setChecked(True)
    made.name.setText("evening")
    qtbot.mouseClick(made.export, Qt.MouseButton.LeftButton)
    again = opened(qtbot, settings, history())
    assert (again.wanted.kind, again.wanted.frames_per_step, again.wanted.loop) == ("w-linear", 60, True)
    assert (again.wanted.name, again.wanted.folder) == ("evening", tmp_path)


def test_a_line_that_names_no_seeds_is_answered_with_a_sentence(made: ExportDialog) -> None:
    type_seeds(made, "1,x")
    assert "not “x”" in made.hint.text()
    assert made.path.seeds.text() == "1,x"
    assert made.path.keys.keys == []


def test_small_pictures_are_requested_and_shown(made: ExportDialog, qtbot: QtBot) -> None:
    type_seeds(made, "5")
    with qtbot.waitSignal(made.path.keys.thumbnail_wanted) as wanted:
        made.path.keys.request_thumbnails()
    assert wanted.args[1] == made.path.keys.keys[0].session


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("0,1,4-6", (0, 1, 4, 5, 6)),
        (" 7 ", (7,)),
        ("3-1", (3, 2, 1)),
        ("1, 2 3;4", (1, 2, 3, 4)),
        ("4294967295", (2**32 - 1,)),
    ],
)
def test_lists_of_seeds_are_read(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "-4", "4294967296", "1.5", f"0-{MAX_SEEDS}"])
def test_a_malformed_list_of_seeds_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"[Ss]eed"):
        parse_seeds(text)


def choose(dialog: ExportDialog, preset: PresetName) -> None:
    QTest.mouseClick(dialog.presets.segments[preset], Qt.MouseButton.LeftButton)


@pytest.mark.parametrize(
    ("preset", "codec", "file"),
    [("web", "av1", "walk.webm"), ("editing", "prores", "walk.mov"), ("gif", "gif", "walk.gif")],
)
def test_a_preset_makes_a_video(
    qtbot: QtBot,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    preset: PresetName,
    codec: str,
    file: str,
) -> None:
    monkeypatch.setattr("explorer_app.exporting.video.hardware.has_video_extra", lambda: True)
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history())
    type_seeds(dialog, "5")
    choose(dialog, preset)
    dialog.files.fps.setValue(25)
    dialog.files.size.setEditText("640 x 360")
    assert dialog.hint.text() == f"{file}, beside walk.manifest.json."
    with qtbot.waitSignal(dialog.export_requested) as signal:
        QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    wanted: SequenceSettings = signal.args[0]
    assert wanted.video is not None
    assert (wanted.video.codec, wanted.video.fps, wanted.size) == (codec, 25, (640, 360))
    assert wanted.single_path == tmp_path / file
    again = opened(qtbot, settings, history())
    assert again.presets.segments[preset].isChecked()
    assert again.files.size.currentText() == "640 x 360"


def test_a_video_without_the_extra_names_the_command_that_adds_it(
    qtbot: QtBot, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("explorer_app.exporting.video.hardware.has_video_extra", lambda: False)
    dialog = opened(qtbot, settings, history())
    type_seeds(dialog, "5")
    choose(dialog, "web")
    assert not dialog.export.isEnabled()
    assert "GPL" in dialog.hint.text()
    assert dialog.hint.text().endswith("pip install av")
    choose(dialog, "gif")
    assert dialog.export.isEnabled()


def test_a_still_is_the_picture_on_the_canvas_in_the_chosen_format(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, History())
    choose(dialog, "still")
    assert dialog.path.keys.isHidden() or not dialog.path_side.isVisible()
    dialog.files.format.setCurrentIndex(dialog.files.format.findData("jpeg"))
    dialog.files.quality.setValue(70)
    assert dialog.export.isEnabled()
    with qtbot.waitSignal(dialog.picture_requested) as signal:
        QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    assert signal.args == [tmp_path / "walk.jpg", PictureFormat("jpeg", 70), None]


def test_a_still_takes_no_other_files_place_unless_asked(qtbot: QtBot, settings: Settings, tmp_path: Path) -> None:
    settings.remember_folder("export", tmp_path)
    (tmp_path / "walk.png").write_bytes(b"a photograph")
    dialog = opened(qtbot, settings, History())
    choose(dialog, "still")
    assert dialog.wanted.name == "walk-2"
    dialog.name.setText("walk")
    assert not dialog.export.isEnabled()
    assert "There is a walk.png in this folder" in dialog.hint.text()
    dialog.overwrite.setChecked(True)
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
    dialog.name.setText("own")
    choose(dialog, "gif")
    assert dialog.wanted.name == "own", "a name that the user typed stays"
    dialog.folder.setText("~no-such-user-anywhere/films")
    assert dialog.wanted.folder == Path("~no-such-user-anywhere/films")


def test_a_name_of_another_export_is_refused_before_the_dialog_closes(
    made: ExportDialog, qtbot: QtBot, tmp_path: Path
) -> None:
    type_seeds(made, "1-3")
    made.name.setText("mine")
    mine = made.wanted
    for state in ("unfinished", "cancelled", "complete"):
        mine.manifest_path.write_bytes(manifest_bytes(mine, state, None))
        made.frames.setValue(made.frames.value() + 1)
        assert "There is another export named mine in this folder" in made.hint.text()
        assert not made.export.isEnabled()
        made.frames.setValue(made.frames.value() - 1)
        assert made.export.isEnabled(), "the same export continues"
    made.frames.setValue(made.frames.value() + 1)
    made.overwrite.setChecked(True)
    assert made.export.isEnabled()
    made.overwrite.setChecked(False)
    mine.manifest_path.unlink()
    (tmp_path / "mine_00000.png").touch()
    made.name.setText("")
    made.name.setText("mine")
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
        dialog.name.setText(name)
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
    made.name.setText("evening")
    (tmp_path / "evening_00000.png").touch()
    with qtbot.assertNotEmitted(made.export_requested):
        qtbot.mouseClick(made.export, Qt.MouseButton.LeftButton)
    assert made.isVisible()
    assert "There is a evening_00000.png" in made.hint.text()


def test_a_size_that_is_invalid_is_reported_in_a_sentence(made: ExportDialog) -> None:
    type_seeds(made, "1,2")
    made.files.size.setEditText("huge9")
    assert made.wanted.size is None
    made.files.size.setEditText("12 by 9")
    assert "A size is like 512" in made.hint.text()
    assert not made.export.isEnabled()
    made.files.size.setEditText("512")
    assert made.wanted.size == (512, 512)


def test_disk_and_time_are_estimated_before_the_start(qtbot: QtBot, settings: Settings) -> None:
    dialog = ExportDialog(SESSION, history(), FACTS, settings, frame_ms=500.0)
    qtbot.addWidget(dialog)
    type_seeds(dialog, "5")
    dialog.files.size.setEditText("1000 × 1000")
    assert dialog.estimate.text() == "about 35 MB · about 12 s"
    dialog.frames.setValue(240)
    assert dialog.estimate.text() == "about 337 MB · about 2 min 00 s"
    choose(dialog, "still")
    assert dialog.estimate.text() == "about 1.4 MB · about 1 s"


def test_the_first_and_the_last_picture_are_shown(made: ExportDialog) -> None:
    type_seeds(made, "1,2,3")
    red, blue = QImage(8, 8, QImage.Format.Format_RGB32), QImage(8, 8, QImage.Format.Format_RGB32)
    red.fill(Qt.GlobalColor.red)
    blue.fill(Qt.GlobalColor.blue)
    made.path.keys.show_thumbnail(made.path.keys.keys[0].session, red)
    made.path.keys.show_thumbnail(made.path.keys.keys[2].session, blue)
    shown = [end.pixmap().toImage().pixelColor(2, 2) for end in (made.ends.first, made.ends.last)]
    assert shown == [QColor(Qt.GlobalColor.red), QColor(Qt.GlobalColor.blue)]


def test_on_a_low_screen_the_buttons_stay_visible_and_the_choices_scroll(made: ExportDialog) -> None:
    made.resize(784, 452)
    QApplication.processEvents()
    assert (made.width(), made.height()) == (784, 452)
    for button in (made.export, made.cancel, made.path.add_seeds, made.path.remove):
        assert made.rect().contains(QRect(button.mapTo(made, QPoint(0, 0)), button.size()))
    area = next(each for each in made.findChildren(QScrollArea) if each.isAncestorOf(made.name))
    inside = area.widget()
    assert inside is not None
    assert area.viewport().width() >= inside.width() >= inside.minimumSizeHint().width(), "nothing is cut at the side"


def test_a_size_in_print_becomes_pixels_and_is_stored_in_the_file(made: ExportDialog) -> None:
    type_seeds(made, "1,2")
    made.files.size.setEditText("210 × 297 mm")
    assert made.wanted.size == (2480, 3508)
    assert made.wanted.form.dpi == 300, "what a size in print means unless it is stated"
    made.files.dpi.setValue(150)
    assert (made.wanted.size, made.wanted.form.dpi) == ((1240, 1754), 150)
    made.files.size.setEditText("512")
    made.files.dpi.setValue(0)
    assert made.wanted.form.dpi is None
    made.presets.segments["gif"].click()
    made.files.size.setEditText("210 × 297 mm")
    assert "in pixels" in made.hint.text()
    assert not made.files.dpi.isVisible()


def test_a_background_is_offered_for_networks_with_transparent_parts(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    opaque = opened(qtbot, settings, history())
    assert not opaque.files.background.isVisible()
    dialog = ExportDialog(SESSION, history(), replace(FACTS, img_channels=4), settings)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    dialog.show()
    assert dialog.files.background.isVisible()
    assert dialog.files.picture_format.background is None
    dialog.files.background.setCurrentIndex(dialog.files.background.findData("checkerboard"))
    assert dialog.files.picture_format.background == "checkerboard"


def test_hardware_encoders_are_offered_when_they_are_found(made: ExportDialog) -> None:
    made.presets.segments["web"].click()
    made.files.format.setCurrentIndex(made.files.format.findData("h264"))
    assert not made.files.encoder.isVisible()
    made.files.show_hardware(frozenset({("h264", "nvenc")}))
    assert made.files.encoder.isVisible()
    assert made.files.video_format is not None
    assert made.files.video_format.hardware is None
    made.files.encoder.setCurrentIndex(1)
    assert made.files.encoder.currentText() == "NVIDIA NVENC"
    assert made.files.video_format.hardware == "nvenc"
    made.files.format.setCurrentIndex(made.files.format.findData("vp9"))
    assert not made.files.encoder.isVisible()
    assert made.files.video_format.hardware is None
    made.presets.segments["still"].click()
    assert not made.files.encoder.isVisible()


def test_a_newcomer_with_one_picture_gets_a_path_by_one_click(qtbot: QtBot, settings: Settings, tmp_path: Path) -> None:
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history())
    assert not dialog.export.isEnabled()
    assert "+ Random" in dialog.hint.text()
    qtbot.mouseClick(dialog.path.add_random, Qt.MouseButton.LeftButton)
    assert len(dialog.path.keys.keys) == 4
    assert dialog.export.isEnabled()


# -- the timeline -----------------------------------------------------------------------------------------------------


def moving() -> Session:
    """Return a session whose timeline moves psi for 4 s at 12 frames a second, of which 1 s to 3 s loop."""
    timeline = Timeline(fps=Fraction(12), end=Fraction(4), loop=(Fraction(1), Fraction(3)))
    for t, value in ((0, 0.2), (4, 1.0)):
        timeline = with_key(timeline, "truncation.psi", Fraction(t), value)
    return replace(SESSION, timeline=timeline)


def test_a_session_without_a_timeline_offers_a_path_only(made: ExportDialog) -> None:
    assert made.source.isHidden()
    assert made.timeline.isHidden()
    assert made.wanted.piece is None


def test_the_timeline_is_offered_first_with_the_range_that_loops(qtbot: QtBot, settings: Settings) -> None:
    dialog = opened(qtbot, settings, history(), moving())
    assert dialog.source.segments["timeline"].isChecked()
    assert dialog.path.keys.isHidden() or not dialog.path.keys.isVisible()
    piece = dialog.wanted.piece
    assert piece is not None
    assert (piece.fps, piece.start, piece.end, piece.frame_count) == (12, 1, 3, 24)
    assert dialog.length.text() == "24 frames · 2.0 s at 12 fps"
    dialog.timeline.start.setValue(0.5)
    assert dialog.length.text() == "30 frames · 2.5 s at 12 fps"
    assert dialog.export.isEnabled()


def test_a_video_of_the_timeline_has_the_frames_a_second_that_are_chosen(qtbot: QtBot, settings: Settings) -> None:
    dialog = opened(qtbot, settings, history(), moving())
    dialog.presets.segments["gif"].click()
    video = dialog.files.video_format
    assert video is not None
    piece = dialog.wanted.piece
    assert piece is not None
    assert piece.fps == video.fps


def test_a_stretch_that_ends_before_it_starts_is_refused(qtbot: QtBot, settings: Settings) -> None:
    dialog = opened(qtbot, settings, history(), moving())
    dialog.timeline.start.setValue(3.5)
    assert not dialog.export.isEnabled()
    assert "end after it starts" in dialog.hint.text()


def test_a_path_can_still_be_chosen_and_the_export_offers_the_timeline_again(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history(), moving())
    dialog.source.segments["path"].click()
    assert dialog.path.keys.isVisible()
    assert dialog.wanted.piece is None
    dialog.source.segments["timeline"].click()
    calls: list[SequenceSettings] = []
    dialog.export_requested.connect(lambda wanted, _: calls.append(wanted))
    dialog.export.click()
    (wanted,) = calls
    assert wanted.keys == ()
    assert wanted.piece is not None
    assert len(plan_sequence(wanted)) == 24


def test_the_ends_of_the_timeline_are_requested_once_they_rest_and_shown_as_they_arrive(
    qtbot: QtBot, settings: Settings
) -> None:
    dialog = opened(qtbot, settings, history(), moving())
    with qtbot.waitSignal(dialog.ends.thumbnail_wanted) as signal:
        dialog.timeline.start.setValue(0.5)
        dialog.timeline.changed.emit()
    plan = plan_sequence(dialog.wanted)
    assert signal.args[1] == plan.request(0)
    for index, colour in ((0, "red"), (len(plan) - 1, "blue")):
        image = QImage(8, 8, QImage.Format.Format_RGB32)
        image.fill(QColor(colour))
        dialog.ends.show_thumbnail(plan.request(index), image)
    ends = (dialog.ends.first, dialog.ends.last)
    assert [end.pixmap().toImage().pixelColor(2, 2).name() for end in ends] == ["#ff0000", "#0000ff"]
