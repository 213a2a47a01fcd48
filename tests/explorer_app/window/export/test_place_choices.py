"""Where an export is rendered, as chosen in its dialog."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from explorer_app.exporting.export_list import ExportPlace
from explorer_app.exporting.sequence import plan_sequence
from explorer_app.session.resolve import resolve
from explorer_app.settings import Settings
from explorer_app.window.export import place_choices
from explorer_app.window.export.export_dialog import ExportDialog
from gpu_backend import Tap
from tests.helpers.export_dialogs import FACTS, SESSION, choose, history, opened, type_seeds


def test_a_farm_is_chosen_checked_and_remembered(
    made: ExportDialog, qtbot: QtBot, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_choices, "default_keys_path", lambda: tmp_path / "farm.pem")
    type_seeds(made, "0,1")
    place = made.place
    assert not place.address.isVisible()
    place.where.setCurrentIndex(place.where.findData("farm"))
    assert place.address.isVisible()
    assert not made.export.isEnabled()
    assert "the address of the farm" in made.hint.text()
    place.address.setText("render local")
    assert "HOST or HOST:PORT" in made.hint.text()
    place.address.setText("127.0.0.1:9000")
    place.keys.setText("/nowhere/farm.pem")
    assert "no key file" in made.hint.text()
    place.keys.clear()
    place.address.setText("10.0.0.7")
    assert "There are no keys of a farm at" in made.hint.text(), "beyond this machine, before the dialog closes"
    assert not made.export.isEnabled()
    place.address.setText("127.0.0.1:9000")
    assert place.priority.isVisible()
    place.priority.setCurrentIndex(place.priority.findText("Low"))
    with qtbot.waitSignal(made.export_requested) as signal:
        qtbot.mouseClick(made.export, Qt.MouseButton.LeftButton)
    assert signal.args[1] == ExportPlace("farm", "127.0.0.1:9000", priority=-10)
    again = opened(qtbot, settings, history())
    assert again.place.place == ExportPlace("farm", "127.0.0.1:9000")


def test_all_gpus_are_offered_where_there_are_several_and_a_still_starts_at_this_device(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    dialog = ExportDialog(SESSION, history(), FACTS, settings, gpu_count=2)
    qtbot.addWidget(dialog)
    dialog.place.where.setCurrentIndex(dialog.place.where.findData("gpus"))
    dialog.presets.segments["still"].click()
    assert dialog.place.place == ExportPlace("here")
    dialog.presets.segments["sequence"].click()
    assert dialog.place.place == ExportPlace("gpus")
    single = ExportDialog(SESSION, history(), FACTS, settings, gpu_count=1)
    qtbot.addWidget(single)
    assert single.place.where.findData("gpus") < 0


def test_a_still_on_a_farm_is_an_export_of_one_picture_under_its_name(
    made: ExportDialog, qtbot: QtBot, settings: Settings
) -> None:
    choose(made, "still")
    made.place.where.setCurrentIndex(made.place.where.findData("farm"))
    made.place.address.setText("127.0.0.1:9000")
    made.names.name.setText("shore")
    with qtbot.waitSignal(made.export_requested) as signal:
        qtbot.mouseClick(made.export, Qt.MouseButton.LeftButton)
    wanted, place = signal.args
    assert place == ExportPlace("farm", "127.0.0.1:9000")
    assert (wanted.file_names, wanted.frame_count) == (("shore",), 1)
    assert plan_sequence(wanted).request(0).blend == resolve(SESSION).blend
    assert settings.choice("export.where") == "", "the next sequence is rendered where the last one was"


def test_a_layer_on_the_canvas_is_a_still_of_this_device_only(qtbot: QtBot, settings: Settings) -> None:
    dialog = opened(qtbot, settings, history(), replace(SESSION, tap=Tap("b8.conv1")))
    choose(dialog, "still")
    assert dialog.export.isEnabled()
    dialog.place.where.setCurrentIndex(dialog.place.where.findData("farm"))
    dialog.place.address.setText("127.0.0.1:9000")
    assert "layer" in dialog.hint.text()
    assert not dialog.export.isEnabled()


def test_keys_in_the_home_of_a_user_who_is_missing_are_not_there(made: ExportDialog) -> None:
    type_seeds(made, "0,1")
    made.place.where.setCurrentIndex(made.place.where.findData("farm"))
    made.place.address.setText("127.0.0.1:9000")
    made.place.keys.setText("~no such user/farm.pem")
    assert "no key file" in made.hint.text()
