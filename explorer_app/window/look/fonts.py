"""The fonts of the window: Inter, which comes with the program, or the system's; four sizes, figures of equal width."""

from __future__ import annotations

from functools import cache
from typing import Literal

from PySide6.QtGui import QFont, QFontDatabase, QFontInfo
from PySide6.QtWidgets import QApplication

from explorer_app.assets import font_files

FontChoice = Literal["inter", "system"]

SHIPPED_FAMILY = "Inter Loom"
"""Inter under a name of its own, so that another version that the system has never takes its place."""

_BODY_PX = 13
_TABLE_PX = 12
_CAPTION_PX = 11
_FIGURE_PX = 22

_USUAL_PX = (11.5, 14.0)
"""System fonts of these sizes, 9 to 10.5 points at 96 dpi, count as the usual size: nothing is scaled."""


class _Fonts:
    """What the system gave, and what is used instead."""

    system: QFont | None = None
    family: str | None = None
    """None until one is chosen, empty for the system's."""
    measured: tuple[QFont, float] | None = None
    """The system's font and its `factor`, which is asked for thousands of times while a window is built."""


def remember_system_font(app: QApplication) -> None:
    """Keep the font that the system gave, before the theme sets its own."""
    if _Fonts.system is None:
        _Fonts.system = QFont(app.font())


def use(font: FontChoice) -> None:
    """Use the font that comes with the program, or the system's UI font; widgets that are made from now on have it.

    Where an installation lacks the files, it is the system's.
    """
    use_family(SHIPPED_FAMILY if font == "inter" and _load_shipped() else "")


def use_family(name: str) -> None:
    """Use a family that Qt knows, the system's UI font if the name is empty."""
    _Fonts.family = name


@cache
def _load_shipped() -> bool:
    added = [QFontDatabase.addApplicationFont(str(path)) for path in font_files()]
    return bool(added) and min(added) >= 0


def factor() -> float:
    """Return how much larger than usual the system's UI font is; 1 for the usual sizes."""
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
        # Vertical hinting alone keeps advances as the font has them, whatever a system's settings say.
        font.setHintingPreference(QFont.HintingPreference.PreferVerticalHinting)
    font.setPixelSize(round(size_px * factor()))
    font.setWeight(weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def body() -> QFont:
    """Return the font of labels, buttons and menus."""
    return _font(_BODY_PX)


def strong() -> QFont:
    """Return the body font in the weight of names and of the main button."""
    return _font(_BODY_PX, QFont.Weight.DemiBold)


def table() -> QFont:
    """Return the font of tables."""
    return _font(_TABLE_PX)


def caption() -> QFont:
    """Return the font of captions."""
    return _font(_CAPTION_PX)


def figure() -> QFont:
    """Return the font of the few figures that matter."""
    return _font(_FIGURE_PX, QFont.Weight.DemiBold)
