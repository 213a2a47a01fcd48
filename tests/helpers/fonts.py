"""Fonts for layout tests: a narrow and a wide variant of the shipped font, and DejaVu Sans."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from pathlib import Path

from PySide6.QtCore import QByteArray
from PySide6.QtGui import QFont, QFontDatabase, QFontMetricsF

from explorer_app.assets import font_files
from explorer_app.window.look import fonts

FONTS = ("Inter Loom", "Test Narrow", "DejaVu Sans", "Test Wide")

_WIDTHS = {"Test Narrow": 0.88, "Test Wide": 1.15}


@cache
def provide(family: str) -> str:
    """Register a family of `FONTS` with Qt, and return it."""
    if family == fonts.SHIPPED_FAMILY:
        for path in font_files():
            assert QFontDatabase.addApplicationFont(str(path)) >= 0
    elif family == "DejaVu Sans":
        import matplotlib  # here, as fontTools below: every worker collects layout tests, few run one

        folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"):
            assert QFontDatabase.addApplicationFont(str(folder / name)) >= 0
    elif family in _WIDTHS:
        for path in font_files():
            data = _stretched(path, family, _WIDTHS[family])
            assert QFontDatabase.addApplicationFontFromData(QByteArray(data)) >= 0
    return family


def widened(usual_px: int) -> int:
    """Return the width in px that a text of the font in use needs where one of the shipped font needs `usual_px`."""
    font = fonts.body()
    usual = QFont(font)
    usual.setFamilies([provide(fonts.SHIPPED_FAMILY)])
    sample = "Gestures and kernels 0123456789"
    widths = [QFontMetricsF(each).horizontalAdvance(sample) for each in (font, usual)]
    return round(usual_px * widths[0] / widths[1])


def narrow_dock(family: str, usual_px: int) -> int:
    """Return the width of a narrow dock for a font; a wide font may need a little more."""
    return round(usual_px * 1.07) if family == "Test Wide" else usual_px


@cache
def _subset(path: Path) -> bytes:
    """Return the glyphs of a font that the window shows, without kerning, which takes time to parse."""
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    font = TTFont(path)
    del font["GPOS"]
    subsetter = Subsetter(Options(layout_features=["tnum"]))
    subsetter.populate(unicodes=[*range(0x20, 0x180), *map(ord, "ψµ–—…−×·“”’→▾★")])
    subsetter.subset(font)
    out = BytesIO()
    font.save(out)
    return out.getvalue()


def _stretched(path: Path, family: str, factor: float) -> bytes:
    """Return a font with its glyphs scaled horizontally by a factor."""
    from fontTools.ttLib import TTFont

    font = TTFont(BytesIO(_subset(path)))
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
