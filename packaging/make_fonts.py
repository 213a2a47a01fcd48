"""Make the fonts of the window again: ``python packaging/make_fonts.py package``, the folder of npm's inter-ui 4.1.1.

Needs fontTools and brotli. Takes the static weights that the window uses, keeps the scripts that a label may hold, adds
the small triangle of menu buttons, which Inter lacks, and writes TrueType files under a family name of their own, so
that an Inter that a system has installed never takes their place.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fontTools.pens.transformPen import TransformPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

FAMILY = "Inter Loom"
WEIGHTS = ("Regular", "SemiBold")
TARGET = Path(__file__).resolve().parents[1] / "assets" / "fonts"

_UNICODES = [
    *range(0x20, 0x250),  # Latin with its extensions A and B
    *range(0x2B0, 0x370),  # modifiers and combining marks
    *range(0x370, 0x400),  # Greek
    *range(0x400, 0x530),  # Cyrillic
    *range(0x1E00, 0x1F00),  # Latin, for Vietnamese
    *range(0x2000, 0x2400),  # punctuation, currencies, letter-like signs, arrows, operators, keys
    *range(0x25A0, 0x2760),  # shapes, stars, ticks
]
_FEATURES = ["ccmp", "locl", "mark", "mkmk", "kern", "calt", "case", "tnum", "zero", "frac", "sups", "subs"]
_LARGE, _SMALL, _SCALE = 0x25BC, 0x25BE, 0.62
"""The triangle that Inter has, the one made of it, and how much smaller it is."""

_NAMES = {1: FAMILY, 4: FAMILY, 6: FAMILY.replace(" ", ""), 16: FAMILY}
"""Number in the name table -> start of the text; the weight follows in 4 and 6, and in 1 where it is not the usual."""


def make(source: Path, target: Path) -> None:
    """Write a font for each weight, and the licence beside them."""
    target.mkdir(parents=True, exist_ok=True)
    for weight in WEIGHTS:
        font = TTFont(source / "web" / f"Inter-{weight}.woff2")
        font.flavor = None
        _add_small_triangle(font)
        options = Options(layout_features=_FEATURES, name_IDs=[0, 1, 2, 3, 4, 5, 6, 13, 14, 16, 17], hinting=False)
        subsetter = Subsetter(options)
        subsetter.populate(unicodes=_UNICODES)
        subsetter.subset(font)
        _rename(font, weight)
        font.save(target / f"{FAMILY.replace(' ', '')}-{weight}.ttf")
    licence = (source / "LICENSE.txt").read_text(encoding="utf-8")
    (target / "OFL.txt").write_text(licence, encoding="utf-8")


def _add_small_triangle(font: Any) -> None:
    name = font.getBestCmap()[_LARGE]
    glyphs, middle = font["glyf"], font["OS/2"].sxHeight / 2
    box = glyphs[name]
    width = font["hmtx"][name][0]
    pen = TTGlyphPen(None)
    shift = (1 - _SCALE) * width / 2, middle - _SCALE * (box.yMin + box.yMax) / 2
    font.getGlyphSet()[name].draw(TransformPen(pen, (_SCALE, 0, 0, _SCALE, *shift)))
    font.setGlyphOrder([*font.getGlyphOrder(), "smalltriangle"])
    glyphs["smalltriangle"] = pen.glyph()
    narrower = round(width * 0.8)
    font["hmtx"]["smalltriangle"] = (narrower, 0)
    glyphs["smalltriangle"].recalcBounds(glyphs)
    glyphs["smalltriangle"].coordinates.translate((-(width - narrower) // 2, 0))
    for table in font["cmap"].tables:
        if table.isUnicode():
            table.cmap[_SMALL] = "smalltriangle"


def _rename(font: Any, weight: str) -> None:
    for record in font["name"].names:
        start = _NAMES.get(record.nameID)
        if start is None:
            continue
        between = {1: " ", 4: " ", 6: "-"}.get(record.nameID, "")
        has_weight = record.nameID in (4, 6) or (record.nameID == 1 and weight != "Regular")
        record.string = f"{start}{between}{weight}" if has_weight else start


if __name__ == "__main__":
    make(Path(sys.argv[1]), TARGET)
