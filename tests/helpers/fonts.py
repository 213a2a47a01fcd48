"""Fonts for layout tests: a narrow and a wide variant of the shipped font, and DejaVu Sans."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from pathlib import Path

from PySide6.QtCore import QByteArray
from PySide6.QtGui import QFontDatabase

from explorer_app.assets import font_files

FONTS = ("Inter Loom", "Test Narrow", "DejaVu Sans", "Test Wide")

_WIDTHS = {"Test Narrow": 0.88, "Test Wide": 1.15}


@cache
def provide(family: str) -> str:
    """Register a family of `FONTS` with Qt, and return it; the shipped one is registered already."""
    if family == "DejaVu Sans":
        import matplotlib  # here, as fontTools below: every worker collects layout tests, few run one

        folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"):
            assert QFontDatabase.addApplicationFont(str(folder / name)) >= 0
    elif family in _WIDTHS:
        for path in font_files():
            data = _stretched(path, family, _WIDTHS[family])
            assert QFontDatabase.addApplicationFontFromData(QByteArray(data)) >= 0
    return family


def narrow_dock(family: str, usual_px: int) -> int:
    """Return the width of a narrow dock for a font; a wide font may need a little more."""
    return round(usual_px * 1.07) if family == "Test Wide" else usual_px


def _stretched(path: Path, family: str, factor: float) -> bytes:
    """Return a font with its glyphs scaled horizontally by a factor."""
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    font = TTFont(path)
    subsetter = Subsetter(Options(layout_features=["tnum"]))
    subsetter.populate(unicodes=[*range(0x20, 0x180), *map(ord, "ψµ–—…−×·“”’→▾★")])
    subsetter.subset(font)
    glyphs = font["glyf"]
    for name in font.getGlyphOrder():
        glyph = glyphs[name]
        if glyph.isComposite():
            for component in glyph.components:
                component.x = round(component.x * factor)
        elif glyph.numberOfContours:
            glyph.coordinates.scale((factor, 1.0))
        glyph.recalcBounds(glyphs)
        advance, _ = font["hmtx"][name]
        font["hmtx"][name] = round(advance * factor), getattr(glyph, "xMin", 0)
    for record in font["name"].names:
        if record.nameID in (1, 16):
            record.string = family
    out = BytesIO()
    font.save(out)
    return out.getvalue()
