"""The command: measure, print, write files. torch is loaded only when measuring begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpu_backend.torch_import import torch_needed
from gpu_backend.training.benchmark.options import TrainBenchOptions


def run_train_bench(
    options: TrainBenchOptions, say: Callable[[str], None], show: Callable[[Sequence[str]], None]
) -> bool:
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
        If there is no such device, or the files cannot be written.
    """
    from gpu_backend.result_folder import make_folder

    with torch_needed("The benchmark"):
        from gpu_backend.training.benchmark.files import write_files
        from gpu_backend.training.benchmark.suite import STOPPED, run_suite
        from gpu_backend.training.benchmark.table import table

    if options.out is not None:
        make_folder(options.out)  # before minutes are spent
    report = run_suite(options, say)
    lines = table(report).splitlines()
    try:
        if options.out is not None:  # first, because the reader of the table may close the pipe
            files, problem = write_files(report, options.out)
            if problem:
                lines.append(f"skipped: plot: {problem}")
            say(f"written: {', '.join(str(file) for file in files)}")
    finally:  # a full disk does not lose what was measured
        show(lines)
    return all(row.reason != STOPPED for row in report.skipped)
