"""Names of users in menus."""

from __future__ import annotations

from PySide6.QtGui import QFontMetrics, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu

from explorer_app.window.controls.drive_menu import add_drive_menu
from explorer_app.window.controls.menu_text import menu_text
from explorer_app.window.look import theme


def test_a_name_in_a_menu_is_one_line_of_limited_width_and_its_ampersand_is_shown(qapp: QApplication) -> None:
    assert menu_text("Dogs & cats") == "Dogs && cats"
    assert "\n" not in menu_text("two\nlines")
    long = menu_text("a long name " * 40)
    assert long.startswith("a long name ")
    assert QFontMetrics(QGuiApplication.font()).horizontalAdvance(long) <= theme.px(260)


def test_names_of_sounds_are_shown_whole(qapp: QApplication) -> None:
    menu = QMenu()
    add_drive_menu(menu, "truncation.psi", ["Bass & drums.wav", "voice.wav"], lambda patch: None)
    sub = menu.actions()[0].menu()
    assert isinstance(sub, QMenu)
    assert [action.text() for action in sub.actions()] == ["Bass && drums.wav", "voice.wav"]
