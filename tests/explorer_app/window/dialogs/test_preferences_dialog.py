"""Preferences: what is chosen there is on at once, and kept."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from explorer_app.settings import Settings
from explorer_app.window.dialogs.preferences_dialog import PreferencesDialog
from explorer_app.window.look import theme
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.windows import dialog_of


def test_theme_font_and_glide_are_chosen_and_kept(window: MainWindow, settings: Settings) -> None:
    QTest.keySequence(window, "Ctrl+,")
    dialog = dialog_of(window, PreferencesDialog)
    dialog.themes.segments["light"].click()
    assert theme.current() is theme.LIGHT
    assert window.actions_by_key["theme-light"].isChecked()
    assert not dialog.hint.isVisible()
    dialog.fonts.segments["system"].click()
    assert dialog.hint.isVisible(), "it says when the font changes"
    dialog.fonts.segments["inter"].click()
    assert not dialog.hint.isVisible()
    dialog.fonts.segments["system"].click()
    QTest.mouseClick(dialog.glide, Qt.MouseButton.LeftButton)
    assert window.canvas.glides
    assert window.actions_by_key["glide"].isChecked()
    values = settings.values
    assert (values.theme, values.font, values.flick_glide) == ("light", "system", True)
    dialog.close()


def test_it_opens_with_what_is_chosen(window: MainWindow, settings: Settings) -> None:
    settings.change(font="system", theme="dark", flick_glide=True)
    window.actions_by_key["preferences"].trigger()
    dialog = dialog_of(window, PreferencesDialog)
    assert dialog.fonts.segments["system"].isChecked()
    assert dialog.themes.segments["dark"].isChecked()
    assert dialog.glide.isChecked()
    dialog.close()


def test_the_number_of_encoders_is_kept_and_none_means_all_cores_but_one(
    window: MainWindow, settings: Settings
) -> None:
    window.actions_by_key["preferences"].trigger()
    dialog = dialog_of(window, PreferencesDialog)
    assert dialog.encoders.text() == "All cores but one"
    dialog.encoders.setValue(3)
    assert settings.choice("export.threads") == "3"
    dialog.encoders.setValue(0)
    assert settings.choice("export.threads") == ""
    dialog.close()


def test_notifications_at_the_end_of_exports_are_switched_off(window: MainWindow, settings: Settings) -> None:
    window.actions_by_key["preferences"].trigger()
    dialog = dialog_of(window, PreferencesDialog)
    assert dialog.notices.isChecked()
    dialog.notices.click()
    assert settings.choice("export.notify") == "no"
    dialog.notices.click()
    assert settings.choice("export.notify") == ""
    dialog.close()
