"""Asking for a sheet."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.sheet import SheetLayout
from explorer_app.settings import Settings
from explorer_app.window.export.export_dialog import ExportDialog
from tests.helpers.export_dialogs import history, moving, opened, type_seeds


def test_a_sheet_has_columns_and_paper_and_one_picture_a_latent(made: ExportDialog, qtbot: QtBot) -> None:
    type_seeds(made, "1-5")
    made.interpolation.frames.setValue(24)
    made.presets.chosen.emit("sheet")
    made.files.columns.setValue(3)
    made.files.paper.setCurrentText("White")
    assert made.length.text() == "5 pictures · 3 × 2"
    assert made.hint.text() == "walk.png, with the recipe of each picture inside; open it to choose one."
    with qtbot.waitSignal(made.export_requested) as signal:
        QTest.mouseClick(made.export, Qt.MouseButton.LeftButton)
    settings = signal.args[0]
    assert isinstance(settings, SequenceSettings)
    assert (settings.sheet, settings.frame_count, settings.size) == (SheetLayout(3, paper="white"), 5, None)
    made.presets.chosen.emit("sequence")
    assert (made.interpolation.frames.value(), made.wanted.sheet) == (24, None)


def test_a_sheet_in_print_has_the_size_of_its_paper_and_says_if_nothing_fits(made: ExportDialog) -> None:
    type_seeds(made, "1-5")
    made.presets.chosen.emit("sheet")
    made.files.size.setEditText("210 × 297 mm")
    assert made.wanted.size == (2480, 3508)
    assert made.wanted.form.dpi == 300
    made.files.size.setEditText("12 × 12")
    assert "do not fit" in made.hint.text()
    assert not made.export.isEnabled()
    made.presets.chosen.emit("sequence")
    assert made.wanted.size is None, "the size of a sheet is not that of a picture"


def test_a_sheet_of_the_timeline_shows_as_many_pictures_as_chosen_at_equal_distances(
    qtbot: QtBot, settings: Settings, tmp_path: Path
) -> None:
    settings.remember_folder("export", tmp_path)
    dialog = opened(qtbot, settings, history(), moving())
    dialog.presets.chosen.emit("sheet")
    assert dialog.timeline.pictures.isVisible()
    dialog.timeline.pictures.setValue(8)
    assert dialog.length.text() == "8 pictures · 4 × 2"
    with qtbot.waitSignal(dialog.export_requested) as signal:
        QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    wanted = signal.args[0]
    assert wanted.piece is not None
    assert [float(wanted.piece.time(index)) for index in range(wanted.frame_count)] == [1 + 0.25 * i for i in range(8)]
    assert len({plan_sequence(wanted).request(index) for index in range(8)}) == 8
    again = opened(qtbot, settings, history(), moving())
    assert again.timeline.pictures.value() == 8
    again.source.segments["path"].click()
    assert not again.timeline.pictures.isVisible()
    assert again.wanted.piece is None
