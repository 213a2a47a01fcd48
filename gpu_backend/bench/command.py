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
    """Run the selected measurements, write the files, then show the table, also if the files cannot be written.

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
        from gpu_backend.bench.all_shapes import measure_all_shapes, summary, write_all
        from gpu_backend.bench.files import write_files
        from gpu_backend.bench.ladder import ladder_table, write_ladder
        from gpu_backend.bench.stopwatch import STOPPED
        from gpu_backend.bench.suite import run_ladder, run_suite
        from gpu_backend.bench.table import table
    from gpu_backend.result_folder import make_folder

    def note(what: str) -> None:
        say(f"measuring: {what}")

    out = options.out
    if out is not None:
        make_folder(out)  # before minutes are spent
    if options.ladder:
        found = run_ladder(options, note)
        try:
            if out is not None:
                write_ladder(found, out / "ladder.csv")
        finally:
            show(ladder_table(found).splitlines())
        return all(climbed.problem != STOPPED for climbed in found)
    reports = measure_all_shapes(options, note) if options.all_shapes else (run_suite(options, note),)
    tables = [table(report).splitlines() for report in reports]
    try:
        if out is not None:  # first: the reader of the table may close the pipe
            for report, lines in zip(reports, tables, strict=True):
                files, problem = write_files(report, out / report.run.network if options.all_shapes else out)
                if problem:
                    lines.append(f"skipped: plots: {problem}")
                say(f"written: {', '.join(str(file) for file in files)}")
            if options.all_shapes:
                say(f"written: {write_all(reports, out)}")
    finally:  # a full disk does not lose what was measured
        if options.all_shapes:
            tables.append(["", *summary(reports).splitlines()])
        show([line for lines in tables for line in lines])
    return all(item.reason != STOPPED for report in reports for item in report.skipped)


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
