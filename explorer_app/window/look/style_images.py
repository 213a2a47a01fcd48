"""Arrows and ticks for the style sheet, which shows pictures from files only: SVG in the theme's colours."""

from __future__ import annotations

from pathlib import Path

from explorer_app.window.look.theme import Tokens

_STROKE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="16" height="16">'
    '<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
    ' stroke-linecap="round" stroke-linejoin="round"/></svg>'
)
_DOT = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="16" height="16">'
    '<circle cx="8" cy="8" r="4" fill="{colour}"/></svg>'
)


def write(tokens: Tokens, folder: str) -> dict[str, str]:
    """Write the pictures of a theme into a folder; return name -> path with forward slashes."""
    drawings = {
        "down": _STROKE.format(path="M3 6l5 5 5-5", colour=tokens.dim, width=2),
        "up": _STROKE.format(path="M3 10l5-5 5 5", colour=tokens.dim, width=2),
        "right": _STROKE.format(path="M6 3l5 5-5 5", colour=tokens.dim, width=2),
        "check": _STROKE.format(path="M3 8.5l3.5 3.5 6.5-8", colour=tokens.accent, width=2),
        "check_on": _STROKE.format(path="M3 8.5l3.5 3.5 6.5-8", colour=tokens.on_accent, width=2.4),
        "dot_on": _DOT.format(colour=tokens.on_accent),
    }
    paths = {}
    for name, drawing in drawings.items():
        path = Path(folder) / f"{name}-{tokens.name}.svg"
        path.write_text(drawing, encoding="utf-8")
        paths[name] = path.as_posix()
    return paths
