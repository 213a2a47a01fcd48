"""``latentloom [FILE]``: open the window."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from explorer_app.cli.arguments import Parser, UsageError, add_device
from explorer_app.cli.console import Console, flush_results
from explorer_app.cli.main import COMMANDS
from explorer_app.version import __version__

_UTF8 = "PYTHONUTF8"

_COMMANDS_HELP = """commands that need no display:
  latentloom render    render pictures or an image sequence
  latentloom inspect   list the contents of a model file
  latentloom convert   turn a pickle into a safetensors file
  latentloom demo      render a piece of ten seconds with sound
  latentloom encode    train an encoder, which gives project its start
  latentloom project   find the latent of a picture
  latentloom bench     measure this renderer beside plain PyTorch
  latentloom farm      render on many GPUs, of this machine and others
  latentloom train     train a network on pictures
  latentloom train-bench  measure a training step, one optimisation after the other
  latentloom directions  find named directions for a model
  latentloom tune      search for the fastest convolution tiles on this GPU
  latentloom doctor    report devices, versions and problems of this machine
  each has its own --help; a file that is named like a command is opened as ./render

exit status:
  0 done, 1 a bug (its traceback is on stderr and in the log), 2 an error explained in one sentence,
  130 stopped by Ctrl-C, 143 by SIGTERM, 141 the reader of the output left before the work was done"""


def parser() -> Parser:
    """Return the parser of the window's command line."""
    made = Parser(
        "latentloom",
        "Explore the latent space of a StyleGAN interactively. Without a command, the window opens.",
        epilog=_COMMANDS_HELP,
    )
    made.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="a model (.pkl, .pt, .safetensors), a session (.loom) or a saved picture to open, "
        "or the manifest (.manifest.json) of an export to continue",
    )
    add_device(made, remembered=True)
    made.add_argument(
        "--time-start",
        action="store_true",
        help="print the time of each step of the start in seconds, then close the window",
    )
    made.add_argument("--version", action="version", version=f"Latent Loom {__version__}")
    return made


def run(words: Sequence[str], console: Console) -> int:
    """Open the window and stay until it is closed."""
    options, unknown = parser().parse_known_args(words)
    is_named = options.file is not None and not (unknown and words[0].startswith("-"))  # else it may be a value
    if is_named and not options.file.exists():
        similar = difflib.get_close_matches(str(options.file), COMMANDS, 1)
        hint = f"; the command is called {similar[0]}" if similar else ""
        raise UsageError(
            "FILE should be a model, a session, a picture or a command (see --help), "
            f"but there is no {options.file}{hint}."
        )
    if unknown:
        parser().parse_args(words)  # raises the error
    if not _has_display():
        raise UsageError(
            "There is no display to open a window on; "
            "render without one: latentloom demo, or latentloom render (see --help)."
        )
    _restart_in_utf8()
    # Only a window needs Qt.
    from explorer_app.app import run_window

    return run_window(
        options.file, device=options.device or "", precision=options.precision or "", time_start=options.time_start
    )


def _has_display() -> bool:
    """Return whether a window could open: without a display Qt would abort the program."""
    needs_server = sys.platform.startswith(("linux", "freebsd"))
    return not needs_server or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def _restart_in_utf8() -> None:
    """Start again in Python's UTF-8 mode if names of files have another encoding; the process stays the same.

    Qt takes names for UTF-8 whatever the locale says, so that Python could neither find nor write a name with an
    umlaut that was chosen in a dialog. Where Python is told to ignore this, nothing happens.
    """
    if sys.platform == "win32" or sys.getfilesystemencoding() == "utf-8" or os.environ.get(_UTF8) == "1":
        return
    os.environ[_UTF8] = "1"
    flush_results()
    with contextlib.suppress(OSError):
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
