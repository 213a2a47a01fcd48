"""Candidate ranges of w rows for a direction."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_backend.recipe import RowRange

_PIECES = 4
_COARSE_UP_TO, _MIDDLE_UP_TO = 16, 64
"""The split that StyleGAN's authors use for style mixing, in pixels."""


def candidate_ranges(num_ws: int) -> tuple[RowRange, ...]:
    """Return ten candidate ranges, all rows first: unions of adjacent quarters of the rows."""
    cuts = sorted({round(num_ws * piece / _PIECES) for piece in range(_PIECES + 1)})
    pairs = [(first, stop) for first in cuts for stop in cuts if first < stop]
    pairs.sort(key=lambda pair: (pair[0] - pair[1], pair[0]))
    return tuple(RowRange(first, stop - 1) for first, stop in pairs)


def row_groups(row_resolutions: Sequence[int]) -> dict[str, RowRange]:
    """Return coarse, middle and fine rows, by the resolution that each row styles; empty ranges are left out."""
    groups: dict[str, list[int]] = {"coarse": [], "middle": [], "fine": []}
    for row, side in enumerate(row_resolutions):
        name = "coarse" if side <= _COARSE_UP_TO else "middle" if side <= _MIDDLE_UP_TO else "fine"
        groups[name].append(row)
    return {name: RowRange(rows[0], rows[-1]) for name, rows in groups.items() if rows}
