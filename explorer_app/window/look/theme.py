"""The theme: every colour, size and face of the window.

No other module defines a colour. Widgets that paint call `current()` at paint time, and Qt repaints them when
`appearance.apply` sets another palette. Widgets that cache something derived from a colour rebuild it on
`QEvent.Type.PaletteChange`. All other widgets are styled by the palette and the style sheet.

Labels and buttons get a role instead of their own style: `set_role(label, "dim")`. Roles of labels are "dim", "strong",
"caption", "hint", "figure", "good", "warn" and "bad"; roles of buttons are "main" (the one accented button of a panel),
"flat" and "chip".
"""

from __future__ import annotations

from typing import Literal

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QWidget

from explorer_app.window.look import fonts
from gpu_backend import dataclass

Mode = Literal["system", "dark", "light"]

GRID = 4
"""Unit of all distances, in px at a font factor of 1."""
MARGIN = 10
"""Padding inside a dock, in px."""
GAP = 6
"""Gap between docks, in px."""
ROW = 25
"""Height of a row of controls or of a table, in px."""
DOCK_RADIUS = 8
"""Corner radius of a dock, in px."""
RADIUS = 6
"""Corner radius of a control, in px."""
_LOW_SCREEN_PX = 480

BLACK = "#000000"
"""Around a picture on a stage, whatever the theme."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The colours of one theme, as ``#rrggbb``.

    Attributes
    ----------
    ground, well, panel, head
        Window, canvas, docks and their headers.
    raised, hover, pressed, edge, track
        Buttons and fields, under the pointer, held down; hairlines; the groove of a slider.
    text, strong, dim
        Body, values, labels and hints.
    accent, accent_text, on_accent
        Selection and the main button; the accent dark enough for text on a panel; text on the accent.
    sources
        Mix sources and plot series, in order.
    good, warn, bad
        States, never by colour alone.
    good_text, warn_text, bad_text
        The same, dark enough for text on every ground.
    """

    name: Literal["dark", "light"]
    ground: str
    well: str
    panel: str
    head: str
    raised: str
    hover: str
    pressed: str
    edge: str
    track: str
    text: str
    strong: str
    dim: str
    accent: str
    accent_text: str
    on_accent: str
    sources: tuple[str, ...]
    good: str
    warn: str
    bad: str
    good_text: str
    warn_text: str
    bad_text: str


_SOURCES = ("#e8a33d", "#5aa9e6", "#7bc47f", "#c98bdb", "#f2777a")


def _darker(colour: str, share: float = 0.2) -> str:
    """Return the colour with each channel lowered by a share of itself."""
    return "#" + "".join(f"{round(int(colour[i : i + 2], 16) * (1 - share)):02x}" for i in (1, 3, 5))


DARK = Tokens(
    name="dark",
    ground="#131518",
    well="#0d0e10",
    panel="#1d2025",
    head="#22262c",
    raised="#2a2f36",
    hover="#333942",
    pressed="#23272d",
    edge="#3a414b",
    track="#2f353d",
    text="#d7dbe0",
    strong="#eef1f4",
    dim="#8b939e",
    accent="#e8a33d",
    accent_text="#e8a33d",
    on_accent="#131518",
    sources=_SOURCES,
    good="#7bc47f",
    warn="#e8a33d",
    bad="#f2777a",
    good_text="#7bc47f",
    warn_text="#e8a33d",
    bad_text="#f2777a",
)
LIGHT = Tokens(
    name="light",
    ground="#e9ebee",
    well="#d9dce0",
    panel="#f7f8f9",
    head="#eef0f2",
    raised="#ffffff",
    hover="#f1f3f5",
    pressed="#e3e6e9",
    edge="#c9ced5",
    track="#d5d9de",
    text="#2a2f36",
    strong="#101316",
    dim="#636b76",
    accent="#b87410",
    accent_text="#8a5508",
    on_accent="#101316",
    sources=tuple(_darker(colour) for colour in _SOURCES),
    good=_darker("#7bc47f"),
    warn=_darker("#e8a33d"),
    bad=_darker("#f2777a"),
    good_text="#2f6b35",
    warn_text="#8a5508",
    bad_text="#a5373c",
)


class _Theme:
    """Holds the tokens in use."""

    tokens = DARK


def current() -> Tokens:
    """Return the colours in use."""
    return _Theme.tokens


def use(tokens: Tokens) -> None:
    """Set the colours that `current` returns; `appearance.apply` shows them."""
    _Theme.tokens = tokens


def palette(tokens: Tokens) -> QPalette:
    """Return the palette of a theme."""
    role = QPalette.ColorRole
    colours = {
        role.Window: tokens.ground,
        role.WindowText: tokens.text,
        role.Base: tokens.panel,
        role.AlternateBase: tokens.head,
        role.Text: tokens.text,
        role.PlaceholderText: tokens.dim,
        role.Button: tokens.raised,
        role.ButtonText: tokens.text,
        role.BrightText: tokens.strong,
        role.ToolTipBase: tokens.raised,
        role.ToolTipText: tokens.text,
        role.Highlight: tokens.accent,
        role.HighlightedText: tokens.on_accent,
        role.Accent: tokens.accent,
        role.Link: tokens.accent_text,
        role.LinkVisited: tokens.accent_text,
        role.Light: tokens.hover,
        role.Midlight: tokens.raised,
        role.Mid: tokens.edge,
        role.Dark: tokens.well,
        role.Shadow: tokens.well,
    }
    result = QPalette()
    for key, colour in colours.items():
        result.setColor(key, QColor(colour))
    for key in (role.WindowText, role.Text, role.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, key, alpha(tokens.dim, 0.55))
    result.setColor(QPalette.ColorGroup.Disabled, role.Highlight, QColor(tokens.edge))
    return result


def alpha(colour: str, opacity: float) -> QColor:
    """Return a token's colour with an opacity in 0..1."""
    result = QColor(colour)
    result.setAlphaF(opacity)
    return result


def mixed(first: str, second: str, share: float) -> QColor:
    """Return the opaque linear blend of two token colours; `share` in 0..1 is the weight of the second."""
    a, b = QColor(first), QColor(second)
    return QColor(
        *(round(x + (y - x) * share) for x, y in ((a.red(), b.red()), (a.green(), b.green()), (a.blue(), b.blue())))
    )


def source_colour(index: int) -> str:
    """Return the colour of the mix source or plot series with this index; colours repeat after the last."""
    return _Theme.tokens.sources[index % len(_Theme.tokens.sources)]


def px(size: float) -> int:
    """Scale a design size in px to the system's font size; returns whole px."""
    return round(size * fonts.factor())


def is_on_low_screen(widget: QWidget) -> bool:
    """Return whether the screen of a widget is too low for the usual layouts of panels around a picture."""
    return widget.screen().availableGeometry().height() < _LOW_SCREEN_PX


def set_role(widget: QWidget, role: str) -> None:
    """Set the style sheet role of a label or a button; the module docstring lists the roles."""
    widget.setProperty("role", role)
    if role in ("caption", "hint"):
        widget.setFont(fonts.caption())
    elif role == "figure":
        widget.setFont(fonts.figure())
    style = widget.style()
    style.unpolish(widget)
    style.polish(widget)
