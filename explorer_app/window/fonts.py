"""The faces of the window: the system's UI font in four sizes, with figures of equal width."""

from __future__ import annotations

from PySide6.QtGui import QFont, QFontDatabase, QFontInfo
from PySide6.QtWidgets import QApplication

_BODY_PX = 13
_TABLE_PX = 12
_CAPTION_PX = 11
_FIGURE_PX = 22

_USUAL_PX = (11.5, 14.0)
"""System fonts of these sizes, 9 to 10.5 points at 96 dpi, are what the design takes for granted."""

_GENERIC = {"", "sans", "sans serif", "sans-serif", "dejavu sans", "bitstream vera sans"}
"""What a system without a desktop's own UI font answers."""

_PREFERRED = ("Inter", "Noto Sans", "Cantarell", "Ubuntu", "Open Sans")

_system: list[QFont] = []


def remember_system_font(app: QApplication) -> None:
    """Keep the font that the system gave, before the theme sets its own."""
    if not _system:
        _system.append(QFont(app.font()))


def factor() -> float:
    """Return how much larger than usual the system's UI font is; 1 for the usual sizes."""
    if not _system:
        return 1.0
    size = float(QFontInfo(_system[0]).pixelSize())
    low, high = _USUAL_PX
    return 1.0 if low <= size <= high else max(0.75, min(3.0, size / _BODY_PX))


def _font(size_px: int, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    font = QFont(_system[0]) if _system else QFont()
    if font.family().lower() in _GENERIC:
        families = QFontDatabase.families()
        font.setFamilies([name for name in _PREFERRED if name in families] + [font.family()])
    font.setPixelSize(round(size_px * factor()))
    font.setWeight(weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def body() -> QFont:
    """Return the face of labels, buttons and menus."""
    return _font(_BODY_PX)


def strong() -> QFont:
    """Return the body face in the weight of names and of the main button."""
    return _font(_BODY_PX, QFont.Weight.DemiBold)


def table() -> QFont:
    """Return the face of tables."""
    return _font(_TABLE_PX)


def caption() -> QFont:
    """Return the face of captions."""
    return _font(_CAPTION_PX)


def figure() -> QFont:
    """Return the face of the few figures that matter."""
    return _font(_FIGURE_PX, QFont.Weight.DemiBold)
