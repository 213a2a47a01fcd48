"""Commands of the timeline."""

from __future__ import annotations

from explorer_app.controller import Playback


class PlayCommands:
    """Playing, recording and keys."""

    def __init__(self, playback: Playback) -> None:
        self._playback = playback

    def play(self, on: bool) -> None:
        """Play the timeline, or pause."""
        self._playback.set_playing(on)

    def record(self, on: bool) -> None:
        """Record what is moved, or stop recording."""
        self._playback.set_recording(on)

    def keep_picture(self) -> None:
        """Make a key of the whole picture at the playhead."""
        self._playback.keep_picture()

    def next_frame(self) -> None:
        """Move the playhead by a frame."""
        self._playback.step(1)

    def previous_frame(self) -> None:
        """Move the playhead back by a frame."""
        self._playback.step(-1)
