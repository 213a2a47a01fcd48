"""Chooses the resolution at which pictures keep up with a gesture. Pure."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from explorer_app.rendering.frame_statistics import FRAME_BUDGET_MS
from gpu_backend import NO_EDITS, Frame, LazyModule, LocalEdits, ModelFacts

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

MIN_DRAFT_PX = 64
"""Smaller drafts are unrecognisable: the earlier the exit, the paler the picture."""

DRAFT_BUDGET_MS = 40.0
"""Time budget of a draft, in ms. Above 20 frames a second, resolution matters more than speed: of the 50 ms of a frame,
2 ms pass between two drafts, and a size stays until it takes `_PATIENCE` budgets."""

_PATIENCE = 1.2
"""Hysteresis: a size stays until it takes this many budgets, so that two sizes do not alternate."""

_FORGET_AFTER = 300
"""After this many drafts, times of other sizes are dropped: the load of the machine may have changed."""

_GAIN_OF_HALVING = 0.6
"""Assumed ratio of times at half and full resolution, until it is measured: StyleGAN2's larger blocks cost
about the same each, since channels halve as the sides double."""

_LARGE_PX = 512
"""Above this side, in px, no full picture is rendered just to measure its time."""

_FIRST_DRAFT_PX = 64
"""The largest first draft of a large network: its time shows how large the next may be."""

_PLAN_BUDGETS = 5.0
"""A first draft of up to this many budgets may be late because of its plan; beyond, the draft itself is too slow."""

_REMEMBERED = 5


class DraftPolicy:
    """Chooses the resolution during gestures from the times of rendered frames.

    Parameters
    ----------
    budget_ms, draft_budget_ms
        Time budgets of a full picture and of a draft, in ms.
    """

    def __init__(self, budget_ms: float = FRAME_BUDGET_MS, draft_budget_ms: float = DRAFT_BUDGET_MS) -> None:
        self._budget_ms = budget_ms
        self._draft_budget_ms = draft_budget_ms
        self._chosen: int | None = None
        self._count = 0
        self._decided: tuple[ModelFacts, int | None] | None = None
        """Cached result of `resolution` for a model, until a new time arrives."""
        self._times: dict[int, deque[float]] = {}
        self._empty_px = 0
        """Side of the largest draft that showed nothing, in px."""
        self.expects_quick = False
        """Whether a full picture is expected to meet the budget until it is measured: on a GPU."""

    def clear(self, *, expects_quick: bool = False) -> None:
        """Drop the times: they depend on model and device."""
        self._times.clear()
        self._chosen = self._decided = None
        self._empty_px = 0
        self.expects_quick = expects_quick

    def frame_arrived(self, frame: Frame, facts: ModelFacts) -> None:
        """Record a frame's time; frames with measured steps are slower and do not count."""
        side = frame.request.resolution or facts.resolution
        self._decided = None
        if not shows_something(frame):
            self._empty_px = max(self._empty_px, side)
        self._count += 1
        if self._count % _FORGET_AFTER == 0:
            kept = (side, facts.resolution)
            self._times = {side: times for side, times in self._times.items() if side in kept}
        if not frame.timings.steps:
            self._times.setdefault(side, deque(maxlen=_REMEMBERED)).append(frame.timings.total_ms)

    def resolution(self, facts: ModelFacts) -> int | None:
        """Return the largest resolution that is expected to meet its budget; None for full.

        Without a measured time it is full, except for a large network on the CPU, whose full picture may take seconds:
        there it is a small draft.
        If nothing meets the budget it is the smallest draft worth looking at.
        """
        if self._decided is None or self._decided[0] is not facts:
            self._decided = facts, self._decide(facts)
        return self._decided[1]

    def _decide(self, facts: ModelFacts) -> int | None:
        full_ms = self._time_ms(facts.resolution, facts)
        if full_ms is not None and full_ms <= self._limit_ms(facts.resolution, facts):
            self._chosen = facts.resolution
            return None
        least = max(MIN_DRAFT_PX, self._empty_px + 1)
        drafts = sorted(side for side in facts.draft_resolutions if least <= side < facts.resolution)
        if not drafts:
            return None
        sides = (facts.resolution, *reversed(drafts))
        known = {side: ms for side in sides if (ms := self._time_ms(side, facts)) is not None}
        if not known:
            if self.expects_quick:
                return None
            small = [side for side in drafts if side <= _FIRST_DRAFT_PX]
            return max(small, default=None) if facts.resolution > _LARGE_PX else None
        largest = max(known)
        expected_ms = known[largest] / _GAIN_OF_HALVING ** math.log2(facts.resolution / largest)
        before = facts.resolution
        for side in sides:
            expected_ms = known.get(side, expected_ms * _GAIN_OF_HALVING ** math.log2(before / side))
            if expected_ms <= self._limit_ms(side, facts):
                self._chosen = side
                return None if side == facts.resolution else side
            before = side
        self._chosen = drafts[0]
        return drafts[0]

    def _limit_ms(self, side: int, facts: ModelFacts) -> float:
        budget_ms = self._budget_ms if side == facts.resolution else self._draft_budget_ms
        return budget_ms * (_PATIENCE if side == self._chosen else 1.0)

    def _time_ms(self, side: int, facts: ModelFacts) -> float | None:
        """Return the lower median of the newest times; None if there is none.

        The first draft of a size includes binding its plan, so a slightly late first time is ignored.
        """
        times = self._times.get(side, ())
        if not times:
            return None
        is_plan_in_it = len(times) == 1 and side < facts.resolution
        if is_plan_in_it and self._draft_budget_ms < times[0] <= _PLAN_BUDGETS * self._draft_budget_ms:
            return None
        return sorted(times)[(len(times) - 1) // 2]


def draft_with_edits(resolution: int | None, edits: LocalEdits, facts: ModelFacts) -> int | None:
    """Return the resolution of a draft that shows local edits: beyond every layer that they change; None for full.

    The last layer of a draft may have only the channels that its readout reads.
    """
    if resolution is None or edits == NO_EDITS:
        return resolution
    changed = {bend.layer for bend in edits.bends} | {offset.layer for offset in edits.style_offsets}
    side = max((layer.side for layer in facts.layers if layer.name in changed), default=0)
    # A blend shows from its first layer on.
    side = max((side, *(facts.row_resolutions[blend.rows.first] - 1 for blend in edits.blends)))
    drafts = (draft for draft in facts.draft_resolutions if draft > side and draft >= resolution)
    return min(drafts, default=None)


def shows_something(frame: Frame) -> bool:
    """Return whether a frame shows anything: in some networks, early drafts are a single colour.

    A full picture always is.
    """
    if not frame.is_draft:
        return True
    pixels = frame.pixels.view(np.uint32)  # four bytes at once, because every draft is checked
    return bool((pixels != pixels[0, 0]).any())
