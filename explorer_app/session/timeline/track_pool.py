"""Timelines and patches of a project file: each track and table once, however many steps of the history share it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from explorer_app.session.patch_table import Patches, patches_bytes, patches_from_json
from explorer_app.session.session import Session
from explorer_app.session.session_json import SessionFileError, read_list
from explorer_app.session.timeline.timeline_json import (
    timeline_from_json,
    timeline_to_json,
    track_bytes,
    track_from_json,
)
from explorer_app.session.tracks import NO_TIMELINE, Timeline, Track
from gpu_backend import MAX_STEPS, SESSION_LIMITS, LoomError, StoredPart


class TrackPool:
    """The timelines and patches of a file, each track and table once."""

    def __init__(self) -> None:
        self.tracks: list[Track] = []
        self.timelines: list[bytes] = []
        self.patch_tables: list[bytes] = []
        self._patch_numbers: dict[int, int] = {}
        self._track_numbers: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self._held: list[Timeline | Patches] = []
        """So that no identity is given to another object."""
        self.nbytes = self.values = 0

    def number(self, timeline: Timeline) -> int | None:
        """Return the number of a timeline, which is added if it is new; None for the default one."""
        if timeline is NO_TIMELINE or timeline == NO_TIMELINE:
            return None
        number = self._numbers.get(id(timeline))
        if number is None:
            tracks = [self._track_number(track) for track in timeline.tracks]
            data = timeline_to_json(timeline, tracks)
            timeline_from_json(data, self.tracks)
            self.timelines.append(json.dumps(data, separators=(",", ":")).encode())
            number = self._numbers[id(timeline)] = len(self.timelines) - 1
            self._held.append(timeline)
            self.values += 40 + len(tracks) + 10 * len(timeline.sounds)
        return number

    def patch_number(self, patches: Patches) -> int | None:
        """Return the number of a table of patches, which is added if it is new; None for an empty one."""
        if not patches:
            return None
        number = self._patch_numbers.get(id(patches))
        if number is None:
            text = patches_bytes(patches)
            self.patch_tables.append(text)
            number = self._patch_numbers[id(patches)] = len(self.patch_tables) - 1
            self._held.append(patches)
            self._spend(text)
        return number

    def add(self, session: Session) -> None:
        """Add the timeline and the patches of a session."""
        self.number(session.timeline)
        self.patch_number(session.patches)

    def _spend(self, text: bytes) -> None:
        self.nbytes += len(text)
        self.values += text.count(b",") + text.count(b"[") + text.count(b"{")

    def _track_number(self, track: Track) -> int:
        number = self._track_numbers.get(id(track))
        if number is None:
            self.tracks.append(track)
            number = self._track_numbers[id(track)] = len(self.tracks) - 1
            self._spend(track_bytes(track))
        return number

    @property
    def is_full(self) -> bool:
        """Whether there is no room for the timelines and patches of more steps."""
        return self.nbytes > SESSION_LIMITS.nbytes // 2 or self.values > SESSION_LIMITS.values // 2


def steps_that_fit(steps: Sequence[tuple[Session, str]], position: int, pool: TrackPool) -> tuple[int, int]:
    """Return which steps, first and one past the last, have timelines and patches that fit into a file.

    Steps near the position come first.
    Undo steps come before redo steps. Their timelines and patches are added to the pool.
    """
    if not steps:
        return 0, 0
    first = max(0, min(position, len(steps) - 1))
    end = first + 1
    pool.add(steps[first][0])
    while first > 0 and not pool.is_full:
        first -= 1
        pool.add(steps[first][0])
    while end < len(steps) and not pool.is_full:
        pool.add(steps[end][0])
        end += 1
    return first, end


def read_patch_tables(data: object) -> list[Patches]:
    """Return the tables of patches of a file. Raises SessionFileError."""
    try:
        return [patches_from_json(item) for item in read_list(data, "tables of patches", MAX_STEPS + 1)]
    except SessionFileError:
        raise
    except LoomError as error:
        raise SessionFileError(f"The patches are damaged: {error.sentence}", error.details) from error


def read_timelines(tracks: object, timelines: object, stored: Mapping[str, StoredPart]) -> list[Timeline]:
    """Return the timelines of a file's tracks. Raises SessionFileError."""
    try:
        made = [track_from_json(item, stored) for item in read_list(tracks, "tracks", SESSION_LIMITS.values)]
        return [timeline_from_json(item, made) for item in read_list(timelines, "timelines", MAX_STEPS + 1)]
    except SessionFileError:
        raise
    except LoomError as error:
        raise SessionFileError(f"The timeline is damaged: {error.sentence}", error.details) from error
    except (OverflowError, RecursionError) as error:
        raise SessionFileError("The timeline is damaged: it holds a number that is too large.", str(error)) from error
