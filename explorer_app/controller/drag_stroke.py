"""A stroke of dragging: what the hand holds, and what the drag has reached."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from explorer_app.controller.drag_points import DragPoints, Pixels
from explorer_app.session.edited_latent import TakeBlendRows, TakeEditedRows
from gpu_backend import Recipe, StoredLatent, dataclass

if TYPE_CHECKING:
    from gpu_backend import DragReport

Phase = Literal["rest", "preparing", "moving", "settling"]
"""Of a stroke: all but the first. ``"rest"`` means that there is none."""

NEARER_PX = 0.25
"""A handle that came nearer by less has not moved."""

_PATIENCE_STEPS = 60
"""A released stroke ends after this number of steps in which no handle came nearer."""
_MOST_SAMPLES = 512


@dataclass(slots=True)
class DragStroke:
    """A stroke under way, from the press until its handles have settled.

    Attributes
    ----------
    before
        The points at the start, to which a cancelled stroke returns.
    dragged
        Index of each handle that the hand moves -> its target at the press.
    blend
        Number of the blend whose second latent the stroke changes; 0 for the picture's own latent.
    phase
        ``"preparing"`` until the first report, ``"settling"`` after the release.
    recipe
        The latent before its edits, which the rows of the stroke edit.
    edit
        The newest edit; None before the first step.
    report
        The newest report; None before the first.
    samples
        (seconds, latent) pairs since the start, of the picture's own latent.
    """

    before: DragPoints
    dragged: dict[int, Pixels]
    blend: int = 0
    phase: Phase = "preparing"
    recipe: Recipe = Recipe()
    edit: TakeEditedRows | TakeBlendRows | None = None
    report: DragReport | None = None
    samples: list[tuple[float, StoredLatent]] = field(default_factory=list)
    _nearest: tuple[float, int] = (math.inf, 0)
    """The smallest distance since the release in pixels, and the step that reached it."""

    def note(self, seconds: float, latent: StoredLatent) -> None:
        """Record a latent; a long stroke is thinned out. The timeline has no keys of second latents."""
        if self.blend:
            return
        self.samples.append((seconds, latent))
        if len(self.samples) > _MOST_SAMPLES:
            del self.samples[1:-1:2]

    def take(self, report: DragReport) -> None:
        """Record a report of the drag, the first of which ends the preparation."""
        self.report = report
        if self.phase == "preparing":
            self.phase = "moving"

    def release(self) -> None:
        """Let the handles settle."""
        self.phase, self._nearest = "settling", (math.inf, 0)

    def is_stuck(self, distance: float) -> bool:
        """Return whether a released stroke comes no nearer to its targets, `distance` pixels away; called each report.

        A drag that has settled by itself is not stuck.
        """
        if self.phase != "settling" or self.report is None or self.report.is_settled:
            return False
        nearest, step = self._nearest
        if distance < nearest - NEARER_PX:
            self._nearest = distance, self.report.step
            return False
        return self.report.step - step > _PATIENCE_STEPS
