"""Seconds to px and back, and where the ruler has ticks. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from explorer_app.session.tracks import Timeline
from gpu_backend import dataclass

RulerUnit = Literal["seconds", "beats"]

LEAST_SCALE, MOST_SCALE = 0.05, 4000.0
"""px a second."""

MARGIN_PX = 20.0
"""What is shown before 0 and after the end, so that keys there are whole."""

_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
_LABEL_PX = 64
"""Least distance of two labels."""
_TICK_PX = 7
"""Least distance of two ticks."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the ruler: its time in seconds, and its label; empty for a short line."""

    t: float
    label: str


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The visible part of the time.

    Attributes
    ----------
    left
        x of the first visible second, in px.
    width
        Width of the visible part in px.
    start
        First visible second.
    scale
        px a second.
    """

    left: float
    width: float
    start: float
    scale: float

    @property
    def end(self) -> float:
        """Last visible second."""
        return self.start + self.width / self.scale

    def x(self, t: float) -> float:
        """Return the x of a time."""
        return self.left + (t - self.start) * self.scale

    def t(self, x: float) -> Fraction:
        """Return the time at an x, at least 0, in thousandths of a second."""
        return max(Fraction(0), Fraction(round((self.start + (x - self.left) / self.scale) * 1000), 1000))

    def fitted(self, length_s: float) -> TimeAxis:
        """Return the axis that shows so many seconds from 0 on."""
        scale = min(max((self.width - 2 * MARGIN_PX) / max(length_s, 0.1), LEAST_SCALE), MOST_SCALE)
        return replace(self, start=-MARGIN_PX / scale, scale=scale)

    def zoomed(self, factor: float, x: float) -> TimeAxis:
        """Return the axis at another scale; what is at x stays there."""
        scale = min(max(self.scale * factor, LEAST_SCALE), MOST_SCALE)
        at = self.start + (x - self.left) / self.scale
        return replace(self, scale=scale, start=max(-MARGIN_PX / scale, at - (x - self.left) / scale))

    def scrolled(self, by_px: float) -> TimeAxis:
        """Return the axis moved by so many px, not before the margin in front of 0."""
        return replace(self, start=max(-MARGIN_PX / self.scale, self.start + by_px / self.scale))

    def ticks(self, timeline: Timeline, unit: RulerUnit) -> Iterator[Tick]:
        """Yield the visible ticks from left to right: seconds with frames between them, or bars with beats."""
        yield from self._beats(timeline) if unit == "beats" else self._seconds(timeline)

    def _seconds(self, timeline: Timeline) -> Iterator[Tick]:
        step = next((step for step in _SECONDS if step * self.scale >= _LABEL_PX), 7200)
        parts = next((n for n in (10, 5, 4, 2) if step % n == 0 and step / n * self.scale >= _TICK_PX), 1)
        fps = float(timeline.fps)
        if step == 1:
            parts = next((n for n in (round(fps), 10, 5, 2) if n and self.scale / n >= _TICK_PX), 1)
        by_frames = step == 1 and parts == round(fps)
        labelled = next((n for n in (1, 5, 10) if by_frames and n / fps * self.scale >= _LABEL_PX), 0)
        first = max(0, math.floor(self.start / step))
        for whole in range(first, math.ceil(self.end / step) + 1):
            for part in range(parts):
                t = whole * step + part * step / parts
                is_frame = by_frames and labelled and part % labelled == 0
                label = _clock(whole * step) if part == 0 else str(part) if is_frame else ""
                yield Tick(t, label)

    def _beats(self, timeline: Timeline) -> Iterator[Tick]:
        grid = timeline.grid
        beat_s, bar = float(60 / grid.bpm), grid.beats_per_bar
        bars = next((n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n * bar * beat_s * self.scale >= _LABEL_PX), 256)
        step = 1 if beat_s * self.scale >= _TICK_PX else bar * bars
        first = math.floor((self.start - float(grid.offset)) / beat_s / step) * step
        last = math.ceil((self.end - float(grid.offset)) / beat_s)
        for beat in range(first, last + 1, step):
            t = float(grid.offset) + beat * beat_s
            if t < 0.0:
                continue
            number, within = divmod(beat, bar)
            is_wide = beat_s * self.scale >= _LABEL_PX
            label = ""
            if within == 0 and number % bars == 0:
                label = str(number + 1)
            elif is_wide:
                label = f"{number + 1}.{within + 1}"
            yield Tick(t, label)


def _clock(seconds: int) -> str:
    """Return whole seconds as minutes and seconds: "0:10"."""
    return f"{seconds // 60}:{seconds % 60:02d}"
