"""Keys of a stroke: the rows of w that a drag went through, on the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import with_recorded
from explorer_app.session.tracks import LINEAR, Timeline
from gpu_backend import Latent, LazyModule, Recipe, StoredLatent

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

MOST_KEYS = 16
_LEAST_S = Fraction(1, 2)
"""A stroke lasts at least this long on the timeline."""


def with_stroke(
    timeline: Timeline, session: Session, samples: Sequence[tuple[float, StoredLatent]], start: Fraction
) -> Timeline:
    """Return the timeline with keys of the latent, from `start` seconds on and as quickly as the stroke was.

    Keys are spaced evenly along the path in w, where the picture changes.

    Parameters
    ----------
    samples
        (seconds, latent), in order; at least two.

    Raises
    ------
    TimelineError
        If there would be too many keys or tracks.
    """
    times, latents = zip(*samples, strict=True)
    rows = np.stack([np.frombuffer(latent.rows, "<f4") for latent in latents])
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(rows, axis=0), axis=1))])
    count = min(MOST_KEYS, len(samples))
    wanted = np.linspace(0.0, lengths[-1], count)
    chosen = sorted({int(np.abs(lengths - at).argmin()) for at in wanted} | {0, len(samples) - 1})
    span = max(_LEAST_S, Fraction(round(1000 * (times[-1] - times[0])), 1000))
    factor = span / Fraction(max(1, round(1000 * (times[-1] - times[0]))), 1000)
    keys = {}
    for index in chosen:
        t = start + Fraction(round(1000 * (times[index] - times[0])), 1000) * factor
        keys[t] = ((Recipe(Latent(latents[index], session.classes), session.truncation), 1.0),)
    keys[start + span] = keys.pop(max(keys))
    return with_recorded(timeline, "pinned_blend", [(t, blend, LINEAR) for t, blend in sorted(keys.items())])
