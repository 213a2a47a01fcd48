"""The fonts of the window: the shipped Inter or the system font, in four sizes, with tabular figures."""

from __future__ import annotations

from functools import cache
from typing import Literal

from PySide6.QtGui import QFont, QFontDatabase, QFontInfo
from PySide6.QtWidgets import QApplication

from explorer_app.assets import font_files

FontChoice = Literal["inter", "system"]

SHIPPED_FAMILY = "Inter Loom"
"""Family name of the shipped Inter; unique, so that an installed version of Inter never replaces it."""

_BODY_PX = 13
_TABLE_PX = 12
_CAPTION_PX = 11
_FIGURE_PX = 22

_USUAL_PX = (11.5, 14.0)
"""System fonts of these sizes, 9 to 10.5 points at 96 dpi, count as the usual size: nothing is scaled."""


class _Fonts:
    """The system font and the family in use."""

    system: QFont | None = None
    family: str | None = None
    """None until a font is chosen, empty for the system font."""
    measured: tuple[QFont, float] | None = None
    """The system font and its `factor`, cached because building a window reads it thousands of times."""


def remember_system_font(app: QApplication) -> None:
    """Store the system font; call this before the theme sets its own."""
    if _Fonts.system is None:
        _Fonts.system = QFont(app.font())


def use(font: FontChoice) -> None:
    """Select the shipped font or the system's UI font for widgets created from now on.

    Falls back to the system font if the font files are missing.
    """
    use_family(SHIPPED_FAMILY if font == "inter" and _load_shipped() else "")


def use_family(name: str) -> None:
    """Select a font family known to Qt; an empty name selects the system's UI font."""
    _Fonts.family = name


@cache
def _load_shipped() -> bool:
    added = [QFontDatabase.addApplicationFont(str(path)) for path in font_files()]
    return bool(added) and min(added) >= 0


def factor() -> float:
    """Return the system UI font's size relative to the usual size; 1 for usual sizes."""
    system = _Fonts.system
    if system is None:
        return 1.0
    if _Fonts.measured is None or _Fonts.measured[0] is not system:
        size = float(QFontInfo(system).pixelSize())
        low, high = _USUAL_PX
        _Fonts.measured = system, 1.0 if low <= size <= high else max(0.75, min(3.0, size / _BODY_PX))
    return _Fonts.measured[1]


def _font(size_px: int, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    font = QFont() if _Fonts.system is None else QFont(_Fonts.system)
    if _Fonts.family is None:
        use("inter")
    if _Fonts.family:
        font.setFamilies([_Fonts.family, *font.families()])
        # Vertical hinting alone preserves the font's advances under any system setting.
        font.setHintingPreference(QFont.HintingPreference.PreferVerticalHinting)
    font.setPixelSize(round(size_px * factor()))
    font.setWeight(weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def body() -> QFont:
    """Return the font of labels, buttons and menus."""
    return _font(_BODY_PX)


def strong() -> QFont:
    """Return the semibold body font, for names and for the main button."""
    return _font(_BODY_PX, QFont.Weight.DemiBold)


def table() -> QFont:
    """Return the font of tables."""
    return _font(_TABLE_PX)


def caption() -> QFont:
    """Return the font of captions."""
    return _font(_CAPTION_PX)


def figure() -> QFont:
    """Return the font of headline figures."""
    return _font(_FIGURE_PX, QFont.Weight.DemiBold)
