"""Selects the table's columns and their widths: the chosen ones, otherwise the most important that fit."""

from __future__ import annotations

from collections.abc import Mapping

from explorer_app.window.performance.step_columns import COLUMNS, KEYS

_SHRINK = {"kernel": 0.9}
"""Text columns may shrink to this share of their width before a column is dropped."""

_GROWTH = {"layer": 1.3, "kernel": 1.7}
"""Spare width goes to text columns first, up to this multiple of their natural width."""

_NARROWEST_PX = 24

_STAY = frozenset({"layer", "time", "share", "occupancy", "roofline"})
"""Columns that are always shown; others are shown if they fit."""


class ColumnChoice:
    """Computes visible columns and widths, independent of the table widget.

    Parameters
    ----------
    natural
        Column key -> width in px of its widest text.
    """

    def __init__(self, natural: Mapping[str, int]) -> None:
        self._natural = natural
        self._chosen: frozenset[str] = frozenset()

    @property
    def is_automatic(self) -> bool:
        """Whether the columns are selected automatically."""
        return not self._chosen

    def take(self, keys: str) -> None:
        """Set the columns from comma-separated keys; empty for as many as fit. Unknown keys are ignored."""
        chosen = frozenset(keys.split(",")) & frozenset(KEYS)
        self._chosen = chosen | {KEYS[0]} if chosen else chosen

    def widths(self, known: frozenset[str], room: int) -> dict[str, int]:
        """Return column key -> width in px for a table of `room` px; only columns in `known` are shown."""
        shown = self._fitting(known, room) if self.is_automatic else self._chosen & known
        least = {key: self._least(key) for key in KEYS if key in shown}
        spare = room - sum(least.values())
        if spare < 0 and self.is_automatic:  # an elided column is better than a hidden one
            for key in ("kernel", "layer"):
                less = min(-spare, max(0, least.get(key, 0) - _NARROWEST_PX))
                if less:
                    least[key] -= less
                    spare += less
        for limit in ({}, _GROWTH):
            for key in ("kernel", "layer"):
                if key in least and spare > 0:
                    more = min(spare, max(0, round(self._natural[key] * limit.get(key, 1.0)) - least[key]))
                    least[key] += more
                    spare -= more
        if spare > 0 and least:
            each, rest = divmod(spare, len(least))
            for number, key in enumerate(least):
                least[key] += each + (rest if number == 0 else 0)
        return least

    def _least(self, key: str) -> int:
        return round(self._natural[key] * _SHRINK.get(key, 1.0))

    def _fitting(self, known: frozenset[str], room: int) -> frozenset[str]:
        shown: list[str] = []
        for column in sorted(COLUMNS, key=lambda column: column.rank):
            if column.key not in known:
                continue
            if column.key not in _STAY and sum(map(self._least, shown)) + self._least(column.key) > room:
                break
            shown.append(column.key)
        return frozenset(shown)
