"""Where the playhead is after a time: exact frames, whatever the render rate."""

from __future__ import annotations

import math
from fractions import Fraction

from explorer_app.session.tracks import Timeline
from gpu_backend import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A frame's time in seconds, whether playing has come to its end there, and whether time runs backwards."""

    t: Fraction
    is_over: bool = False
    is_backwards: bool = False


def frame_range(timeline: Timeline) -> tuple[Fraction, int]:
    """Return the first second of what plays, and the number of its frames."""
    first, last = timeline.playing_range
    return first, max(1, math.ceil((last - first) * timeline.fps))


def first_frame(timeline: Timeline, start: Fraction) -> int:
    """Return the frame that playing from a time begins with, counted from the start of the range: 0 outside of it."""
    first, count = frame_range(timeline)
    begun = math.floor((start - first) * timeline.fps)
    return begun if 0 <= begun < count else 0


def played(timeline: Timeline, start: Fraction, elapsed_s: float) -> Place:
    """Return the frame that is due so long after playing began at a time.

    Frames are counted from the start of the playing range and never slowed: a late caller gets a later frame. One
    that begins outside the range begins at its start.
    """
    first, count = frame_range(timeline)
    index = first_frame(timeline, start) + max(0, math.floor(Fraction(elapsed_s) * timeline.fps))
    if not timeline.is_looping:
        is_over = index >= count - 1
        return Place(first + min(index, count - 1) / timeline.fps, is_over)
    if timeline.is_ping_pong and count > 1:
        index %= 2 * count - 2
        back = 2 * count - 2 - index
        return Place(first + min(index, back) / timeline.fps, is_backwards=index >= count - 1)
    return Place(first + index % count / timeline.fps)


def time_text(t: Fraction, fps: Fraction) -> str:
    """Return a time as minutes, seconds and frames: "0:10:14"."""
    rate = max(1, round(fps))
    frames = math.floor(t * fps + Fraction(1, 2))
    seconds, frame = divmod(frames, rate) if fps == rate else (math.floor(t), math.floor((t - math.floor(t)) * fps))
    return f"{seconds // 60}:{seconds % 60:02d}:{frame:02d}"
