"""The command: measure, print, write files."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence

from gpu_backend.bench.options import BenchOptions, add_bench_options, bench_options_of
from gpu_backend.errors import LoomError

DESCRIPTION = "Measure this renderer beside the same network in plain PyTorch; Ctrl-C keeps what was measured."
EXIT_ERROR = 2
EXIT_STOPPED = 130


def run_bench(options: BenchOptions, say: Callable[[str], None]) -> bool:
    """Measure what the options ask for; the table goes to stdout, `say` hears how far it is.

    Returns whether all of it was measured: not if Ctrl-C ended it, which keeps what there is.

    Raises
    ------
    LoomError
        If there is no such device, model or shape, or the files cannot be written.
    """
    # Imported here: torch takes a second to load, which --help need not wait for.
    from gpu_backend.bench.files import write_files
    from gpu_backend.bench.stopwatch import STOPPED
    from gpu_backend.bench.suite import run_suite
    from gpu_backend.bench.table import table
    from gpu_backend.result_folder import make_folder

    if options.out is not None:
        make_folder(options.out)  # before minutes are spent
    report = run_suite(options, lambda what: say(f"measuring: {what}"))
    sys.stdout.write(table(report))
    if options.out is not None:
        files, problem = write_files(report, options.out)
        if problem:
            sys.stdout.write(f"skipped: plots: {problem}\n")
        say(f"written: {', '.join(str(file) for file in files)}")
    return all(item.reason != STOPPED for item in report.skipped)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m gpu_backend.bench", description=DESCRIPTION)
    add_bench_options(parser)
    parsed = parser.parse_args(words)
    try:
        is_whole = run_bench(bench_options_of(parsed, shlex.join((*parser.prog.split(), *words))), _say)
    except LoomError as error:
        _say(f"{parser.prog}: {error.sentence}")
        return EXIT_ERROR
    return 0 if is_whole else EXIT_STOPPED


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
