"""Progress of the sets of pictures on standard error."""

from __future__ import annotations

import sys


class SetProgress:
    """Writes a line at every tenth of a set.

    Parameters
    ----------
    count
        Pictures in each set.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._last = ("", -1)

    def tell(self, name: str, done: int) -> None:
        """Say how many pictures of a set are done."""
        now = (name, 10 * done // self._count)
        if now != self._last:
            self._last = now
            sys.stderr.write(f"{name}: {done} of {self._count}\n")
