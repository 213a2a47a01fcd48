"""The entry point: chooses the command, and shows its errors."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from explorer_app.cli.arguments import UsageError
from explorer_app.cli.console import Console, discard_unwritten, flush_results, show_letters_of_names
from explorer_app.cli.path_text import without_home
from explorer_app.interrupts import EXIT_STOPPED, handle_stops, restore, stop_status
from explorer_app.logs import ProgramLog
from explorer_app.messages import describe, is_from_outside, working_folder_problem
from explorer_app.version import __version__
from gpu_backend import LoomError

COMMANDS = {
    "render": "render",
    "inspect": "inspection",
    "convert": "convert",
    "demo": "demo",
    "farm": "farm",
    "bench": "bench",
    "doctor": "doctor",
    "train": "train",
    "train-bench": "train_bench",
    "tune": "tune",
    "directions": "directions",
    "encode": "encode",
    "project": "projection",
}
"""Command -> its module in this package, imported when the command runs: the window needs none of them."""

_WINDOW = "window"

EXIT_BUG = 1
EXIT_ERROR = 2
EXIT_NO_READER = 141

_ONLY_PRINT = ("inspect", "doctor")
"""Commands that only print: a reader that closes the pipe early is not an error."""

_NO_HOME = "/nonexistent"
"""Debian's home of users that have none."""

_PRINTING_OPTIONS = frozenset({"-h", "--help", "--version"})

_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit status.

    0: done. 1: a bug, shown with its traceback. 2: an error, shown as one sentence. 130: stopped by Ctrl-C. 141: the
    reader of the output left before the work was done. 143: stopped by SIGTERM.
    """
    _ensure_home()
    show_letters_of_names()
    name, words = _command_of(list(sys.argv[1:] if arguments is None else arguments))
    console = Console()
    with ProgramLog(console.block) as log, _interrupts_noted(console):
        log.watch_fatal_signals()
        status = _run(name, words, console, log)
    discard_unwritten()
    return status


def _ensure_home() -> None:
    """Give a user without a home folder one that does not exist: nothing is kept there, and all else works.

    Containers run programs under numbers that the system does not know.
    """
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = _NO_HOME


@contextlib.contextmanager
def _interrupts_noted(console: Console) -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C and on SIGTERM, and pass the signal to the console."""

    def note(number: int, frame: FrameType | None) -> None:
        console.stopped_by = number
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = handle_stops(note)
    try:
        yield
    finally:
        restore(former)


def _run(name: str, words: Sequence[str], console: Console, log: ProgramLog) -> int:
    """Run a command and show its errors; return the exit status."""
    command = f"latentloom {name}".rstrip()
    only_prints = name in _ONLY_PRINT or not _PRINTING_OPTIONS.isdisjoint(words)
    try:
        try:
            _log.debug("%s %s: %s", command, __version__, " ".join(words))
            if not only_prints and (problem := working_folder_problem()):
                raise UsageError(problem)  # now: libraries that look for it would end the process themselves
            module = importlib.import_module(f"{__package__}.{COMMANDS[name] if name else _WINDOW}")
            status: int = module.run(words, console)
        except SystemExit as leaving:  # --help and --version
            only_prints, status = True, leaving.code if isinstance(leaving.code, int) else 0
        flush_results()
        return status
    except LoomError as error:
        _log.info("%s: %s", command, error.sentence, extra={"details": error.details})
        _say(console, f"{command}: {error.sentence}")
        return EXIT_ERROR
    except KeyboardInterrupt:
        _say(console, "Stopped.")
        return stop_status(console.stopped_by) if console.stopped_by else EXIT_STOPPED
    except BrokenPipeError:
        return 0 if only_prints else EXIT_NO_READER
    except Exception as error:
        if is_from_outside(error):
            sentence, _ = describe(error)
            _log.info("%s: %s", command, sentence, exc_info=error)
            _say(console, f"{command}: {sentence}")
            return EXIT_ERROR
        _log.error("Uncaught exception.", exc_info=error)
        place = without_home(str(log.path))
        _say(console, f"{command}: Something went wrong inside Latent Loom; please report it with what {place} says.")
        return EXIT_BUG


def _say(console: Console, text: str) -> None:
    """Say why the program ends; that there is no reader is no reason to end otherwise."""
    with contextlib.suppress(BrokenPipeError):
        console.note(text)


def _command_of(words: list[str]) -> tuple[str, list[str]]:
    """Return a command and its arguments; no name for the window. ``--log`` may precede the command."""
    first = 2 if words[:1] == ["--log"] else 1 if words and words[0].startswith("--log=") else 0
    if len(words) > first and words[first] in COMMANDS:
        return words[first], words[:first] + words[first + 1 :]
    return "", words
