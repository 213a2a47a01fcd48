"""Figures of a command: a table on standard output, JSON in a file, or an error in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpu_backend.errors import LoomError
from gpu_backend.plain_text import printable
from gpu_backend.whole_file import write_whole


def tell_figures(program: str, out: Path | None, measure: Callable[[], tuple[Sequence[str], dict[str, Any]]]) -> int:
    """Print what `measure` returns first, write the second to `out`, and return the exit status."""
    try:
        lines, said = measure()
        if out is not None:
            write_whole(out, (json.dumps(said, indent=2, sort_keys=True) + "\n").encode())
    except LoomError as error:
        sys.stderr.write(printable(f"{program}: {error.sentence}") + "\n")
        return 2
    except OSError as error:
        problem = f"{out} was not written: the system says {error.strerror}."
        sys.stderr.write(printable(f"{program}: {problem}") + "\n")
        return 2
    sys.stdout.write("".join(printable(line) + "\n" for line in lines))
    return 0
