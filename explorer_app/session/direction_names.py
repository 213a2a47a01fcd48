"""What directions are called until a user renames them, and which of them get a slider: pure."""

from __future__ import annotations

from collections.abc import Sequence

from explorer_app.session.session import SLIDER_COUNT
from gpu_backend import printable

_SEFA = "sefa/"
_AXIS = "axis"
"""Kind of the directions along one dimension of w."""


def default_name(direction: str) -> str:
    """Return what a direction is called.

    "Sun height" for ``world/sun height``, "Direction 1" for ``sefa/0``, "w 0" for ``axis/0``.
    """
    kind, _, name = printable(direction).partition("/")
    if not (name.isascii() and name.isdecimal()):
        return name[:1].upper() + name[1:]
    if kind == _AXIS:
        return f"w {name}"  # counted from zero, as in the list of dimensions
    number = int(name) + 1
    if kind == "sefa":
        return f"Direction {number}"
    # Short names of sets are abbreviations: PCA.
    return f"{kind.upper() if len(kind) <= 3 else kind.capitalize()} {number}"


def is_named(direction: str) -> bool:
    """Return whether a direction has a name; SeFa's directions are only numbered."""
    return not direction.startswith(_SEFA)


def shown_directions(names: Sequence[str]) -> tuple[int, ...]:
    """Return the places of the directions that get a slider: all named ones first, then the first of SeFa's."""
    named = [place for place, name in enumerate(names) if is_named(name)]
    found = [place for place, name in enumerate(names) if not is_named(name)]
    return (*named, *found[:SLIDER_COUNT])
