"""Switching the application between dark and light: style, palette, fonts and style sheet."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from explorer_app.window.look import fonts, theme
from explorer_app.window.look.style_sheet import style_sheet
from explorer_app.window.look.theme import DARK, LIGHT, Mode


class _Appearance:
    """The chosen mode, and whether the system's colour scheme is being followed."""

    mode: Mode = "system"
    is_following = False


def mode() -> Mode:
    """Return the chosen mode: "system", "dark" or "light"."""
    return _Appearance.mode


def apply(app: QApplication, mode: Mode = "system") -> None:
    """Apply a mode to the application; "system" follows changes of the system's colour scheme.

    May be called at any time; open windows update immediately.
    """
    _Appearance.mode = mode
    hints = app.styleHints()
    if not _Appearance.is_following:
        _Appearance.is_following = True
        hints.colorSchemeChanged.connect(lambda: _follow(app))
        fonts.remember_system_font(app)
        app.setStyle("Fusion")
    if mode == "system":
        hints.unsetColorScheme()
    else:
        hints.setColorScheme(Qt.ColorScheme.Dark if mode == "dark" else Qt.ColorScheme.Light)
    light = mode == "light" or (mode == "system" and hints.colorScheme() == Qt.ColorScheme.Light)
    tokens = LIGHT if light else DARK
    theme.use(tokens)
    app.setFont(fonts.body())
    app.setPalette(theme.palette(tokens))
    sheet = style_sheet(tokens)
    if app.styleSheet() != sheet:
        app.setStyleSheet(sheet)


def _follow(app: QApplication) -> None:
    """Apply the system's new colour scheme if the mode is "system"."""
    if _Appearance.mode == "system":
        wanted = LIGHT if app.styleHints().colorScheme() == Qt.ColorScheme.Light else DARK
        if wanted is not theme.current():
            apply(app, "system")
