"""Commands on the selected keys: copy, paste, delete, nudge."""

from __future__ import annotations

from fractions import Fraction

from explorer_app.session.timeline.edits import (
    PASTE,
    Clip,
    TimelineError,
    copied_keys,
    moved_keys,
    pasted_keys,
    without_keys,
)
from explorer_app.window.timeline.key_drags import EditableView

_NUDGE = "Nudge keys"


class SelectedKeys:
    """What keyboard and menus do to the keys that are selected in a view.

    Attributes
    ----------
    clip
        The keys that were copied last.
    """

    def __init__(self, view: EditableView) -> None:
        self._view = view
        self.clip: Clip = ()

    def copy(self) -> None:
        """Copy the keys."""
        self.clip = copied_keys(self._view.timeline, self._view.selection)

    def paste(self, clip: Clip = ()) -> None:
        """Paste keys at the playhead, by default those that were copied, and select them."""
        if clip or self.clip:
            try:
                timeline, names = pasted_keys(self._view.timeline, clip or self.clip, self._view.time)
            except TimelineError as error:
                self._view.refused.emit(error.sentence)
                return
            self._view.emit_change(timeline, PASTE)
            self._view.select(names)

    def delete(self) -> None:
        """Remove the keys."""
        if self._view.selection:
            self._view.emit_change(without_keys(self._view.timeline, self._view.selection), "Delete keys")
            self._view.select(frozenset())

    def nudge(self, frames: int) -> None:
        """Move the keys in time."""
        timeline = self._view.timeline
        moved, names = moved_keys(timeline, self._view.selection, frames / timeline.fps)
        self._view.emit_change(moved, _NUDGE)
        self._view.select(names)

    def raise_by(self, share: float) -> None:
        """Move the keys of tracks with a curve in value, by a share of the track's range."""
        timeline = self._view.timeline
        for row in self._view.rows:
            chosen = [name for name in self._view.selection if name[0] == row.track.path]
            if chosen and row.has_curve:
                timeline, _ = moved_keys(timeline, chosen, Fraction(0), raised=share * (row.high - row.low))
        if timeline is not self._view.timeline:
            self._view.emit_change(timeline, _NUDGE)
