"""Switching the application between dark and light: style, palette, fonts and style sheet."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from explorer_app.window.look import fonts, theme
from explorer_app.window.look.style_sheet import style_sheet
from explorer_app.window.look.theme import DARK, LIGHT, Mode
from gpu_backend import without_collections


class _Appearance:
    """The chosen mode, whether the system's colour scheme is being followed, and the state of `apply`."""

    mode: Mode = "system"
    is_following = False
    is_applying = is_due = False


def mode() -> Mode:
    """Return the chosen mode: "system", "dark" or "light"."""
    return _Appearance.mode


def apply(app: QApplication, mode: Mode = "system") -> None:
    """Apply a mode to the application; "system" follows changes of the system's colour scheme.

    May be called at any time; open windows update immediately. Called from within, as by a system that answers to a
    requested scheme with another one, it takes effect when the call under way ends.

    Qt goes through a list of all widgets while it sets a style sheet, and crashes if one of them is deleted meanwhile.
    So no garbage is collected until then, where widgets' handlers of events would otherwise do it.
    """
    _Appearance.mode, _Appearance.is_due = mode, True
    if _Appearance.is_applying:
        return
    _Appearance.is_applying = True
    try:
        with without_collections():
            while _Appearance.is_due:
                _Appearance.is_due = False
                _apply(app, _Appearance.mode)
    finally:
        _Appearance.is_applying = False


def _apply(app: QApplication, mode: Mode) -> None:
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
