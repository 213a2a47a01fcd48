"""Write assets/icons/phosphor.json: the outlines of the icons that the window uses.

    python packaging/make_icons.py

Run it after adding a name to `explorer_app/window/look/icons.py`. The outlines come from the Phosphor font in
QtAwesome, a dependency of development only: importing it takes a quarter of a second, for which no window should wait.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from PySide6.QtGui import QGuiApplication, QPainterPath, QRawFont

from explorer_app.window.look.icons import GLYPHS, OUTLINE_UNITS

_TARGET = Path(__file__).resolve().parent.parent / "assets" / "icons" / "phosphor.json"


def main() -> None:
    """Read the font, write the file."""
    app = QGuiApplication(["make_icons", "-platform", "offscreen"])
    spec = importlib.util.find_spec("qtawesome")
    assert spec is not None, "install the extra `dev`: QtAwesome has the font"
    assert spec.origin is not None
    fonts = Path(spec.origin).parent / "fonts"
    codes = json.loads(next(fonts.glob("phosphor-charmap-*.json")).read_text())
    # Hinting would move the points of small sizes; at this one it moves nothing that is seen.
    font = QRawFont(str(next(fonts.glob("phosphor-[0-9]*.ttf"))), OUTLINE_UNITS, app.font().hintingPreference())
    lines = [
        f"{json.dumps(name)}: {json.dumps(_outline(font, int(codes[name], 16)))}" for name in sorted({*GLYPHS.values()})
    ]
    _TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _outline(font: QRawFont, code: int) -> str:
    """Return a glyph's outline as SVG path data, y downwards, the em square at 0, 0."""
    (glyph,) = font.glyphIndexesForString(chr(code))
    path = font.pathForGlyph(glyph)
    # The square that the design is drawn in lies between ascent and descent.
    down = OUTLINE_UNITS - font.descent()
    words: list[str] = []
    index = 0
    while index < path.elementCount():
        element = path.elementAt(index)
        count = 3 if element.type == QPainterPath.ElementType.CurveToElement else 1
        points = [path.elementAt(index + number) for number in range(count)]
        letter = "C" if count == 3 else "M" if element.isMoveTo() else "L"
        words.append(letter + " ".join(f"{point.x:.1f} {point.y + down:.1f}".replace(".0", "") for point in points))
        index += count
    return "".join(words)


if __name__ == "__main__":
    main()
