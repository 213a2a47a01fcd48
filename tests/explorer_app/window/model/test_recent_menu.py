"""The menu of recently opened models."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from explorer_app.settings import RecentModel
from explorer_app.window.model.recent_menu import RecentMenu


def test_models_of_equal_names_are_told_apart_by_the_end_of_their_folders_that_differs(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    paths = ("/runs/00/cats/out/net.pkl", "/runs/01/dogs/out/net.pkl", "/runs/01/other.pkl", "/birds/net.pkl")
    menu = RecentMenu(lambda: [RecentModel(path, "", path) for path in paths], parent)
    menu.fill()
    assert [action.text() for action in menu.actions()] == ["net (cats/out)", "net (dogs/out)", "other", "net (birds)"]


def test_files_of_one_folder_whose_names_are_equal_but_for_the_ending_show_it(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    paths = ("/runs/net.pkl", "/runs/net.safetensors")
    menu = RecentMenu(lambda: [RecentModel(path, "net", path) for path in paths], parent)
    menu.fill()
    assert [action.text() for action in menu.actions()] == ["net.pkl", "net.safetensors"]
