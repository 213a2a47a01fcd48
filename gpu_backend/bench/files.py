"""The report as files: JSON with everything, CSV with a line a measurement, plots."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

from gpu_backend.bench.plots import draw_plots
from gpu_backend.bench.report import Report, to_json
from gpu_backend.result_folder import make_folder
from gpu_backend.run_facts import plots_problem
from gpu_backend.whole_file import write_whole

_COLUMNS = (
    "who",
    "precision",
    "batch",
    "latency_ms",
    "least_ms",
    "images_per_s",
    "nbytes",
    "warm_up",
    "runs",
    "prepare_s",
    "image_j",
)
COMPARED = (*_COLUMNS, "gain", "memory_saved", "skipped")
"""Columns of the CSV."""


def write_files(report: Report, folder: Path) -> tuple[tuple[Path, ...], str]:
    """Write all files into a folder, which is made if it is not there.

    Returns
    -------
    The files, and why there are no plots among them; nothing if there are.

    Raises
    ------
    RequestError
        If the folder takes no files.
    """
    make_folder(folder)
    json_file, csv_file = folder / "bench.json", folder / "bench.csv"
    write_whole(json_file, (json.dumps(to_json(report), indent=1, ensure_ascii=False) + "\n").encode())
    write_whole(csv_file, csv_text(report).encode())
    problem = plots_problem()
    plots = () if problem else draw_plots(report, folder)
    return (json_file, csv_file, *plots), problem


def csv_text(report: Report) -> str:
    """Return the measurements as CSV, and what was skipped as lines with a reason in place of numbers."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COMPARED)
    writer.writerows(csv_rows(report))
    return text.getvalue()


def csv_rows(report: Report) -> Iterator[tuple[str, ...]]:
    """Return the lines of the CSV below its head."""
    for row in report.measurements:
        compared = (_rounded(report.gain_over(row)), _rounded(report.memory_saved_over(row)))
        values = (getattr(row, name) for name in _COLUMNS)
        yield (*("" if value is None else str(value) for value in values), *compared, "")
    for item in report.skipped:
        yield (item.what, *[""] * (len(COMPARED) - 2), item.reason)


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
