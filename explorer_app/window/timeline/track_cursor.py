"""The ruler or the track that the keyboard is on, and the way from key to key."""

from __future__ import annotations

from explorer_app.session.timeline.edits import KeyName, names_of
from explorer_app.session.timeline.playing import time_text
from explorer_app.window.timeline.key_drags import EditableView
from explorer_app.window.timeline.track_rows import TrackRow, shown_value, value_text


class TrackCursor:
    """What arrow keys, Enter and the menu key act on.

    Attributes
    ----------
    path
        Path of the track; empty for the ruler. A track that is gone counts as the ruler.
    """

    def __init__(self, view: EditableView) -> None:
        self._view = view
        self.path = ""

    @property
    def row(self) -> TrackRow | None:
        """The row of the track; None on the ruler."""
        return next((row for row in self._view.rows if row.track.path == self.path), None)

    @property
    def selected(self) -> list[KeyName]:
        """The selected keys of the track in the order of time; on the ruler those of all tracks."""
        row = self.row
        names = self._view.selection
        return sorted((name for name in names if row is None or name[0] == self.path), key=lambda name: name[1])

    def go(self, step: int) -> None:
        """Go up or down by some rows; the ruler is above the first one."""
        paths = ["", *(row.track.path for row in self._view.rows)]
        here = paths.index(self.path) if self.path in paths else 0
        self.path = paths[min(max(here + step, 0), len(paths) - 1)]

    def select_next(self, step: int, *, adds: bool) -> None:
        """Select the next key of the track (`step` 1), or the one before (-1); from the ruler, of the first track.

        It is the next one to the selected keys, else to the playhead, where a key is taken, too.
        """
        if self.row is None:
            self.go(1)
        chosen = self.selected
        start = (chosen[-1 if step > 0 else 0][1],) if chosen else ()
        t = start[0] if start else self._view.time
        names = sorted(names_of(self._view.timeline, self.path), key=lambda name: name[1])
        found = [name for name in names if (name[1] - t) * step > 0 or (not start and name[1] == t)]
        if found:
            name = found[0 if step > 0 else -1]
            self._view.select(self._view.selection | {name} if adds else frozenset({name}))

    def text(self) -> str:
        """Return what a person who does not see the timeline needs to know."""
        timeline, row, chosen = self._view.timeline, self.row, self.selected
        playhead = f"playhead at {time_text(self._view.time, timeline.fps)}"
        if row is None:
            count = f"{len(chosen)} {'key' if len(chosen) == 1 else 'keys'} selected, " if chosen else ""
            return f"Ruler: {count}{playhead}"
        if not chosen:
            value = value_text(timeline, row.track, self._view.time)
            return ", ".join(part for part in (f"{row.name}: {row.detail}", playhead, value) if part)
        t = chosen[0][1]
        if len(chosen) > 1:
            return f"{row.name}: {len(chosen)} keys selected, from {time_text(t, timeline.fps)}"
        times = [timeline.seconds(key) for key in row.track.keys]
        index = times.index(t)
        place = f"key {index + 1} of {len(times)} at {time_text(t, timeline.fps)}"
        value = shown_value(row.track, row.track.keys[index].value)
        return ", ".join(part for part in (f"{row.name}: {place}", value) if part)
