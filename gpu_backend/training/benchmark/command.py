"""The command: measure, print, write files. torch is loaded only when measuring begins."""

from __future__ import annotations

import sys
from collections.abc import Callable

from gpu_backend.training.benchmark.options import TrainBenchOptions


def run_train_bench(options: TrainBenchOptions, say: Callable[[str], None]) -> None:
    """Measure what the options ask for; the table goes to stdout, `say` hears how far it is.

    Raises
    ------
    LoomError
        If there is no such device, or the files cannot be written.
    """
    from gpu_backend.result_folder import make_folder
    from gpu_backend.training.benchmark.files import write_files
    from gpu_backend.training.benchmark.suite import run_suite
    from gpu_backend.training.benchmark.table import table

    if options.out is not None:
        make_folder(options.out)  # before minutes are spent
    report = run_suite(options, say)
    sys.stdout.write(table(report))
    if options.out is None:
        return
    files, problem = write_files(report, options.out)
    if problem:
        sys.stdout.write(f"skipped: plot: {problem}\n")
    say(f"written: {', '.join(str(file) for file in files)}")
