"""Commands that change preferences."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication

from explorer_app.settings import Settings
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.look import appearance, theme
from explorer_app.window.shell.dialogs import Dialogs


class PreferenceCommands:
    """The preferences dialog, and preferences that have an action.

    Parameters
    ----------
    actions
        Key -> action; the dialog triggers the theme actions, so that their menu shows the choice. May be filled later.
    """

    def __init__(self, dialogs: Dialogs, settings: Settings, canvas: Canvas, actions: Mapping[str, QAction]) -> None:
        self._dialogs = dialogs
        self._settings = settings
        self._canvas = canvas
        self._actions = actions

    def preferences(self) -> None:
        """Open the preferences."""
        from explorer_app.window.dialogs.preferences_dialog import PreferencesDialog

        dialog = PreferencesDialog(self._settings.values, self._dialogs.window)
        dialog.theme_chosen.connect(lambda mode: self._actions[f"theme-{mode}"].trigger())
        dialog.font_chosen.connect(lambda font: self._settings.change(font=font))
        dialog.glide_chosen.connect(self._actions["glide"].setChecked)
        dialog.glide_chosen.connect(self.glide)
        dialog.encoders_chosen.connect(lambda count: self._settings.choose("export.threads", str(count or "")))
        dialog.notices_chosen.connect(lambda on: self._settings.choose("export.notify", "" if on else "no"))
        self._dialogs.open(dialog)

    def glide(self, on: bool) -> None:
        """Enable or disable the glide after a flick."""
        self._settings.change(flick_glide=on)
        self._canvas.glides = on
        if not on:
            self._canvas.stop_glide()

    def theme_system(self) -> None:
        """Follow the system's colour scheme."""
        self._set_theme("system")

    def theme_dark(self) -> None:
        """Use the dark theme."""
        self._set_theme("dark")

    def theme_light(self) -> None:
        """Use the light theme."""
        self._set_theme("light")

    def _set_theme(self, mode: theme.Mode) -> None:
        app = QApplication.instance()
        if isinstance(app, QApplication):
            self._settings.change(theme=mode)
            appearance.apply(app, mode)
