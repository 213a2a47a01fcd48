"""Help > Shortcuts."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QScrollArea
from pytestqt.qtbot import QtBot

from explorer_app.window.actions.action_table import ACTIONS
from explorer_app.window.dialogs.shortcuts_dialog import GESTURES, ShortcutsDialog


@pytest.fixture
def dialog(qtbot: QtBot) -> ShortcutsDialog:
    dialog = ShortcutsDialog([("Latent panel", "Ctrl+1")])
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_every_action_every_dock_and_every_gesture_is_listed(dialog: ShortcutsDialog) -> None:
    by_hand = {what for lines in GESTURES.values() for _, what in lines}
    expected = {spec.plain_text for spec in ACTIONS} | {"Latent panel"} | by_hand
    assert set(dialog.shown) == expected


def test_each_line_shows_its_keys(dialog: ShortcutsDialog) -> None:
    names = {label.accessibleName() for label in dialog.findChildren(QLabel)}
    assert "Undo: Ctrl+Z" in names
    assert "Redo: Ctrl+Shift+Z or Ctrl+Y" in names
    assert "Zoom in: + or = or Ctrl++" in names
    assert "Latent panel: Ctrl+1" in names


def test_keys_of_the_timeline_its_sounds_and_of_what_has_the_focus_are_listed(dialog: ShortcutsDialog) -> None:
    names = {label.accessibleName() for label in dialog.findChildren(QLabel)}
    assert "Select the next key, with Shift one more: Ctrl+Left, Ctrl+Right" in names
    assert "Choose a sound: Up, Down" in names
    assert "Open the menu of what has the focus: Menu key, Shift+F10" in names


def test_no_key_is_cut_at_the_side(dialog: ShortcutsDialog) -> None:
    area = dialog.findChild(QScrollArea)
    assert area is not None
    inside = area.widget()
    assert inside is not None
    assert inside.minimumSizeHint().width() <= area.viewport().width()
    dialog.resize(300, 300)
    assert inside.width() <= area.viewport().width()


def test_typing_narrows_the_list_by_name_or_key(dialog: ShortcutsDialog) -> None:
    QTest.keyClicks(dialog.filter, "zoom")
    assert set(dialog.shown) == {"Zoom in", "Zoom out", "Zoom at the pointer"}
    dialog.filter.clear()
    QTest.keyClicks(dialog.filter, "ctrl+e")
    assert dialog.shown == ["Export picture, sequence or video"]


def test_on_a_narrow_screen_sections_are_one_column(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen:
        def availableGeometry(self) -> QRect:  # noqa: N802 - Qt's name
            return QRect(0, 0, 640, 360)

    monkeypatch.setattr(ShortcutsDialog, "screen", lambda self: Screen())
    dialog = ShortcutsDialog([("Latent panel", "Ctrl+1")])
    qtbot.addWidget(dialog)
    assert dialog.minimumSizeHint().width() < 640
