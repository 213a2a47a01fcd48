"""Figures of a command: a table on standard output, JSON in a file, or an error in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpu_backend.errors import LoomError, not_written
from gpu_backend.plain_text import printable
from gpu_backend.whole_file import write_whole


def tell_figures(program: str, out: Path | None, measure: Callable[[], tuple[Sequence[str], dict[str, Any]]]) -> int:
    """Print what `measure` returns first, write the second to `out`, and return the exit status."""
    try:
        lines, said = measure()
        if out is not None:
            _write(out, said)
    except LoomError as error:
        sys.stderr.write(printable(f"{program}: {error.sentence}") + "\n")
        return 2
    sys.stdout.write("".join(printable(line) + "\n" for line in lines))
    return 0


def _write(out: Path, figures: dict[str, Any]) -> None:
    try:
        write_whole(out, (json.dumps(figures, indent=2, sort_keys=True) + "\n").encode())
    except OSError as error:
        raise not_written(out, error) from error
