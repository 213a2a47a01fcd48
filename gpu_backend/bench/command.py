"""The command: measure, print, write files."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence

from gpu_backend.bench.options import BenchOptions, add_bench_options, bench_options_of
from gpu_backend.errors import LoomError
from gpu_backend.plain_text import printable
from gpu_backend.torch_import import torch_needed

DESCRIPTION = "Measure this renderer beside the same network in plain PyTorch; Ctrl-C keeps what was measured."
EXIT_ERROR = 2
EXIT_STOPPED = 130


def run_bench(options: BenchOptions, say: Callable[[str], None], show: Callable[[Sequence[str]], None]) -> bool:
    """Measure what the options ask for, write the files, then show the table.

    Returns whether all of it was measured; Ctrl-C ends it early and keeps the results so far.

    Parameters
    ----------
    say
        Gets progress and notes, a line each.
    show
        Gets the lines of the table.

    Raises
    ------
    LoomError
        If there is no such device, model or shape, or the files cannot be written.
    """
    # Imported here: torch takes a second to load, which --help need not wait for.
    with torch_needed("The benchmark"):
        from gpu_backend.bench.files import write_files
        from gpu_backend.bench.stopwatch import STOPPED
        from gpu_backend.bench.suite import run_suite
        from gpu_backend.bench.table import table
    from gpu_backend.result_folder import make_folder

    if options.out is not None:
        make_folder(options.out)  # before minutes are spent
    report = run_suite(options, lambda what: say(f"measuring: {what}"))
    lines = table(report).splitlines()
    if options.out is not None:  # first: the reader of the table may close the pipe
        files, problem = write_files(report, options.out)
        if problem:
            lines.append(f"skipped: plots: {problem}")
        say(f"written: {', '.join(str(file) for file in files)}")
    show(lines)
    return all(item.reason != STOPPED for item in report.skipped)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m gpu_backend.bench", description=DESCRIPTION)
    add_bench_options(parser)
    parsed = parser.parse_args(words)
    try:
        is_whole = run_bench(bench_options_of(parsed, shlex.join((*parser.prog.split(), *words))), _say, _show)
    except LoomError as error:
        _say(f"{parser.prog}: {error.sentence}")
        return EXIT_ERROR
    return 0 if is_whole else EXIT_STOPPED


def _say(text: str) -> None:
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def _show(lines: Sequence[str]) -> None:
    sys.stdout.write("".join(printable(line) + "\n" for line in lines))
    sys.stdout.flush()
