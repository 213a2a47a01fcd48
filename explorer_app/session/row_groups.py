"""Rows of w in three groups, coarse, middle and fine, by the resolution they style: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpu_backend import RowRange, dataclass

GROUP_NAMES = ("coarse", "middle", "fine")

_COARSE_UP_TO = 16
_MIDDLE_UP_TO = 64
"""The split that StyleGAN's authors use for style mixing, in pixels (StyleGAN, section 3.1, in rows of these sizes)."""

_FULL_LADDER = 6
"""Resolutions from which the fixed split leaves something in each group: 4, 8, 16, 32, 64, 128."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Neighbouring rows of w under one name.

    `first`..`last` are rows, both included; `from_px`..`to_px` the resolutions that they style.
    """

    name: str
    first: int
    last: int
    from_px: int
    to_px: int

    @property
    def rows(self) -> RowRange:
        """The group as a range of rows."""
        return RowRange(self.first, self.last)

    @property
    def caption(self) -> str:
        """``"coarse 4–16"``, or ``"fine 64"`` where one resolution makes the group."""
        pixels = str(self.from_px) if self.from_px == self.to_px else f"{self.from_px}–{self.to_px}"
        return f"{self.name} {pixels}"

    def __contains__(self, row: int) -> bool:
        return self.first <= row <= self.last


def row_groups(row_resolutions: Sequence[int]) -> tuple[RowGroup, ...]:
    """Group the rows: coarse up to 16 px, middle up to 64 px, fine above.

    A network below 128 px has too few resolutions for that split; its resolutions are dealt out evenly, the odd ones
    going to the coarser groups. Groups that get nothing are left out.

    Parameters
    ----------
    row_resolutions
        Side in pixels that each row of w styles, ascending (`ModelFacts.row_resolutions`).
    """
    ladder = sorted(set(row_resolutions))
    if len(ladder) >= _FULL_LADDER:
        sizes = [
            sum(px <= _COARSE_UP_TO for px in ladder),
            sum(_COARSE_UP_TO < px <= _MIDDLE_UP_TO for px in ladder),
            sum(px > _MIDDLE_UP_TO for px in ladder),
        ]
    else:
        sizes = [(len(ladder) + 2 - index) // 3 for index in range(3)]
    groups = []
    start = 0
    for name, size in zip(GROUP_NAMES, sizes, strict=True):
        members = ladder[start : start + size]
        start += size
        rows = [row for row, px in enumerate(row_resolutions) if px in members]
        if rows:
            groups.append(RowGroup(name, rows[0], rows[-1], members[0], members[-1]))
    return tuple(groups)


def resolution_spans(row_resolutions: Sequence[int]) -> tuple[RowGroup, ...]:
    """Return runs of rows that style the same resolution, each named by it: the labels above the strength grid."""
    spans: list[RowGroup] = []
    for row, px in enumerate(row_resolutions):
        if spans and spans[-1].from_px == px:
            spans[-1] = replace(spans[-1], last=row)
        else:
            spans.append(RowGroup(str(px), row, row, px, px))
    return tuple(spans)


def held_rows(rows: RowRange, num_ws: int) -> range:
    """Return the rows of a network that a range holds."""
    return range(rows.first, num_ws if rows.last is None else min(rows.last + 1, num_ws))


def same_rows(left: RowRange, right: RowRange, num_ws: int) -> bool:
    """Say whether two ranges hold the same rows of a network, however their ends are written."""
    return held_rows(left, num_ws) == held_rows(right, num_ws)


def range_text(rows: RowRange, row_resolutions: Sequence[int]) -> str:
    """Return the words for a range: ``"rows 0–13"``, ``"row 4"``."""
    last = len(row_resolutions) - 1 if rows.last is None else min(rows.last, len(row_resolutions) - 1)
    return f"row {rows.first}" if rows.first >= last else f"rows {rows.first}–{last}"


def range_name(rows: RowRange, row_resolutions: Sequence[int]) -> str:
    """Return the name of a range: ``"all"``, a group's name, or "" for one that has no name."""
    count = len(row_resolutions)
    if same_rows(rows, RowRange(), count):
        return "all"
    for group in row_groups(row_resolutions):
        if same_rows(rows, group.rows, count):
            return group.name
    return ""
