"""The program's own icon."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtGui import QIcon

_PACKAGE = Path(__file__).resolve().parents[2]
_PLACES = (_PACKAGE / "_assets" / "icons", _PACKAGE.parent / "assets" / "icons")
"""Icon folders of an installation and of a checkout."""

_SIDES_PX = (16, 24, 32, 48, 64, 128, 256, 512)


def app_icon() -> QIcon:
    """Return the icon in all available sizes; an empty icon if the files are missing."""
    result = QIcon()
    for place in _PLACES:
        for side in _SIDES_PX:
            picture = place / f"latentloom-{side:03}.png"
            if picture.exists():
                result.addFile(str(picture))
        if not result.isNull():
            break
    return result
