"""The user's side of a long reading: how far it is, and whether it should stop."""

from __future__ import annotations

from collections.abc import Callable

from gpu_backend.errors import CancelledError

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all; never goes back."""


class Watch:
    """Reports progress, and raises `CancelledError` at the first call after a cancellation."""

    def __init__(self, progress: Progress | None = None, cancelled: Callable[[], bool] | None = None) -> None:
        self._progress = progress
        self._cancelled = cancelled

    def check(self) -> None:
        """Raise CancelledError if the user cancelled."""
        if self._cancelled is not None and self._cancelled():
            raise CancelledError("Opening the model was cancelled.")

    def part(self, first: int, last: int, whole: int) -> Watch:
        """Return a watch for a step of a larger work: its own 0 to total becomes `first` to `last` of `whole`."""
        return Watch(lambda done, total: self.advance(first + (last - first) * done // max(total, 1), whole))

    def advance(self, done: int, total: int) -> None:
        """Report progress; raise CancelledError if the user cancelled."""
        if self._progress is not None:
            self._progress(done, total)
        self.check()
