"""Everything that the command line prints: progress and notes on stderr, results on stdout.

Text from files and file names passes through here, so control characters become escapes here.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO

from gpu_backend import LoomError, printable, printable_lines, printable_sentence

_AS_IN_NAMES = "latentloom.as_in_names"
"""Name of the error handler that writes letters in UTF-8, as file names have them in the locale C."""
_GAP = "..."
_UNKNOWN_COLUMNS = 1 << 16


class OutputError(LoomError):
    """Standard output is closed or takes no more."""


class Console:
    """Notes, warnings, a progress line, and results.

    A stderr that is closed or full loses the message, and the work continues; a pipe without a reader raises
    BrokenPipeError.

    Parameters
    ----------
    stream
        Replaces stderr. A terminal gets one progress line that is written over, anything else a line each.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream is not None and self._stream.isatty()
        self._pending = 0
        self._warned: set[str] = set()
        self.stopped_by = 0
        """Number of the signal that stopped the program, or 0. A library may have swallowed its KeyboardInterrupt."""

    def progress(self, text: str, *, is_last: bool = False) -> None:
        """Show how far something is. Raises KeyboardInterrupt after a signal to stop that was swallowed.

        `is_last` says that all is done, so that it matters no more whether the reader has left.
        """
        if self.stopped_by:
            raise KeyboardInterrupt
        with contextlib.suppress(*([BrokenPipeError] if is_last else [])):
            self._progress(text)

    def _progress(self, text: str) -> None:
        if self._is_terminal:
            room = self._columns() - 1  # a full line would make some terminals begin another
            text = _fitted(printable_sentence(text), room)
            self._write("\r" + text.ljust(min(self._pending, room)))
            self._pending = len(text)
        else:
            self.note(text)

    def status(self, text: str) -> None:
        """Show a line that only a user at a terminal needs; raises as `progress`."""
        if self.stopped_by:
            raise KeyboardInterrupt
        if self._is_terminal:
            self.progress(text)

    def note(self, text: str) -> None:
        """Write a line."""
        self.end_progress()
        self._write(printable_sentence(text) + "\n")

    def conclude(self, text: str) -> None:
        """Write a line about work that is done: it stays done if the reader has left."""
        with contextlib.suppress(BrokenPipeError):
            self.note(text)

    def warn(self, sentence: str) -> None:
        """Write a warning, each once."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            self.note(f"Warning: {sentence}")

    def block(self, text: str) -> None:
        """Write text of several lines."""
        self.end_progress()
        self._write(printable_lines(text) + "\n")

    def end_progress(self) -> None:
        """Keep the progress line and continue below it."""
        if self._pending:
            self._pending = 0
            self._write("\n")

    def results(self, lines: Iterable[str]) -> None:
        """Print a command's result lines to stdout.

        Raises
        ------
        OutputError
            If stdout is closed or full.
        BrokenPipeError
            If its reader has left.
        """
        self.end_progress()
        text = "".join(printable(line) + "\n" for line in lines)
        if sys.stdout is None:
            raise OutputError("The result goes to standard output, which is closed.")
        encoding = sys.stdout.encoding or "utf-8"
        if sys.stdout.errors != _AS_IN_NAMES:
            text = text.encode(encoding, "backslashreplace").decode(encoding)
        with _told():
            sys.stdout.write(text)
            sys.stdout.flush()

    def _columns(self) -> int:
        """Return the width of the terminal in characters; a large number if it does not say."""
        with contextlib.suppress(OSError, ValueError):
            if self._stream is not None:
                return os.get_terminal_size(self._stream.fileno()).columns or _UNKNOWN_COLUMNS
        return _UNKNOWN_COLUMNS

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            raise
        except (OSError, ValueError):  # full, or closed
            self._stream = None


def _fitted(text: str, room: int) -> str:
    """Return text of at most `room` characters, at least four: its middle is left out."""
    room = max(room, len(_GAP) + 1)
    if len(text) <= room:
        return text
    head = (room - len(_GAP)) // 2
    return text[:head] + _GAP + text[len(text) - (room - len(_GAP) - head) :]


def show_letters_of_names() -> None:
    """Write letters to stdout and stderr as file names have them where the locale is C, and not as escapes."""
    if sys.getfilesystemencoding() != "ascii":
        return
    codecs.register_error(_AS_IN_NAMES, _as_in_names)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name == "ascii":
            stream.reconfigure(errors=_AS_IN_NAMES)


def _as_in_names(error: UnicodeError) -> tuple[bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return error.object[error.start : error.end].encode("utf-8", "backslashreplace"), error.end


def flush_results() -> None:
    """Flush printed results.

    Raises
    ------
    OutputError, BrokenPipeError
        As `Console.results`.
    """
    if sys.stdout is not None:
        with _told():
            sys.stdout.flush()


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"The result could not be printed: {error.strerror}.") from error


def discard_unwritten() -> None:
    """Let what a stream could not write go, so that the interpreter does not try again at its end and complain."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
            continue
        with contextlib.suppress(OSError, ValueError, AttributeError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)
