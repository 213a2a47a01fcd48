"""The pause after the newest preview request by hand or of playback that work in the background waits for."""

from __future__ import annotations

import time


class PreviewRest:
    """Time of the newest preview request by hand or of playback, shared by the tasks that run only while pictures rest.

    Parameters
    ----------
    rest_s
        Previews rest once none was requested for this long, in seconds.
    """

    def __init__(self, rest_s: float) -> None:
        self._rest_s = rest_s
        self._requested_s = float("-inf")

    def note_request(self) -> None:
        """Record that a preview is requested now."""
        self._requested_s = time.monotonic()

    def seconds_left(self) -> float:
        """Return in how many seconds previews rest, if none is requested; 0 if they do."""
        return max(0.0, self._requested_s + self._rest_s - time.monotonic())
