"""Asking for a sequence, a video or a still."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea
from pytestqt.qtbot import QtBot

from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.session.history import History
from explorer_app.session.session import Position, Session
from explorer_app.settings import Settings
from explorer_app.window.export.export_dialog import ExportDialog
from explorer_app.window.export.export_keys import length_text
from explorer_app.window.export.presets import PresetName
from gpu_backend import Tap
from tests.helpers.export_dialogs import FACTS, SESSION, choose, history, is_possible, opened, type_seeds
from tests.helpers.requests import point_of


def test_seeds_that_are_typed_become_a_path_and_the_exporter_gets_it(made: ExportDialog, qtbot: QtBot) -> None:
    type_seeds(made, "0,1,4-6")
    assert [key.label for key in made.path.keys.keys] == ["seed 0", "seed 1", "seed 4", "seed 5", "seed 6"]
    assert made.isVisible(), "Enter in the field adds; it does not export"
    made.interpolation.frames.setValue(10)
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
    made.interpolation.frames.setValue(24)
    assert made.length.text() == length_text(73, 24)
    assert made.ends.last.toolTip() == "Last frame."
    loop = made.interpolation.loop
    qtbot.mouseClick(loop, Qt.MouseButton.LeftButton, pos=QPoint(8, loop.height() // 2))
    assert loop.isChecked()
    assert made.length.text() == "96 frames · 4.0 s at 24 fps"
    assert "returns to the first" in made.ends.last.toolTip()
    choose(made, "sheet")
    assert made.ends.last.toolTip() == "Last frame.", "a sheet has no loop"


def test_ways_through_z_are_possible_only_between_whole_seeds(made: ExportDialog, qtbot: QtBot) -> None:
    type_seeds(made, "7,9")
    kinds = made.interpolation.kind
    rows = {kinds.itemData(row): row for row in range(kinds.count())}
    assert all(is_possible(kinds, row) for row in rows.values())
    qtbot.mouseClick(made.path.add_current, Qt.MouseButton.LeftButton)  # stands between seeds
    assert {kind for kind, row in rows.items() if not is_possible(kinds, row)} == {"z-linear", "z-slerp"}
    reason = kinds.itemData(rows["z-slerp"], Qt.ItemDataRole.ToolTipRole)
    assert "seed" in reason
    kinds.setCurrentIndex(rows["z-slerp"])
    assert not made.export.isEnabled()
    assert "seed" in made.hint.text()


@pytest.mark.parametrize("loop", [False, True])
def test_one_frame_is_no_sequence(qtbot: QtBot, settings: Settings, tmp_path: Path, loop: bool) -> None:
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history())
    dialog.interpolation.loop.setChecked(loop)
    assert dialog.path.keys.count() == 1
    assert not dialog.export.isEnabled()
    assert "Still" in dialog.hint.text()
    assert dialog.length.text() == length_text(0, 24)


def test_a_way_that_was_used_last_but_cannot_go_there_gives_way_without_a_warning(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    settings.choose("export.kind", "z-slerp")
    assert opened(qtbot, settings, history(), Session(position=Position(3.0, 1.0))).wanted.kind == "z-slerp"
    between_seeds = opened(qtbot, settings, history())
    assert between_seeds.wanted.kind == "w-cubic"
    assert between_seeds.hint.property("role") == "dim"


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


def test_choices_are_remembered(made: ExportDialog, qtbot: QtBot, settings: Settings, tmp_path: Path) -> None:
    type_seeds(made, "1-3")
    made.interpolation.kind.setCurrentIndex(1)
    made.interpolation.frames.setValue(60)
    made.interpolation.loop.setChecked(True)
    made.names.name.setText("evening")
    qtbot.mouseClick(made.export, Qt.MouseButton.LeftButton)
    again = opened(qtbot, settings, history())
    assert (again.wanted.kind, again.wanted.frames_per_step, again.wanted.loop) == ("w-linear", 60, True)
    assert (again.wanted.name, again.wanted.folder) == ("evening", tmp_path)


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


def test_a_still_leaves_the_remembered_interpolation(qtbot: QtBot, settings: Settings, tmp_path: Path) -> None:
    settings.remember_folder("export", tmp_path)
    settings.choose("export.kind", "w-slerp")
    dialog = opened(qtbot, settings, History())
    choose(dialog, "still")
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    assert settings.choice("export.kind") == "w-slerp"


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
    dialog.interpolation.frames.setValue(240)
    assert dialog.estimate.text() == "about 337 MB · about 2 min 00 s"
    choose(dialog, "still")
    assert dialog.estimate.text() == "about 1.4 MB · about 1 s"


@pytest.mark.parametrize(
    ("preset", "form", "opaque", "transparent"),
    [
        ("still", "png", "1.4 MB", "1.8 MB"),
        ("still", "jpeg", "350 kB", "350 kB"),
        ("gif", "apng", "35 MB", "44 MB"),
        ("gif", "gif", "18 MB", "18 MB"),
    ],
)
def test_the_estimate_counts_alpha_where_the_format_keeps_it(
    qtbot: QtBot, settings: Settings, preset: PresetName, form: str, opaque: str, transparent: str
) -> None:
    for channels, expected in ((3, opaque), (4, transparent)):
        dialog = ExportDialog(SESSION, history(), replace(FACTS, img_channels=channels), settings)
        qtbot.addWidget(dialog)
        type_seeds(dialog, "5")
        choose(dialog, preset)
        dialog.files.format.setCurrentIndex(dialog.files.format.findData(form))
        dialog.files.size.setEditText("1000 × 1000")
        assert dialog.estimate.text() == f"about {expected}"
        dialog.files.background.setCurrentIndex(dialog.files.background.findData("black"))
        if preset == "still":
            assert dialog.estimate.text() == f"about {opaque}", "black behind leaves no alpha to store"


def test_the_first_and_the_last_picture_are_shown(made: ExportDialog) -> None:
    type_seeds(made, "1,2,3")
    red, blue = QImage(8, 8, QImage.Format.Format_RGB32), QImage(8, 8, QImage.Format.Format_RGB32)
    red.fill(Qt.GlobalColor.red)
    blue.fill(Qt.GlobalColor.blue)
    made.path.keys.show_thumbnail(made.path.keys.keys[0].session, red)
    made.path.keys.show_thumbnail(made.path.keys.keys[2].session, blue)
    shown = [end.pixmap().toImage().pixelColor(2, 2) for end in (made.ends.first, made.ends.last)]
    assert shown == [QColor(Qt.GlobalColor.red), QColor(Qt.GlobalColor.blue)]


def test_a_size_is_shown_from_its_start_on_in_a_narrow_field(made: ExportDialog) -> None:
    size, field = made.files.size, made.files.size.lineEdit()
    assert field is not None
    made.presets.segments["web"].click()
    assert field.cursorPosition() == 0
    size.setCurrentIndex(size.findText("1920 × 1080"))
    size.activated.emit(size.currentIndex())
    assert field.cursorPosition() == 0


def test_on_a_low_screen_the_buttons_stay_visible_and_the_choices_scroll(made: ExportDialog) -> None:
    made.resize(784, 452)
    QApplication.processEvents()
    assert (made.width(), made.height()) == (784, 452)
    for button in (made.export, made.cancel, made.path.add_seeds, made.path.remove):
        assert made.rect().contains(QRect(button.mapTo(made, QPoint(0, 0)), button.size()))
    area = next(each for each in made.findChildren(QScrollArea) if each.isAncestorOf(made.names.name))
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


@pytest.mark.parametrize(
    ("preset", "form", "is_white"),
    [
        ("gif", "gif", True),
        ("gif", "apng", False),
        ("gif", "webp", False),
        ("web", "av1", True),
        ("web", "vp9", False),
        ("sequence", "jpeg", True),
        ("sequence", "png", False),
        ("still", "jpeg", True),
    ],
)
def test_a_format_without_transparency_says_what_becomes_of_it(
    qtbot: QtBot, settings: Settings, tmp_path: Path, preset: str, form: str, is_white: bool
) -> None:
    settings.remember_folder("export", tmp_path)
    for channels, says in ((4, is_white), (3, False)):
        dialog = ExportDialog(SESSION, history(), replace(FACTS, img_channels=channels), settings)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
        qtbot.addWidget(dialog)
        dialog.show()
        type_seeds(dialog, "1-4")
        dialog.presets.segments[preset].click()
        dialog.files.format.setCurrentIndex(dialog.files.format.findData(form))
        assert ("Transparent parts become white" in dialog.hint.text()) == says
        if form == "jpeg" and says:
            dialog.files.background.setCurrentIndex(dialog.files.background.findData("black"))
            assert "white" not in dialog.hint.text()
            dialog.files.background.setCurrentIndex(dialog.files.background.findData(""))


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
