"""Tooltips with names that users and files give."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6 import QtGui
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from explorer_app.session.history import History
from explorer_app.session.patches import Patch
from explorer_app.session.session import Session
from explorer_app.window.controllers.patch_row import PatchRow
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.row_range_picker import RowRangeButton
from explorer_app.window.controls.slider_row import SliderRow
from explorer_app.window.history.history_entries import EntryModel
from explorer_app.window.messages.file_actions import FileActions
from gpu_backend import RowRange

NAME = "<b>R&amp;B</b>"


def read(tip: str) -> str:
    """Return what a tooltip shows."""
    document = QtGui.QTextDocument()
    (document.setHtml if QtGui.Qt.mightBeRichText(tip) else document.setPlainText)(tip)
    return document.toPlainText()


@pytest.mark.parametrize("text", [NAME, "a & b", "one\ntwo", "x < y > z\n<i>", "no markup"])
def test_a_text_is_shown_literally(qtbot: QtBot, text: str) -> None:
    assert read(plain_tip(text)) == text


def test_names_in_tooltips_are_no_markup(qtbot: QtBot) -> None:
    slider, rows, patch = SliderRow(NAME, 0.0, 1.0), RowRangeButton(), PatchRow()
    folder = FileActions(Path("/<b>R&amp;B/picture.png"))
    for widget in (slider, rows, patch, folder):
        qtbot.addWidget(widget)
    rows.show_rows(RowRange(), (4, 8), NAME)
    patch.show_patch(Patch("osc/1", "truncation.psi", 0.0, 1.0), NAME, 0)
    for tip in (slider.slider.toolTip(), rows.toolTip(), patch.toolTip()):
        assert NAME in read(tip)
    assert read(folder.place.toolTip()) == "/<b>R&amp;B/picture.png"


def test_the_name_of_a_kept_picture_is_no_markup(qtbot: QtBot) -> None:
    view = QWidget()
    qtbot.addWidget(view)
    model = EntryModel(view)
    model.show_entries(History().added(Session(), NAME).entries, frozenset(), 0)
    assert NAME in read(str(model.data(model.index(0), Qt.ItemDataRole.ToolTipRole)))
