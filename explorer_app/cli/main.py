"""The entry point: which command, and how its errors are told."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from explorer_app.cli.console import Console
from gpu_backend import LoomError

_COMMANDS = {
    "render": "render",
    "inspect": "inspection",
    "convert": "convert",
    "demo": "demo",
    "bench": "bench",
    "doctor": "doctor",
    "train": "train",
    "train-bench": "train_bench",
    "tune": "tune",
    "directions": "directions",
}
"""Command -> its module in this package, imported when the command runs: the window needs none of them."""

_WINDOW = "window"

EXIT_ERROR = 2
EXIT_STOPPED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit status: 0, 2 after an error told in one sentence, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words and words[0] in _COMMANDS else ""
    console = Console()
    try:
        command = importlib.import_module(f"{__package__}.{_COMMANDS[name] if name else _WINDOW}")
        status: int = command.run(words[1:] if name else words, console)
        sys.stdout.flush()
        return status
    except LoomError as error:
        console.note(f"{f'latentloom {name}'.rstrip()}: {error.sentence}")
        return EXIT_ERROR
    except KeyboardInterrupt:
        console.note("Stopped.")
        return EXIT_STOPPED
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python must not complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
