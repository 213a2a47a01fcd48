"""Putting a path together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from explorer_app.session.edits import GoToSeed
from explorer_app.session.history import History, KeptSession, place_name
from explorer_app.session.session import ModelReference, Position, Session, Slider, Source
from explorer_app.settings import Settings
from explorer_app.window.export.export_dialog import ExportDialog
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import Latent, Noise, Transform
from tests.helpers.export_dialogs import FACTS, SESSION, choose, history, moving, opened, type_seeds
from tests.helpers.fake_controller import FakeController
from tests.helpers.requests import point_of


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
    assert dialog.wanted.frame_count == dialog.interpolation.frames.value() + 1


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
    again = opened(qtbot, settings, past, replace(past.kept[1].session, timeline=moving().timeline))
    assert [key.session.position.x for key in again.path.keys.keys] == [1.5, 0.5], "kept latents have no timeline"


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
        dialog.names.folder.line.setText(str(tmp_path))
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
    assert made.wanted.frame_count == 2 * made.interpolation.frames.value() + 1


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


def test_a_newcomer_with_one_picture_gets_a_path_by_one_click(qtbot: QtBot, settings: Settings, tmp_path: Path) -> None:
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history())
    assert not dialog.export.isEnabled()
    assert "+ Random" in dialog.hint.text()
    qtbot.mouseClick(dialog.path.add_random, Qt.MouseButton.LeftButton)
    assert len(dialog.path.keys.keys) == 4
    assert dialog.export.isEnabled()
