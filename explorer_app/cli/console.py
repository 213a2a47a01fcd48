"""What the command line says while it works: plain text on stderr, so that stdout stays for results."""

from __future__ import annotations

import sys
from typing import TextIO


class Console:
    """Notes, warnings and a progress line.

    Parameters
    ----------
    stream
        Where to; a terminal gets one progress line that is written over, anything else a line each.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._pending = 0
        self._warned: set[str] = set()

    def progress(self, text: str) -> None:
        """Show how far something is."""
        if self._is_terminal:
            self._stream.write("\r" + text.ljust(self._pending))
            self._stream.flush()
            self._pending = len(text)
        else:
            self.note(text)

    def status(self, text: str) -> None:
        """Show something that only matters to who is watching a terminal."""
        if self._is_terminal:
            self.progress(text)

    def note(self, text: str) -> None:
        """Write a line."""
        self.end_progress()
        self._stream.write(text + "\n")
        self._stream.flush()

    def warn(self, sentence: str) -> None:
        """Write a warning, each once."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            self.note(f"Warning: {sentence}")

    def end_progress(self) -> None:
        """Leave the progress line as it is and go on below it."""
        if self._pending:
            self._stream.write("\n")
            self._stream.flush()
            self._pending = 0
