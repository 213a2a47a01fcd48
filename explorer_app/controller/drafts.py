"""How large a picture can be and still follow the hand: pure."""

from __future__ import annotations

from collections import deque

from explorer_app.rendering.frame_statistics import FRAME_BUDGET_MS
from gpu_backend import Frame, ModelFacts

MIN_DRAFT_PX = 32
"""Nobody recognises anything in a draft smaller than this."""

_GAIN_OF_HALVING = 0.6
"""What part of the time is left at half the resolution, as long as nobody has measured: StyleGAN2's larger blocks cost
about the same each, since channels halve as the sides double."""

_REMEMBERED = 5


class DraftPolicy:
    """Chooses the resolution of pictures while something moves, from the times of those that were rendered.

    Parameters
    ----------
    budget_ms
        What a frame may take.
    """

    def __init__(self, budget_ms: float = FRAME_BUDGET_MS) -> None:
        self._budget_ms = budget_ms
        self._times: dict[int, deque[float]] = {}

    def clear(self) -> None:
        """Forget the times: another model has others."""
        self._times.clear()

    def frame_arrived(self, frame: Frame, facts: ModelFacts) -> None:
        """Take note of what a frame cost; measured steps slow a frame down, so those do not count."""
        if not frame.timings.steps:
            side = frame.request.resolution or facts.resolution
            self._times.setdefault(side, deque(maxlen=_REMEMBERED)).append(frame.timings.total_ms)

    def resolution(self, facts: ModelFacts) -> int | None:
        """Return the largest resolution that is expected to meet the budget, None for full.

        Without a time to go by it is full; if nothing meets the budget it is the smallest draft worth looking at.
        """
        drafts = [side for side in facts.draft_resolutions if MIN_DRAFT_PX <= side < facts.resolution]
        full_ms = self._time_ms(facts.resolution)
        if not drafts or full_ms is None or full_ms <= self._budget_ms:
            return None
        expected_ms = full_ms
        side = facts.resolution
        for draft in sorted(drafts, reverse=True):
            while side > draft:
                expected_ms *= _GAIN_OF_HALVING
                side //= 2
            measured_ms = self._time_ms(draft)
            expected_ms = expected_ms if measured_ms is None else measured_ms
            if expected_ms <= self._budget_ms:
                return draft
        return min(drafts)

    def _time_ms(self, side: int) -> float | None:
        """Return the lower median of the newest times: the first frame of a size pays for its plan."""
        times = self._times.get(side)
        return sorted(times)[(len(times) - 1) // 2] if times else None
